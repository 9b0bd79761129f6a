//! Operations on a whole database: bulk loads, checkpoints, compactions on demand, verification, metrics.

mod approximate_size;
mod checkpoint;
mod compact_range;
mod ingest;
mod keyspaces;
mod metrics;
mod new_directory;
mod quarantine;
mod salvage;
mod verify;

pub use self::approximate_size::KeyspaceSize;
pub(crate) use self::approximate_size::approximate_size;
pub(crate) use self::checkpoint::checkpoint;
pub(crate) use self::compact_range::compact_range;
pub(crate) use self::ingest::ingest;
pub(crate) use self::keyspaces::{drop_keyspace, keyspace};
pub(crate) use self::metrics::metrics;
pub use self::new_directory::incomplete_directory;
pub use self::quarantine::AsideFile;
pub(crate) use self::quarantine::{drop_quarantined, quarantined, set_aside};
pub use self::salvage::{LeftOut, LostWrites, Salvage, SalvageReport, SalvagedEntries};
pub use self::verify::VerifyReport;
pub(crate) use self::verify::verify;
