//! The errors of writes.

use thiserror::Error;

/// The reason why a write was rejected. The table remains usable after each of these errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum InsertError {
    /// The key is already stored, for a [`Memtable`](crate::Memtable) with the same sequence number. The stored entry is
    /// unchanged.
    #[error("key is already stored")]
    DuplicateKey,
    /// A configured limit is reached, or the arena's address range has no space for the entry.
    #[error("table is full")]
    Full,
    /// The key is longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN), the value is longer than
    /// [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN), or the entry or batch would not fit even in an empty table with the same
    /// limits.
    #[error("key or value is too large for this table")]
    TooLarge,
    /// The table is frozen and accepts no further writes.
    #[error("table is sealed")]
    Sealed,
}

/// Some entries of a batch were not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// `failed` entries were rejected, each for one of the reasons in [`InsertError`]. The other entries are stored.
    #[error("{failed} of {} entries were not stored", succeeded + failed)]
    PartialFailure {
        /// The number of entries that this call stored.
        succeeded: usize,
        /// The number of entries that this call did not store.
        failed: usize,
    },
}
