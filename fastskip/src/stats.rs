//! What a table counts, and how it is shown.

use crate::sync::{AtomicU64, Ordering};

/// One shard's counters. They are sums over threads and read at leisure: Relaxed throughout.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    entries: AtomicU64,
    tombstones: AtomicU64,
    key_bytes: AtomicU64,
    value_bytes: AtomicU64,
}

/// The sum of all shards' counters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
}

impl Counts {
    #[inline]
    pub(crate) fn stored(&self, entries: u64, key_bytes: u64, value_bytes: u64) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.key_bytes.fetch_add(key_bytes, Ordering::Relaxed);
        self.value_bytes.fetch_add(value_bytes, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn deleted(&self, entries: u64) {
        self.tombstones.fetch_add(entries, Ordering::Relaxed);
    }

    pub(crate) fn add_to(&self, totals: &mut Totals) {
        // Tombstones first: one that is seen here was stored before, so the difference is not negative by more than
        // what runs right now.
        totals.tombstones += self.tombstones.load(Ordering::Relaxed);
        totals.entries += self.entries.load(Ordering::Relaxed);
        totals.key_bytes += self.key_bytes.load(Ordering::Relaxed);
        totals.value_bytes += self.value_bytes.load(Ordering::Relaxed);
    }
}

/// All figures of a table, read in one pass. Sizes are in bytes.
///
/// `memory_usage + memory_idle == memory_reserved` holds in every value of this type. Counts are exact when no writer is
/// active.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Live keys of a list; versions, tombstones included, of a memtable.
    pub len: usize,
    /// Entries stored, live or not.
    pub entries: usize,
    /// Entries that are tombstones.
    pub tombstones: usize,
    /// Inserts attempted, refused ones included, modulo 2^43 a shard.
    pub total_inserts: usize,
    /// Bytes of the arena that hold nodes or were lost between them.
    pub memory_usage: usize,
    /// Bytes of the arena handed out to shards.
    pub memory_reserved: usize,
    /// Bytes handed out to shards and not used yet.
    pub memory_idle: usize,
    /// Bytes of `memory_usage` that hold no entry: ends of chunks, and nodes whose key another thread stored first.
    pub memory_wasted: usize,
    /// Mean length of the stored keys.
    pub avg_key_size: f64,
    /// Mean length of the stored values.
    pub avg_value_size: f64,
    /// The limit on `memory_usage`; 0 means none.
    pub max_memory_bytes: usize,
    /// The limit on `entries`; 0 means none.
    pub max_entries: usize,
    /// Whether the table is frozen.
    pub is_sealed: bool,
    /// Whether a limit is near: see the builder's `backpressure_at`.
    pub is_under_backpressure: bool,
}

impl Stats {
    /// `memory_usage` as a fraction of `memory_reserved`, from 0.0 to 1.0; 0.0 for an empty table.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        ratio(self.memory_usage as u64, self.memory_reserved as u64)
    }
}

/// `part / whole`, and 0.0 where there is no whole.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
