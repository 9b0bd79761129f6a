//! The multi-version table of a storage engine: versions of keys, ordered by sequence number.

mod op;
mod read;
mod table;
mod version;
mod write;

pub use op::{Op, Room, Written};
pub use read::{MemtableCursor, OwnedMemtableCursor, OwnedVersions, Versions};
pub use table::{FrozenMemtable, Lookup, Memtable};
pub use version::{OwnedVersion, Version};
pub use write::Reservation;

#[cfg(test)]
mod tests;
