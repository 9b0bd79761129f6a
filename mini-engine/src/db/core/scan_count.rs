//! [`ScanCount`]: the scans that have merged runs of level 0 since the version last changed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::manifest::Version;

/// Bytes of level 0 that are worth one scan. A scan of a hundred entries gains about 5 us from one run instead of two, in which time a compaction
/// writes 1 KiB; the rest is for scans that gain less (LevelDB: 16 KiB for each seek on a disk).
const BYTES_PER_SCAN: u64 = 4 << 10;
/// Fewer scans are no habit.
const LEAST: u64 = 10_000;

/// Counts up to a limit, at which level 0 is worth a compaction for the sake of scans.
#[derive(Debug)]
pub(crate) struct ScanCount {
    count: AtomicU64,
    limit: u64,
}

impl ScanCount {
    /// No scans yet of `version`.
    pub(crate) fn new(version: &Version) -> ScanCount {
        ScanCount { count: AtomicU64::new(0), limit: (version.level_bytes(0) / BYTES_PER_SCAN).max(LEAST) }
    }

    /// Counts a scan. True for the one with which they became many.
    pub(crate) fn note_scan(&self) -> bool {
        // Relaxed: the number alone counts. A thread that acts on it takes the write lock first.
        !self.is_at_limit() && self.count.fetch_add(1, Ordering::Relaxed) + 1 == self.limit
    }

    /// Whether there have been many.
    pub(crate) fn is_at_limit(&self) -> bool {
        self.count.load(Ordering::Relaxed) >= self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_scan_of_all_threads_is_the_one_with_which_they_are_many() {
        // Catches a wake-up for each scan, and none.
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
