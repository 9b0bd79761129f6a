//! The single-version table: byte keys, the first write of a key wins, and a delete leaves a tombstone.

mod entry;
mod read;
mod stamp;
mod table;
mod write;

pub use entry::{Cursor, Entries, Entry, OwnedCursor, OwnedEntries, OwnedEntry};
pub use read::{OwnedSnapshot, Snapshot};
pub use table::{ConcurrentSkipList, FrozenList, SealError};
