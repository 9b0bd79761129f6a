//! The simple table: byte keys, the first write of a key wins, a delete leaves a tombstone. Here lists are made, frozen and emptied.

mod cursor;
mod frozen;
mod read;
mod snapshot;
mod stats;
mod write;

use std::io;

use crate::builder::{Builder, Config, Table, sealed};
use crate::list::List;
use crate::list::stamp::{Clock, Stamped};

pub use cursor::{Cursor, Entry, Iter};
pub use frozen::{FrozenMemtable, SealError};
pub use snapshot::Snapshot;

/// A sorted map from byte keys to byte values that any number of threads write and read without locks.
///
/// A key is stored once: later inserts of it are refused, also after [`delete`](Self::delete), which marks it as a
/// tombstone. [`Memtable`](crate::Memtable) is the type that overwrites. Slices that are returned live as long as the
/// borrow of the list; nothing moves and nothing is freed before the list is dropped or reset.
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
/// An insert costs expected O(log n); its commit is one CAS. Writers that meet retry from where they met. All methods
/// can be called from any thread; none panics whatever the number of threads.
pub struct ConcurrentSkipList {
    list: List<Stamped>,
    clock: Clock,
}

/// Making a list.
impl ConcurrentSkipList {
    /// A list without limits, with as many shards as the available parallelism.
    ///
    /// # Panics
    /// If the system has no address range left; [`Builder::try_build`] returns that as an error.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A list without limits and with this many shards, from 1 to [`MAX_SHARDS`](crate::MAX_SHARDS).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_shards(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }

    /// A list without limits whose shards first take `bytes` together.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let shards = Config::default().shards;
        Self::builder().arena_bytes_per_shard(bytes / shards).build()
    }

    /// A list with limits; 0 means none. See [`Builder`] for each.
    ///
    /// # Panics
    /// As [`new`](Self::new).
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

    /// Settings by name.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    pub(crate) fn from_settings(config: Config) -> io::Result<Self> {
        Ok(Self { list: List::new(config)?, clock: Clock::new() })
    }

    pub(crate) fn config(&self) -> &Config {
        self.list.config()
    }
}

impl sealed::FromConfig for ConcurrentSkipList {
    fn from_config(settings: sealed::Settings) -> io::Result<Self> {
        Self::from_settings(settings.0)
    }
}

impl Table for ConcurrentSkipList {}

impl Default for ConcurrentSkipList {
    fn default() -> Self {
        Self::new()
    }
}

/// Freezing and starting anew.
impl ConcurrentSkipList {
    /// Refuses every later write with [`Sealed`](crate::InsertError::Sealed), and returns when the writes inside are done: what
    /// they stored is in the list for good. Blocks only while writers are inside.
    pub fn freeze(&self) {
        self.list.freeze();
    }

    /// Empties the list and opens it again. Its memory stays with it. That nothing borrowed from it is left is what
    /// `&mut` proves.
    pub fn reset(&mut self) {
        self.list.reset();
        self.clock = Clock::new();
    }
}
