//! [`ScanCount`]: the number of scans that have merged runs of level 0 since the version last changed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::manifest::Version;

/// The bytes of level 0 that one scan justifies compacting. A scan of a hundred entries saves about 5 us if there is one run instead of two, in which
/// time a compaction writes 1 KiB; the higher value accounts for scans that save less (LevelDB: 16 KiB for each seek on a disk).
const BYTES_PER_SCAN: u64 = 4 << 10;
/// Fewer scans than this do not count as frequent.
const LEAST: u64 = 10_000;

/// Counts scans up to a limit, at which a compaction of level 0 is worthwhile.
#[derive(Debug)]
pub(crate) struct ScanCount {
    count: AtomicU64,
    limit: u64,
}

impl ScanCount {
    /// A count of 0 for `version`.
    pub(crate) fn new(version: &Version) -> ScanCount {
        ScanCount { count: AtomicU64::new(0), limit: (version.level_bytes(0) / BYTES_PER_SCAN).max(LEAST) }
    }

    /// Counts a scan. Returns true for the scan that reaches the limit.
    pub(crate) fn note_scan(&self) -> bool {
        // Relaxed: only the number matters. A thread that acts on the result takes the write lock first.
        !self.is_at_limit() && self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.limit
    }

    /// Whether the limit is reached.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_scan_of_all_threads_is_the_one_with_which_they_are_many() {
        // Catches a wake-up for each scan, and a missing one.
        let count = ScanCount::new(&Version::default());
        let scans = LEAST as usize;
        let told = || (0..scans / 2).filter(|_| count.note_scan()).count();
        let told: usize = std::thread::scope(|scope| {
            let threads = [(); 4].map(|()| scope.spawn(told));
            threads.into_iter().map(|thread| thread.join().expect("no panic")).sum()
        });
        assert_eq!((told, count.is_at_limit()), (1, true));
    }
}
