//! [`Space`]: the space of a disk, and the limits that follow from it.

use std::fs::File;
use std::sync::Arc;

use mini_engine::Db;

/// The part of a disk that may hold entries of the log for members that lack them, and the most bytes.
const PART_FOR_LOG: u64 = 10;
const MOST_FOR_LOG: u64 = 8 << 30;
/// The part of a disk that must be free, within these bytes; but at most the larger part.
const PART_FREE: u64 = 50;
const LEAST_FREE: u64 = 1 << 30;
const MOST_FREE: u64 = 8 << 30;
const MOST_PART_FREE: u64 = 10;

/// Measures the space of a node. Tests use disks that seem to be full.
pub(crate) type SpaceSource = Arc<dyn Fn() -> Option<Space> + Send + Sync>;

/// Bytes of a file system.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Space {
    pub(crate) total: u64,
    pub(crate) free: u64,
}

impl Space {
    /// The space for an open directory, if the system knows it. At its path, another disk may be by now.
    pub(crate) fn of(dir: &File) -> Option<Space> {
        let found = rustix::fs::fstatvfs(dir).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Some(Space { total: bytes(found.f_blocks), free: bytes(found.f_bavail) })
    }

    /// The default of [`Settings::keep_log`](crate::Settings::keep_log).
    pub(crate) fn for_log(self) -> u64 {
        (self.total / PART_FOR_LOG).min(MOST_FOR_LOG)
    }

    /// The default of [`Settings::min_free_bytes`](crate::Settings::min_free_bytes).
    pub(crate) fn min_free(self) -> u64 {
        (self.total / PART_FREE).clamp(LEAST_FREE, MOST_FREE).min(self.total / MOST_PART_FREE)
    }

    /// Whether the disk is almost full. If it `was` before, a quarter more must be free.
    pub(crate) fn is_almost_full(self, min_free: u64, was: bool) -> bool {
        self.free < if was { with_slack(min_free) } else { min_free }
    }
}

/// The bytes that end an alarm.
pub(crate) fn with_slack(min_free: u64) -> u64 {
    min_free.saturating_add(min_free / 4)
}

pub(crate) fn table_bytes(db: &Db) -> u64 {
    db.metrics().levels.iter().map(|level| level.bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_again_only_some_way_off_the_limit() {
        // Catches writes that are refused and accepted in turn, a limit of 0 that refuses all, and a small or a large disk with an absurd limit.
        let almost_full = |free| [false, true].map(|was| Space { total: 1000, free }.is_almost_full(100, was));
        assert_eq!([99, 100, 125].map(almost_full), [[true; 2], [false, true], [false; 2]]);
        assert!(!Space { total: 1000, free: 0 }.is_almost_full(0, true));
        let min_free = |gib: u64| Space { total: gib << 30, free: 0 }.min_free();
        assert_eq!([5, 20, 100, 1000].map(min_free), [1 << 29, 1 << 30, 2 << 30, 8 << 30]);
    }
}
