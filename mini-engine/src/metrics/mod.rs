//! Counters to which all layers add, and [`Metrics`], the snapshot of them for users.
//!
//! Counters are independent, relaxed atomics: each is exact, but a snapshot under load does not show one single instant. Each counter has its own
//! cache line, so that readers and writers of different counters do not slow each other down. Counters that each point read changes have one word for
//! each thread ([`ReadCounter`]), so that readers do not slow each other down either.

mod read_counter;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use self::read_counter::ReadCounter;
use crate::options::Compaction;

/// The maximum number of levels, level 0 included.
pub(crate) const MAX_LEVELS: usize = 8;

/// A number that only increases.
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

/// A number that only increases. Only the holder of a lock adds to it, without a read-modify-write operation.
#[derive(Debug, Default)]
pub(crate) struct LockedCounter(AtomicU64);

impl LockedCounter {
    /// Adds `n`; the caller holds the lock.
    pub(crate) fn add(&self, n: u64) {
        self.0.store(self.get() + n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counters guarded by the write lock, on a cache line that moves between processors with it.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct WriteCounters {
    /// Operations of batches that have sequence numbers.
    pub(crate) writes: LockedCounter,
    /// Bytes of keys and values of these operations.
    pub(crate) user_bytes: LockedCounter,
    /// Bytes of frames in logs.
    pub(crate) frame_bytes: LockedCounter,
}

/// The number and the duration of writers' waits.
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

/// Defines [`Counters`], and [`Metrics`], in which each counter of the list has a field of the same name.
macro_rules! define_metrics {
    ($($(#[$doc:meta])* $name:ident: $counter:ty,)*) => {
        /// The counters of one open database.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            pub(crate) write_line: WriteCounters,
            /// Bytes of headers of logs.
            pub(crate) wal_bytes: Counter,
            pub(crate) stalls: Waits,
            pub(crate) slowdowns: Waits,
            pub(crate) log_waits: Waits,
            $($(#[$doc])* pub(crate) $name: $counter,)*
        }

        impl Counters {
            /// The present values of the counters; the caller adds the other fields.
            pub(crate) fn snapshot(&self) -> Metrics {
                Metrics {
                    writes: self.write_line.writes.get(),
                    user_bytes: self.write_line.user_bytes.get(),
                    wal_bytes: self.wal_bytes.get() + self.write_line.frame_bytes.get(),
                    stalls: self.stalls.count.get(),
                    stall_time: self.stalls.time(),
                    slowdowns: self.slowdowns.count.get(),
                    slowdown_time: self.slowdowns.time(),
                    log_waits: self.log_waits.count.get(),
                    log_wait_time: self.log_waits.time(),
                    $($name: self.$name.get(),)*
                    ..Metrics::default()
                }
            }
        }

        /// The counters of a database since it was opened.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct Metrics {
            /// Inserts and removes that were acknowledged, or have a place in the log.
            pub writes: u64,
            /// Bytes of keys and values of these operations.
            pub user_bytes: u64,
            /// Bytes of the batches as stored in logs, and of the logs' headers.
            pub wal_bytes: u64,
            /// The number of times that a writer had to wait for a flush, or for a compaction of level 0.
            pub stalls: u64,
            /// The duration of these waits, summed over writers.
            pub stall_time: Duration,
            /// The number of writes that were slowed down so that compactions of level 0 could keep up.
            pub slowdowns: u64,
            /// The time by which these writes were slowed down, summed over writers.
            pub slowdown_time: Duration,
            /// The number of times that a writer had to wait for the next log, or for more space in the present one.
            pub log_waits: u64,
            /// The duration of these waits, summed over writers.
            pub log_wait_time: Duration,
            $($(#[$doc])* pub $name: u64,)*
            /// The present memory of the entries of all memtables in bytes, including frozen ones.
            pub memtable_bytes: u64,
            /// An estimate of the present number of keys, at no cost: entries of memtables and tables, less two for each tombstone in tables. It
            /// includes obsolete versions that no compaction has dropped yet.
            pub estimated_keys: u64,
            /// The present memory of the cached blocks in bytes: data blocks and partitions.
            pub cache_bytes: u64,
            /// The part of `cache_bytes` that evicted blocks take until no reader can use them.
            pub cache_evicted_bytes: u64,
            /// The number of earlier sets of memtables and tables that a point read may still use. They are freed about a millisecond after the last
            /// such read, with the memtables and files that only they have.
            pub retired_views: u64,
            /// The present memory of the roots of tables in bytes, outside the cache; about a six-thousandth of the data of all tables read.
            pub table_memory_bytes: u64,
            /// The number of tables whose files are open at present, at most [`Options::max_open_files`](crate::Options::max_open_files).
            pub open_files: u64,
            /// The policy that compacts tables.
            pub compaction: Compaction,
            /// Bytes of keys and values that were flushed to tables since the database was created.
            pub flushed_user_bytes: u64,
            /// The time by which the clock of the database, which never goes back, is ahead of the system's. Until the system's clock has caught up,
            /// no entry expires. See [`Keyspace::now`](crate::Keyspace::now).
            pub clock_ahead: Duration,
            /// The time since the oldest open snapshot, iterator or cursor was created; `None` if there is none. A snapshot keeps old versions from
            /// being dropped, an iterator or a cursor keeps memtables and files.
            pub oldest_view_age: Option<Duration>,
            /// Bytes of the oldest sorted run. Newer runs may make entries of that run obsolete.
            pub oldest_run_bytes: u64,
            /// The present number of frozen memtables, waiting or being flushed.
            pub immutable_memtables: u64,
            /// The present number of logs that are being created for the next memtable: 0 or 1.
            pub logs_being_made: u64,
            /// The present number of running flushes. A flush ends when the log that it makes obsolete has been removed or recycled; `flush` does not
            /// wait for that.
            pub flushes_running: u64,
            /// The present number of running compactions.
            pub compactions_running: u64,
            /// Whether a compaction is due at present and has not begun.
            pub compaction_due: bool,
            /// Files of tables that compactions could not read since the database was opened. Compactions avoid them and all tables that overlap
            /// them: these parts of the key range wait until the file can be read, or until [`RecoveryMode::Quarantine`](crate::RecoveryMode) removes
            /// it from the levels.
            pub damaged_files: Vec<PathBuf>,
            /// The size and the costs of each level, level 0 first.
            pub levels: Vec<LevelMetrics>,
        }
    };
}

define_metrics! {
    /// Bytes of zeros that were written to logs by calls, to allocate space before the batches.
    wal_zero_bytes: Counter,
    /// System calls that wrote to logs, including those that write zeros. A frame in a mapped log needs no call.
    wal_writes: Counter,
    /// The number of syncs of logs.
    wal_syncs: Counter,
    /// Logs that reused the file, and so the space, of an obsolete log.
    wal_recycled: Counter,
    /// Memtables that were flushed to tables.
    flushes: Counter,
    /// Bytes of the tables that these flushes wrote.
    flush_bytes: Counter,
    /// Compactions of tables.
    compactions: Counter,
    /// Bytes of tables read by compactions.
    compaction_bytes_read: Counter,
    /// Bytes of tables written by compactions.
    compaction_bytes_written: Counter,
    /// Bytes of data blocks read by [`Db::verify`](crate::Db::verify), and by an open with
    /// [`RecoveryMode::Quarantine`](crate::RecoveryMode).
    verify_bytes_read: Counter,
    /// Commits of transactions that failed because of a conflict. The commits of `compare_and_swap` and of pops, which are then repeated, are counted
    /// too.
    conflicts: Counter,
    /// Newer writes that commits of transactions compared with their reads. If the record of newer writes did not go back to the transaction's
    /// beginning, this also counts the versions that were searched for newer ones.
    commit_checks: Counter,
    /// Keys without a value, removed or expired, that scans stepped over one by one; counted only if there were 16 or more in a row.
    dead_keys_passed: Counter,
    /// Point reads.
    gets: ReadCounter,
    /// Data blocks that point reads searched, in the cache or not.
    get_blocks: ReadCounter,
    /// Searches of tables that a filter made unnecessary.
    filter_negatives: ReadCounter,
    /// Searches of tables that passed a filter and found nothing: false positives, and keys whose versions in the table are all newer than the
    /// snapshot of the read.
    filter_false_positives: ReadCounter,
    /// Data blocks read from files.
    block_reads: Counter,
    /// Partitions (filters and indexes of groups of data blocks) read from files.
    partition_reads: Counter,
    /// Partitions found in the cache.
    partition_hits: ReadCounter,
    /// Partitions that were not found in the cache.
    partition_misses: ReadCounter,
    /// Data blocks found in the cache.
    cache_hits: ReadCounter,
    /// Data blocks that were not found in the cache.
    cache_misses: ReadCounter,
}

impl Metrics {
    /// Bytes of tables that flushes and compactions wrote, for each byte of keys and values flushed, since the database was created. This does not
    /// include the log, which adds one. `None` before the first flush.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.levels.iter().map(|level| level.written).sum(), self.flushed_user_bytes)
    }

    /// Data blocks searched, in the cache or not, for each point read since the database was opened. Reads that find their key in a memtable are
    /// counted and search no block. `None` before the first read.
    pub fn read_amplification(&self) -> Option<f64> {
        ratio(self.get_blocks, self.gets)
    }

    /// Bytes of all tables for each byte of the oldest run. This is the space amplification if all other entries only replace entries of that run; if
    /// newer runs have new keys, it is an overestimate. `None` if there is no table.
    pub fn space_amplification(&self) -> Option<f64> {
        ratio(self.levels.iter().map(|level| level.bytes).sum(), self.oldest_run_bytes)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// The size and the costs of one level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LevelMetrics {
    /// The number of tables.
    pub tables: u64,
    /// The number of sorted runs, each of one or more tables: a read may have to search each. On level 0 each table is a run.
    pub runs: u64,
    /// The number of range tombstones in the level's tables. Those with equal bounds in one table count once; one that is in two tables counts twice.
    pub range_tombstones: u64,
    /// The number of narrowed tables, of which an unfinished compaction has already consumed the lower keys. Their files keep their space until the
    /// compaction ends.
    pub narrowed: u64,
    /// Bytes of the tables' files.
    pub bytes: u64,
    /// Bytes that arrived from above since the database was created: flushes for level 0, otherwise tables compacted from the levels above.
    pub arrived: u64,
    /// Bytes of tables of the level that compactions read since the database was created.
    pub read: u64,
    /// Bytes of tables that flushes and compactions wrote to the level since the database was created.
    pub written: u64,
}

impl LevelMetrics {
    /// Bytes written to the level for each byte that arrived from above. Less than 1 if tables were moved, or obsolete versions dropped. `None` if no
    /// bytes arrived.
    pub fn write_amplification(&self) -> Option<f64> {
        ratio(self.written, self.arrived)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snapshot_shows_each_counter_under_its_own_name() {
        // Catches two counters that are swapped when they are copied into the snapshot.
        let counters = Counters::default();
        let waits = [&counters.stalls, &counters.slowdowns, &counters.log_waits];
        for (waits, n) in waits.into_iter().zip(1..) {
            waits.count.add(n);
            waits.nanos.add(10 * n);
        }
        counters.write_line.writes.add(4);
        counters.write_line.user_bytes.add(5);
        counters.write_line.frame_bytes.add(100);
        counters.wal_bytes.add(6);
        counters.wal_syncs.add(7);
        counters.gets.add(8);
        let time = Duration::from_nanos;
        let expected = Metrics {
            stalls: 1,
            stall_time: time(10),
            slowdowns: 2,
            slowdown_time: time(20),
            log_waits: 3,
            log_wait_time: time(30),
            writes: 4,
            user_bytes: 5,
            wal_bytes: 106,
            wal_syncs: 7,
            gets: 8,
            ..Metrics::default()
        };
        assert_eq!(counters.snapshot(), expected);
    }

    #[test]
    fn amplifications_are_what_was_done_for_what_was_asked() {
        // Catches an inverted ratio, and a division by zero.
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
