//! Statistics of flushes and compactions: the bytes read and written so far, from which write amplification follows.
//!
//! Each edit carries the statistics of its own flush or compaction, and the manifest adds them up, so that the sums outlive the process.

use crate::metrics::MAX_LEVELS;

/// The largest sum; the format has no room for more.
const MAX_SUM: u64 = u64::MAX >> 1;

/// Bytes moved on behalf of one level.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LevelStats {
    /// Came from above: what was flushed to level 0, and the tables of upper levels that went into compactions or moved.
    pub(crate) arrived: u64,
    /// Read from tables of the level by compactions.
    pub(crate) read: u64,
    /// Written to tables of the level, by flushes and compactions. A table that only moves is not written.
    pub(crate) written: u64,
}

/// Statistics of all levels.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CompactionStats {
    /// Bytes of keys and values that flushes took from memtables: what the user has written.
    pub(crate) user_bytes: u64,
    pub(crate) levels: [LevelStats; MAX_LEVELS],
}

impl CompactionStats {
    /// The sum of both; at the largest number it stays.
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

    /// A flush, or a load, of `user_bytes` of keys and values into tables of `level` that have `table_bytes`.
    pub(crate) fn of_new(level: usize, user_bytes: u64, table_bytes: u64) -> CompactionStats {
        let mut stats = CompactionStats { user_bytes, ..CompactionStats::default() };
        stats.levels[level] = LevelStats { arrived: table_bytes, read: 0, written: table_bytes };
        stats
    }
}
