//! Statistics of a list.

use core::fmt;

use super::table::ConcurrentSkipList;
use crate::list::List;
use crate::list::stats::Stats;

/// Statistics. Each method that counts visits every shard: O(shards). [`stats`](ConcurrentSkipList::stats) returns all statistics at
/// once.
impl ConcurrentSkipList {
    /// The number of live keys. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.made().map_or(0, List::live_entries)
    }

    /// Whether the list has no live key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of attempted inserts, including rejected ones.
    #[must_use]
    pub fn total_inserts(&self) -> usize {
        self.stats().total_inserts
    }

    /// The bytes of the arena that hold nodes or blocks of the index, or were lost between them. A sum over the shards, O(shards): one
    /// counter for all of them would be a cache line that every write of every thread moves.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.list.made().map_or(0, List::memory_usage)
    }

    /// The bytes of the arena that were handed out to shards.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.stats().memory_reserved
    }

    /// The bytes that were handed out to shards and are not yet used.
    #[must_use]
    pub fn memory_idle(&self) -> usize {
        self.stats().memory_idle
    }

    /// [`memory_usage`](Self::memory_usage) as a fraction of [`memory_reserved`](Self::memory_reserved), from 0.0 to 1.0; 0.0
    /// for an empty list.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        self.stats().memory_utilization()
    }

    /// The mean length of the stored keys, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_key_size(&self) -> f64 {
        self.stats().avg_key_size
    }

    /// The mean length of the stored values, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_value_size(&self) -> f64 {
        self.stats().avg_value_size
    }

    /// The limit on memory, in bytes; 0 means no limit.
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        self.list.config().max_memory_bytes
    }

    /// The limit on stored entries; 0 means no limit.
    #[must_use]
    pub fn max_entries(&self) -> usize {
        self.list.config().max_entries
    }

    /// Whether the list is frozen: every write that begins from now on is rejected. True as soon as any write was rejected
    /// for it. Writes that began before may still be finishing; see [`is_drained`](Self::is_drained).
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.list.is_frozen()
    }

    /// The same as [`is_frozen`](Self::is_frozen), under the name that it has in fastskip 0.1.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_frozen()
    }

    /// Whether the list is frozen and no write is in progress: its contents no longer change.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.list.is_drained()
    }

    /// Whether the fraction [`Builder::backpressure_at`](crate::Builder::backpressure_at) of a limit, by default 90 %, is used
    /// up. Once true, it remains true until the list is reset.
    #[must_use]
    pub fn is_under_backpressure(&self) -> bool {
        self.list.made().is_some_and(List::is_under_backpressure)
    }

    /// Returns all statistics, consistent with each other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.list.stats()
    }

    /// Checks the invariants of the list by walking it. For tests. Call it only while no thread writes. O(n).
    ///
    /// # Panics
    /// Panics if an invariant does not hold. The message begins with the number of the invariant.
    #[doc(hidden)]
    pub fn validate(&self) {
        self.list.made().into_iter().for_each(|list| list.validate(true));
    }

    /// Corrupts the hints that searches begin at: every answer stays right, some cost more. For tests. O(n).
    #[cfg(feature = "scramble")]
    #[doc(hidden)]
    pub fn scramble_hints(&self, seed: u64) {
        self.list.made().into_iter().for_each(|list| list.index.scramble_hints(seed));
    }

    /// As `validate`, for a table whose hints are corrupted.
    #[cfg(feature = "scramble")]
    #[doc(hidden)]
    pub fn validate_scrambled(&self) {
        self.list.made().into_iter().for_each(|list| list.validate(false));
    }
}

impl fmt::Debug for ConcurrentSkipList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("ConcurrentSkipList")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("frozen", &stats.is_frozen)
            .finish_non_exhaustive()
    }
}
