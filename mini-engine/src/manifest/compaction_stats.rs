//! Statistics of flushes and compactions: the bytes read and written so far, for the write amplification.
//!
//! Each edit contains the statistics of its own flush or compaction, and the manifest adds them up, so that the sums survive the process.

use crate::metrics::MAX_LEVELS;

/// The largest sum that the format can store.
const MAX_SUM: u64 = u64::MAX >> 1;

/// Bytes that flushes and compactions of one level moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LevelStats {
    /// Bytes that arrived from above: from flushes for level 0, otherwise from tables of upper levels that were compacted or moved.
    pub(crate) arrived: u64,
    /// Bytes that compactions read from tables of the level.
    pub(crate) read: u64,
    /// Bytes that flushes and compactions wrote to tables of the level. A table that is only moved is not written.
    pub(crate) written: u64,
}

/// Statistics of all levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CompactionStats {
    /// Bytes of keys and values that flushes took from memtables: the user's writes.
    pub(crate) user_bytes: u64,
    pub(crate) levels: [LevelStats; MAX_LEVELS],
}

impl CompactionStats {
    /// The sum of `self` and `other`, which saturates at [`MAX_SUM`].
    pub(crate) fn plus(mut self, other: &CompactionStats) -> CompactionStats {
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more).min(MAX_SUM);
        add(&mut self.user_bytes, other.user_bytes);
        for (sum, more) in self.levels.iter_mut().zip(&other.levels) {
            add(&mut sum.arrived, more.arrived);
            add(&mut sum.read, more.read);
            add(&mut sum.written, more.written);
        }
        self
    }

    /// The statistics of a flush, or an ingest, of `user_bytes` of keys and values into tables of `level` that have `table_bytes`.
    pub(crate) fn of_new(level: usize, user_bytes: u64, table_bytes: u64) -> CompactionStats {
        let mut stats = CompactionStats { user_bytes, ..CompactionStats::default() };
        stats.levels[level] = LevelStats { arrived: table_bytes, read: 0, written: table_bytes };
        stats
    }
}
