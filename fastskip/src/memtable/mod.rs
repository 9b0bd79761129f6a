//! The multi-version table of a storage engine: versions of keys, ordered by sequence number.

mod cursor;
mod frozen;
mod owned;
mod table;
mod version;
mod versions;
mod write;

pub use cursor::{MemtableCursor, OwnedCursor};
pub use frozen::FrozenMemtable;
pub use owned::{OwnedVersion, OwnedVersions};
pub use table::{Lookup, Memtable};
pub use version::Version;
pub use versions::Versions;
pub use write::{Op, Reservation, Written};

#[cfg(test)]
mod tests;
