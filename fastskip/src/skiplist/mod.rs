//! The single-version table: byte keys, the first write of a key wins, and a delete leaves a tombstone.

mod cursor;
mod frozen;
mod owned;
mod read;
mod snapshot;
mod stamp;
mod stats;
mod table;
mod write;

pub use cursor::{Cursor, Entry, Iter};
pub use frozen::{FrozenList, SealError};
pub use owned::{OwnedEntries, OwnedEntry, OwnedListCursor, OwnedSnapshot};
pub use snapshot::Snapshot;
pub use table::ConcurrentSkipList;
