//! What a list says of itself.

use core::fmt;

use super::ConcurrentSkipList;
use crate::list::stats::Stats;

/// Figures. Each costs a pass over the shards; [`stats`](ConcurrentSkipList::stats) costs one for all.
impl ConcurrentSkipList {
    /// Live keys. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.live_entries()
    }

    /// Whether no key is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts attempted, refused ones included.
    #[must_use]
    pub fn total_inserts(&self) -> usize {
        self.stats().total_inserts
    }

    /// Bytes of the arena that hold nodes or were lost between them.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.list.memory_usage()
    }

    /// Bytes of the arena handed out to shards.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.stats().memory_reserved
    }

    /// Bytes handed out to shards and not used yet.
    #[must_use]
    pub fn memory_idle(&self) -> usize {
        self.stats().memory_idle
    }

    /// The used part of what is handed out, from 0.0 to 1.0.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        self.stats().memory_utilization()
    }

    /// Mean length of the stored keys, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_key_size(&self) -> f64 {
        self.stats().avg_key_size
    }

    /// Mean length of the stored values, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_value_size(&self) -> f64 {
        self.stats().avg_value_size
    }

    /// The limit on memory in bytes; 0 means none.
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        self.list.config().max_memory_bytes
    }

    /// The limit on stored entries; 0 means none.
    #[must_use]
    pub fn max_entries(&self) -> usize {
        self.list.config().max_entries
    }

    /// Whether the list is frozen.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.list.is_frozen()
    }

    /// Whether 90 % of a limit (see [`Builder::backpressure_at`](crate::Builder::backpressure_at)) is used up. Once true, always true.
    #[must_use]
    pub fn is_under_backpressure(&self) -> bool {
        self.list.is_under_backpressure()
    }

    /// All figures, consistent with each other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.list.stats()
    }

    /// Checks the structure's invariants by walking every level; for tests. Call it while nothing writes. O(n log n).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its number.
    #[doc(hidden)]
    pub fn validate(&self) {
        self.list.validate();
    }
}

impl fmt::Debug for ConcurrentSkipList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("ConcurrentSkipList")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("sealed", &stats.is_sealed)
            .finish_non_exhaustive()
    }
}
