//! The list itself: made, frozen and reset.

use std::io;

use super::stamp::{StampClock, Stamped};
use crate::builder::{Builder, Config, Table, sealed};
use crate::list::LazyList;

/// A sorted map from byte keys to byte values that any number of threads can read and write without locks.
///
/// A key is stored only once. Later inserts of the same key are rejected, even after [`delete`](Self::delete), which marks
/// the key as a tombstone. Use [`Memtable`](crate::Memtable) to overwrite keys. Returned slices borrow from the list. No entry
/// is moved or freed before the list is dropped or reset.
///
/// ```
/// use fastskip::ConcurrentSkipList;
///
/// let list = ConcurrentSkipList::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4_u8 {
///         let list = &list;
///         scope.spawn(move || list.insert(&[thread], b"value"));
///     }
/// });
/// assert_eq!(list.len(), 4);
/// assert_eq!(list.get_live(&[2]), Some(&b"value"[..]));
/// ```
///
/// Keys have at most [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes (64 KiB - 1), values at most [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN)
/// (1 GiB), and a list 32 GiB.
///
/// An insert takes expected O(log n) and commits with one compare-and-swap (CAS). If the CAS fails because of another writer,
/// the insert continues from the same position. All methods can be called from any thread. None of them panics because of
/// the number of threads.
pub struct ConcurrentSkipList {
    pub(super) list: LazyList<Stamped>,
    pub(super) clock: StampClock,
}

/// Creating a list.
impl ConcurrentSkipList {
    /// Creates a list without limits. The number of shards is the available parallelism. It reserves no memory before something
    /// is written: to reads an untouched list is an empty one. O(shards), as every way to create one.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a list without limits that has `shards` shards, from 1 to [`MAX_SHARDS`](crate::MAX_SHARDS).
    #[must_use]
    pub fn with_shards(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }

    /// Creates a list without limits. The first chunks of its shards have `bytes` bytes in total.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let shards = Config::default().shards;
        Self::builder().arena_bytes_per_shard(bytes / shards).build()
    }

    /// Creates a list with limits; 0 means no limit. See [`Builder`] for each parameter.
    #[must_use]
    pub fn with_capacity_and_shards(
        arena_bytes_per_shard: usize,
        shards: usize,
        max_memory_bytes: usize,
        max_entries: usize,
    ) -> Self {
        Self::builder()
            .arena_bytes_per_shard(arena_bytes_per_shard)
            .shards(shards)
            .max_memory_bytes(max_memory_bytes)
            .max_entries(max_entries)
            .build()
    }

    /// Returns a builder, which sets the options of a new list.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }
}

impl sealed::FromConfig for ConcurrentSkipList {
    fn from_config(settings: sealed::Settings) -> io::Result<Self> {
        Ok(Self { list: LazyList::reserved(settings.0)?, clock: StampClock::new() })
    }

    fn lazily(settings: sealed::Settings) -> Self {
        Self { list: LazyList::new(settings.0), clock: StampClock::new() }
    }
}

impl Table for ConcurrentSkipList {}

impl Default for ConcurrentSkipList {
    fn default() -> Self {
        Self::new()
    }
}

/// Freezing and resetting.
impl ConcurrentSkipList {
    /// Freezes the list: every later write is rejected with [`Frozen`](crate::InsertError::Frozen). Waits for the writes in
    /// progress, as [`Memtable::freeze`](crate::Memtable::freeze) does; their entries are in the frozen list. O(shards), not counting the
    /// wait.
    pub fn freeze(&self) {
        self.list.freeze();
    }

    /// Removes all entries and accepts writes again, also after [`freeze`](Self::freeze). The list keeps its memory, unless it got a smaller range
    /// than its limit asks for: then the next write asks again. The
    /// `&mut` borrow guarantees that no slice, cursor or snapshot of the list is left.
    pub fn reset(&mut self) {
        self.list.reset();
        self.clock = StampClock::new();
    }
}
