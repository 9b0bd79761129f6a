//! Operations on a whole database: bulk loads, compactions on demand, keyspaces, metrics.

mod approximate_size;
mod compact_range;
mod ingest;
mod keyspaces;
mod metrics;

pub use self::approximate_size::KeyspaceSize;
pub(crate) use self::approximate_size::approximate_size;
pub(crate) use self::compact_range::compact_range;
pub(crate) use self::ingest::ingest;
pub(crate) use self::keyspaces::{drop_keyspace, keyspace};
pub(crate) use self::metrics::metrics;
