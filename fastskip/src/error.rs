//! The errors of writes.

use alloc::vec::Vec;
use core::fmt;

// The reason why memory was refused: the system's, if there is one.
#[cfg(not(feature = "std"))]
pub(crate) use self::InsertError as Refusal;
#[cfg(feature = "std")]
pub(crate) use std::io::Error as Refusal;

/// The reason why a write was rejected. The table remains usable after each of these errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InsertError {
    /// The key is already stored; for a [`Memtable`](crate::Memtable), with the same sequence number. The stored entry stays.
    DuplicateKey,
    /// There was no room for the entry or batch: within a configured limit or the [budget](crate::MemoryBudget), or in the arena's address range; or
    /// the system refused to reserve a range. Whatever the limits, a write also fails with this error if 524,288 writers and open reservations are
    /// already in the thread's shard. A refusal changes nothing, and a smaller write may still succeed. Open reservations count as used memory, and so
    /// does memory that another thread is just fetching for its shard or searching for room. So `Full` is final only once a limit is reached and no
    /// reservation is open: [`Memtable::room_for`](crate::Memtable::room_for) shows whether it is. A budget has room again when another of its tables
    /// is dropped. A list has no reservations; a write of the same size fails there again, unless other threads were writing at that moment.
    Full,
    /// The key is longer than [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) (64 KiB + 7), the value is longer than
    /// [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN) (1 GiB), or the entry or batch
    /// would not fit even in an empty table with the same limits.
    TooLarge,
    /// The table is frozen and accepts no further writes.
    Frozen,
    /// The tag is greater than [`MAX_TAG`](crate::MAX_TAG).
    InvalidTag,
}

/// Some entries of a batch were not stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchError {
    /// `failed` entries were rejected. The other entries are stored.
    #[non_exhaustive]
    PartialFailure {
        /// The number of entries that this call stored.
        succeeded: usize,
        /// The number of entries that this call did not store.
        failed: usize,
        /// For each rejected entry: its index in the batch, and the reason. They are in the order of the batch.
        rejected: Vec<(usize, InsertError)>,
    },
}

impl fmt::Display for InsertError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::DuplicateKey => "key is already stored",
            Self::Full => "table is full",
            Self::TooLarge => {
                "entry is too large: a key has at most 65543 bytes, a value 1073741824, and a write must fit into an empty table with the same \
                 limits"
            }
            Self::Frozen => "table is frozen",
            Self::InvalidTag => "tag is greater than 63",
        })
    }
}

impl fmt::Display for BatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::PartialFailure { succeeded, failed, rejected } = self;
        write!(f, "{failed} of {} entries were not stored", succeeded + failed)?;
        rejected.first().map_or(Ok(()), |(index, why)| write!(f, "; the first is entry {index}: {why}"))
    }
}

// Written by hand: a derive macro would make every dependent crate compile six more crates.
impl core::error::Error for InsertError {}
impl core::error::Error for BatchError {}
