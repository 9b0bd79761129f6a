//! Why a write was refused.

use thiserror::Error;

/// Why one write was refused. The table is as usable after any of these as before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Error)]
#[non_exhaustive]
pub enum InsertError {
    /// The key (for [`Memtable`](crate::Memtable): the key at this sequence number) is already stored; the first stays.
    #[error("key is already stored")]
    DuplicateKey,
    /// A configured limit is reached, or the arena's address range has no room for the entry.
    #[error("table is full")]
    Full,
    /// The key is longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN), the value longer than
    /// [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN), or the entry or batch would not fit an empty table with the same limits.
    #[error("key or value is too large for this table")]
    TooLarge,
    /// The table is frozen and takes no further write.
    #[error("table is sealed")]
    Sealed,
}

/// Some entries of a batch were not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BatchError {
    /// `failed` entries were refused, each for one of the reasons of [`InsertError`]; the others are stored.
    #[error("{failed} of {} entries were not stored", succeeded + failed)]
    PartialFailure {
        /// Entries that this call stored.
        succeeded: usize,
        /// Entries that it did not.
        failed: usize,
    },
}
