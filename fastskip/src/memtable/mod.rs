//! The multi-version table of a storage engine: versions of keys, ordered by sequence number.

mod read;
mod table;
mod version;
mod write;

pub use read::{MemtableCursor, OwnedCursor, OwnedVersions, Versions};
pub use table::{FrozenMemtable, Lookup, Memtable};
pub use version::{OwnedVersion, Version};
pub use write::{Op, Reservation, Room, Written};

#[cfg(test)]
mod tests;
