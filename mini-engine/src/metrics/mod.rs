//! Counters that all layers add to, and [`Metrics`], the snapshot of them that a user gets.
//!
//! Counters are independent, relaxed atomics: each is exact, a snapshot taken under load is not one instant.
//! Each has a cache line of its own, so that readers and writers of different counters do not slow each other. What each point read
//! counts has one for each thread ([`ReadCounter`]), so that readers do not slow each other either.

mod read_counter;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::read_counter::ReadCounter;
use crate::options::Compaction;

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

/// A number that only grows, by the holder of a lock: that takes no read-modify-write.
#[derive(Debug, Default)]
pub(crate) struct LockedCounter(AtomicU64);

impl LockedCounter {
    /// Adds `n`, for the holder of the lock.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get() + n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters under the write lock, on a cache line that moves with it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct WriteCounters {
    /// Operations of batches that have sequence numbers.
    pub(crate) writes: LockedCounter,
    /// Bytes of their keys and values.
    pub(crate) user_bytes: LockedCounter,
    /// Bytes of frames in logs.
    pub(crate) frame_bytes: LockedCounter,
}

/// Waits of writers: how often, and for how long.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) count: Counter,
    pub(crate) nanos: Counter,
}

impl Waits {
    fn time(&self) -> Duration {
        Duration::from_nanos(self.nanos.get())
    }
}

/// The counters of one open database.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) write_line: WriteCounters,
    /// Bytes of headers of logs.
    pub(crate) wal_bytes: Counter,
    /// Bytes of zeros written to logs.
    pub(crate) wal_zero_bytes: Counter,
    pub(crate) wal_writes: Counter,
    pub(crate) wal_syncs: Counter,
    /// Logs that took over the file of an obsolete one.
    pub(crate) wal_recycled: Counter,
    pub(crate) flushes: Counter,
    pub(crate) flush_bytes: Counter,
    pub(crate) compactions: Counter,
    pub(crate) compaction_bytes_read: Counter,
    pub(crate) compaction_bytes_written: Counter,
    pub(crate) verify_bytes_read: Counter,
    pub(crate) stalls: Waits,
    pub(crate) slowdowns: Waits,
    pub(crate) log_waits: Waits,
    pub(crate) gets: ReadCounter,
    /// Data blocks that point reads looked at, cached or not.
    pub(crate) get_blocks: ReadCounter,
    /// Table reads that a filter made unnecessary.
    pub(crate) filter_negatives: ReadCounter,
    /// Table reads that a filter let pass and that found nothing.
    pub(crate) filter_false_positives: ReadCounter,
    /// Data blocks read from files.
    pub(crate) block_reads: Counter,
    /// Partitions read from files.
    pub(crate) partition_reads: Counter,
    pub(crate) partition_hits: ReadCounter,
    pub(crate) partition_misses: ReadCounter,
    pub(crate) cache_hits: ReadCounter,
    pub(crate) cache_misses: ReadCounter,
}

impl Counters {
    /// The counters as they are now, with the levels as the caller knows them, who also knows what compactions are under way.
    pub(crate) fn snapshot(&self, levels: Vec<LevelMetrics>) -> Metrics {
        Metrics {
            writes: self.write_line.writes.get(),
            user_bytes: self.write_line.user_bytes.get(),
            wal_bytes: self.wal_bytes.get() + self.write_line.frame_bytes.get(),
            wal_zero_bytes: self.wal_zero_bytes.get(),
            wal_writes: self.wal_writes.get(),
            wal_syncs: self.wal_syncs.get(),
            wal_recycled: self.wal_recycled.get(),
            flushes: self.flushes.get(),
            flush_bytes: self.flush_bytes.get(),
            compactions: self.compactions.get(),
            compaction_bytes_read: self.compaction_bytes_read.get(),
            compaction_bytes_written: self.compaction_bytes_written.get(),
            verify_bytes_read: self.verify_bytes_read.get(),
            stalls: self.stalls.count.get(),
            stall_time: self.stalls.time(),
            slowdowns: self.slowdowns.count.get(),
            slowdown_time: self.slowdowns.time(),
            log_waits: self.log_waits.count.get(),
            log_wait_time: self.log_waits.time(),
            gets: self.gets.get(),
            get_blocks: self.get_blocks.get(),
            filter_negatives: self.filter_negatives.get(),
            filter_false_positives: self.filter_false_positives.get(),
            block_reads: self.block_reads.get(),
            partition_reads: self.partition_reads.get(),
            partition_hits: self.partition_hits.get(),
            partition_misses: self.partition_misses.get(),
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
    /// Inserts and removes: acknowledged, or with a place in the log.
    pub writes: u64,
    /// Bytes of keys and values in them.
    pub user_bytes: u64,
    /// Bytes of the batches in logs, as they are there, and of the logs' headers.
    pub wal_bytes: u64,
    /// Bytes of zeros that were written to logs by calls: space ahead of the batches.
    pub wal_zero_bytes: u64,
    /// Calls to the system that wrote to logs, to fill them with zeros included. None is needed for a frame in a mapped log.
    pub wal_writes: u64,
    /// Times a log was synced.
    pub wal_syncs: u64,
    /// Logs that took over the file, and so the space, of one that tables had replaced.
    pub wal_recycled: u64,
    /// Memtables written to tables.
    pub flushes: u64,
    /// Bytes of those tables.
    pub flush_bytes: u64,
    /// Compactions of tables.
    pub compactions: u64,
    /// Bytes of tables read by compactions.
    pub compaction_bytes_read: u64,
    /// Bytes of tables written by compactions.
    pub compaction_bytes_written: u64,
    /// Bytes of data blocks read by [`Db::verify`](crate::Db::verify), and by an open with
    /// [`RecoveryMode::Quarantine`](crate::RecoveryMode).
    pub verify_bytes_read: u64,
    /// Times a writer had to wait for a flush, or for a compaction of level 0.
    pub stalls: u64,
    /// Time writers waited for them, summed over writers.
    pub stall_time: Duration,
    /// Writes that were slowed down so that compactions of level 0 could keep up.
    pub slowdowns: u64,
    /// Time by which they were, summed over writers.
    pub slowdown_time: Duration,
    /// Times a writer had to wait for the next log, or for more space of this one.
    pub log_waits: u64,
    /// Time writers waited for that, summed over writers.
    pub log_wait_time: Duration,
    /// Point reads.
    pub gets: u64,
    /// Data blocks that point reads looked at, in the cache or not.
    pub get_blocks: u64,
    /// Table reads that a filter made unnecessary.
    pub filter_negatives: u64,
    /// Table reads that a filter let pass and that found nothing: false positives, and keys whose every version in the
    /// table is newer than the snapshot that was read.
    pub filter_false_positives: u64,
    /// Data blocks read from files.
    pub block_reads: u64,
    /// Partitions (filters and indexes of groups of data blocks) read from files.
    pub partition_reads: u64,
    /// Partitions found in the cache.
    pub partition_hits: u64,
    /// Partitions looked for in the cache in vain.
    pub partition_misses: u64,
    /// Data blocks found in the cache.
    pub cache_hits: u64,
    /// Data blocks looked for in the cache in vain.
    pub cache_misses: u64,
    /// Bytes of memory that the entries of memtables take now, of those that wait for their flush too.
    pub memtable_bytes: u64,
    /// Keys that there are now, as an estimate that costs nothing: entries of memtables and tables, less two for each tombstone in tables.
    /// More than the truth by the obsolete versions that no compaction has dropped yet.
    pub estimated_keys: u64,
    /// Bytes of memory that the cached blocks take now, data blocks and partitions.
    pub cache_bytes: u64,
    /// Bytes of memory that the roots of the tables that were read take now, beside the cache: about a ten-thousandth of their data.
    pub table_memory_bytes: u64,
    /// Tables whose files are open now, at most [`Options::max_open_files`](crate::Options::max_open_files).
    pub open_files: u64,
    /// The policy by which tables are compacted.
    pub compaction: Compaction,
    /// Bytes of keys and values that were flushed to tables since the database was created.
    pub flushed_user_bytes: u64,
    /// For how long the oldest snapshot, iterator or cursor has been open that is open now; `None` if none is. A snapshot keeps
    /// versions from being compacted away, an iterator or a cursor keeps memtables and files.
    pub oldest_view_age: Option<Duration>,
    /// Bytes of the oldest sorted run: what everything above it may make obsolete.
    pub oldest_run_bytes: u64,
    /// Memtables that wait for their flush now, or are being flushed.
    pub immutable_memtables: u64,
    /// Logs being made ahead for the next memtable now: 0 or 1.
    pub logs_being_made: u64,
    /// Flushes under way now. One ends when the log that it replaces has been removed or recycled, which `flush` does not wait for.
    pub flushes_running: u64,
    /// Compactions under way now.
    pub compactions_running: u64,
    /// Whether a compaction is due now that has not begun.
    pub compaction_due: bool,
    /// Files of tables that a compaction could not read since the database was opened. Compactions go around them and what overlaps them:
    /// those parts of the key range wait, until the file can be read, or [`RecoveryMode::Quarantine`](crate::RecoveryMode)
    /// takes it out.
    pub damaged_files: Vec<PathBuf>,
    /// What each level holds and has cost, level 0 first.
    pub levels: Vec<LevelMetrics>,
}

impl Metrics {
    /// Bytes of tables that flushes and compactions wrote, for each byte of keys and values flushed, since the database was
    /// created. The log, which is written once more, is not in it. `None` before the first flush.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.levels.iter().map(|level| level.written).sum(), self.flushed_user_bytes)
    }

    /// Data blocks looked at, in the cache or not, for each point read since the database was opened. Reads that memtables
    /// answer count, and look at none. `None` before the first.
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.get_blocks, self.gets)
    }

    /// Bytes of all tables for each byte of the oldest run: how many times the space they take that they would if all else
    /// made entries of that run obsolete. More than the truth where the newer runs hold new keys. `None` without a table.
    pub fn space_amplification(&self) -> Option<f64> {
        ratio(self.levels.iter().map(|level| level.bytes).sum(), self.oldest_run_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The size of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// Tables.
    pub tables: u64,
    /// Sorted runs, each of one or more tables: a read may have to ask each. On level 0 each table is one.
    pub runs: u64,
    /// Removals of ranges of keys that its tables hold. Those of equal bounds in a table count as one, one that is in two tables as two.
    pub range_tombstones: u64,
    /// Tables of which a compaction that will go on has taken the lower keys. Their files keep the space until it is done with them.
    pub narrowed: u64,
    /// Bytes of their files.
    pub bytes: u64,
    /// Bytes that came from above since the database was created: flushed to level 0, or tables that compactions took from the
    /// levels above.
    pub arrived: u64,
    /// Bytes of tables of the level that compactions read since the database was created.
    pub read: u64,
    /// Bytes of tables that flushes and compactions wrote to the level since the database was created.
    pub written: u64,
}

impl LevelMetrics {
    /// Bytes written to the level for each byte that came to it from above. Less than 1 where tables were moved, or
    /// obsolete versions left out. `None` if nothing came.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.written, self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_shows_each_counter_under_its_own_name() {
        // Catches two counters swapped when they are copied into the snapshot.
        let counters = Counters::default();
        let all = [
            (&counters.wal_bytes, 3),
            (&counters.wal_syncs, 4),
            (&counters.flushes, 5),
            (&counters.flush_bytes, 6),
            (&counters.compactions, 7),
            (&counters.compaction_bytes_read, 8),
            (&counters.compaction_bytes_written, 9),
            (&counters.stalls.count, 10),
            (&counters.stalls.nanos, 11),
            (&counters.block_reads, 14),
            (&counters.wal_writes, 18),
            (&counters.slowdowns.count, 19),
            (&counters.slowdowns.nanos, 20),
            (&counters.log_waits.count, 27),
            (&counters.log_waits.nanos, 28),
            (&counters.wal_recycled, 22),
            (&counters.partition_reads, 23),
            (&counters.wal_zero_bytes, 26),
        ];
        let of_reads = [
            (&counters.gets, 12),
            (&counters.filter_negatives, 13),
            (&counters.cache_hits, 15),
            (&counters.cache_misses, 16),
            (&counters.filter_false_positives, 17),
            (&counters.get_blocks, 21),
            (&counters.partition_hits, 24),
            (&counters.partition_misses, 25),
        ];
        all.iter().for_each(|(counter, n)| counter.add(*n));
        of_reads.iter().for_each(|(counter, n)| counter.add(*n));
        counters.write_line.writes.add(1);
        counters.write_line.user_bytes.add(2);
        counters.write_line.frame_bytes.add(100);
        let levels = vec![LevelMetrics { tables: 2, bytes: 99, ..LevelMetrics::default() }];
        let expected = Metrics {
            writes: 1,
            user_bytes: 2,
            wal_bytes: 103,
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
            slowdowns: 19,
            slowdown_time: Duration::from_nanos(20),
            log_waits: 27,
            log_wait_time: Duration::from_nanos(28),
            get_blocks: 21,
            wal_recycled: 22,
            wal_zero_bytes: 26,
            partition_reads: 23,
            partition_hits: 24,
            partition_misses: 25,
            levels: levels.clone(),
            ..Metrics::default()
        };
        assert_eq!(counters.snapshot(levels), expected);
    }

    #[test]
    fn amplifications_are_what_was_done_for_what_was_asked() {
        // Catches a ratio upside down, and a division by nothing.
        let none = Metrics::default();
        assert_eq!(
            (none.write_amplification(), none.read_amplification(), none.space_amplification()),
            (None, None, None)
        );
        let level = |bytes, arrived, written| LevelMetrics { bytes, arrived, written, ..LevelMetrics::default() };
        let levels = vec![level(10, 100, 100), level(40, 90, 180)];
        let some = Metrics {
            flushed_user_bytes: 112,
            get_blocks: 3,
            gets: 2,
            oldest_run_bytes: 40,
            levels,
            ..Metrics::default()
        };
        assert_eq!((some.write_amplification(), some.read_amplification()), (Some(2.5), Some(1.5)));
        assert_eq!((some.space_amplification(), some.levels[1].write_amplification()), (Some(1.25), Some(2.0)));
    }
}
