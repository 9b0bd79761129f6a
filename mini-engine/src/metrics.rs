//! Counters that all layers add to, and [`Metrics`], the snapshot of them that a user gets.
//!
//! Counters are independent, relaxed atomics: each is exact, a snapshot taken under load is not one instant.
//! Each has a cache line of its own, so that readers and writers of different counters do not slow each other.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Levels that there may be, level 0 among them.
pub(crate) const MAX_LEVELS: usize = 8;

/// A number that only grows.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one open database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Operations of acknowledged batches.
    pub(crate) writes: Counter,
    /// Bytes of keys and values in acknowledged batches.
    pub(crate) user_bytes: Counter,
    pub(crate) wal_bytes: Counter,
    pub(crate) wal_writes: Counter,
    pub(crate) wal_syncs: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flush_bytes: Counter,
    pub(crate) compactions: Counter,
    pub(crate) compaction_bytes_read: Counter,
    pub(crate) compaction_bytes_written: Counter,
    pub(crate) stalls: Counter,
    pub(crate) stall_nanos: Counter,
    pub(crate) gets: Counter,
    /// Table reads that a filter made unnecessary.
    pub(crate) filter_negatives: Counter,
    /// Table reads that a filter let pass and that found nothing.
    pub(crate) filter_false_positives: Counter,
    /// Data blocks read from files.
    pub(crate) block_reads: Counter,
    pub(crate) cache_hits: Counter,
    pub(crate) cache_misses: Counter,
}

impl Counters {
    /// The counters as they are now, with the levels as the caller knows them, who also knows what merges are under way.
    pub(crate) fn snapshot(&self, levels: Vec<LevelMetrics>) -> Metrics {
        Metrics {
            writes: self.writes.get(),
            user_bytes: self.user_bytes.get(),
            wal_bytes: self.wal_bytes.get(),
            wal_writes: self.wal_writes.get(),
            wal_syncs: self.wal_syncs.get(),
            flushes: self.flushes.get(),
            flush_bytes: self.flush_bytes.get(),
            compactions: self.compactions.get(),
            compaction_bytes_read: self.compaction_bytes_read.get(),
            compaction_bytes_written: self.compaction_bytes_written.get(),
            stalls: self.stalls.get(),
            stall_time: Duration::from_nanos(self.stall_nanos.get()),
            gets: self.gets.get(),
            filter_negatives: self.filter_negatives.get(),
            filter_false_positives: self.filter_false_positives.get(),
            block_reads: self.block_reads.get(),
            cache_hits: self.cache_hits.get(),
            cache_misses: self.cache_misses.get(),
            levels,
            ..Metrics::default()
        }
    }
}

/// What a database has done since it was opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metrics {
    /// Inserts and removes acknowledged.
    pub writes: u64,
    /// Bytes of keys and values in them.
    pub user_bytes: u64,
    /// Bytes written to logs.
    pub wal_bytes: u64,
    /// Writes to logs: one serves all writers that waited for it.
    pub wal_writes: u64,
    /// Times a log was synced.
    pub wal_syncs: u64,
    /// Memtables written to tables.
    pub flushes: u64,
    /// Bytes of those tables.
    pub flush_bytes: u64,
    /// Merges of tables.
    pub compactions: u64,
    /// Bytes of tables read by merges.
    pub compaction_bytes_read: u64,
    /// Bytes of tables written by merges.
    pub compaction_bytes_written: u64,
    /// Times a writer had to wait for a flush.
    pub stalls: u64,
    /// Time writers waited for flushes, summed over writers.
    pub stall_time: Duration,
    /// Point reads.
    pub gets: u64,
    /// Table reads that a filter made unnecessary.
    pub filter_negatives: u64,
    /// Table reads that a filter let pass and that found nothing: false positives, and keys whose every version in the
    /// table is newer than the snapshot that was read.
    pub filter_false_positives: u64,
    /// Data blocks read from files.
    pub block_reads: u64,
    /// Data blocks found in the cache.
    pub cache_hits: u64,
    /// Data blocks looked for in the cache in vain.
    pub cache_misses: u64,
    /// Bytes of memory that the cached data blocks take now.
    pub cache_bytes: u64,
    /// Bytes of memory that the filters and indexes of the open tables take now, beside the cache: they are never evicted.
    pub table_memory_bytes: u64,
    /// Merges under way now.
    pub compactions_running: u64,
    /// Whether a merge is due now that has not begun.
    pub compaction_due: bool,
    /// What each level holds and has cost, level 0 first.
    pub levels: Vec<LevelMetrics>,
}

/// The size of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// Tables.
    pub tables: u64,
    /// Sorted runs, each of one or more tables: a read may have to ask each. On level 0 each table is one.
    pub runs: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes that came from above since the database was created: flushed to level 0, or tables that merges took from the
    /// levels above.
    pub arrived: u64,
    /// Bytes of tables of the level that merges read since the database was created.
    pub read: u64,
    /// Bytes of tables that flushes and merges wrote to the level since the database was created.
    pub written: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_shows_each_counter_under_its_own_name() {
        // Catches two counters swapped when they are copied into the snapshot.
        let counters = Counters::default();
        let all = [
            &counters.writes,
            &counters.user_bytes,
            &counters.wal_bytes,
            &counters.wal_syncs,
            &counters.flushes,
            &counters.flush_bytes,
            &counters.compactions,
            &counters.compaction_bytes_read,
            &counters.compaction_bytes_written,
            &counters.stalls,
            &counters.stall_nanos,
            &counters.gets,
            &counters.filter_negatives,
            &counters.block_reads,
            &counters.cache_hits,
            &counters.cache_misses,
            &counters.filter_false_positives,
            &counters.wal_writes,
        ];
        for (counter, n) in all.iter().zip(1..) {
            counter.add(n);
        }
        let levels = vec![LevelMetrics { tables: 2, bytes: 99, ..LevelMetrics::default() }];
        let expected = Metrics {
            writes: 1,
            user_bytes: 2,
            wal_bytes: 3,
            wal_syncs: 4,
            flushes: 5,
            flush_bytes: 6,
            compactions: 7,
            compaction_bytes_read: 8,
            compaction_bytes_written: 9,
            stalls: 10,
            stall_time: Duration::from_nanos(11),
            gets: 12,
            filter_negatives: 13,
            block_reads: 14,
            cache_hits: 15,
            cache_misses: 16,
            filter_false_positives: 17,
            wal_writes: 18,
            levels: levels.clone(),
            ..Metrics::default()
        };
        assert_eq!(counters.snapshot(levels), expected);
    }
}
