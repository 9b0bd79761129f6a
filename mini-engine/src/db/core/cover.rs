//! The state of the reserve: its file, and the limits that writes are checked against. `reserve.rs` has its rules, R1 to R6.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::attempts::Attempts;

/// The lock of the reserve's file, the number of the reserve's users, and whether the reserve is too small.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Locked while the file changes; taken after the manifest's lock and before the write lock. [`Cover`] has the length of the file.
    pub(super) file: Mutex<()>,
    /// The number of steps that may use the reserve's space now. It is increased only with the file locked.
    pub(super) users: AtomicUsize,
    /// The database is tight (R4). Changes with the write lock held. Relaxed: no other memory depends on it.
    pub(super) is_tight: AtomicBool,
    /// Whether the active memtable has removals that were accepted although the reserve was too small. Guarded like `is_tight`.
    pub(crate) has_removals: AtomicBool,
}

/// The reserve that limits writes (R2). Guarded by the write lock.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// The length of the reserve; 0 after it was given up.
    pub(super) bytes: u64,
    /// The part of the required size that is not for memtables.
    pub(super) besides: u64,
    /// The memory of the largest write that waits for a larger reserve.
    pub(super) wanted: usize,
    pub(crate) attempts: Attempts,
}

impl Cover {
    /// Requests a reserve for a write of `memory` bytes. Returns whether the thread of the logs must be woken.
    pub(crate) fn want(&mut self, memory: usize) -> bool {
        self.wanted = self.wanted.max(memory);
        self.attempts.want()
    }
}

impl Reserve {
    pub(crate) fn new(bytes: u64, besides: u64) -> (Reserve, Cover) {
        let reserve = Reserve { is_tight: (bytes < besides).into(), ..Reserve::default() };
        (reserve, Cover { bytes, besides, ..Cover::default() })
    }
}
