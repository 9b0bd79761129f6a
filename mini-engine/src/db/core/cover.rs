//! The state of the reserve: its file, and what writes are checked against. `reserve.rs` has its rules, R1 to R6.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize};

use super::attempts::Attempts;

/// The lock of the file, who uses its space, and whether it is too small.
#[derive(Debug, Default)]
pub(crate) struct Reserve {
    /// Locked while the file changes, before the write lock and after the manifest's. [`Cover`] has its length.
    pub(super) file: Mutex<()>,
    /// The number of steps that may use its space now. It rises with the file locked.
    pub(super) users: AtomicUsize,
    /// R4. Changes with the write lock held. Relaxed: no other memory depends on it.
    pub(super) is_tight: AtomicBool,
    /// Whether the active memtable has removals that were accepted without a reserve. As `is_tight`.
    pub(crate) has_removals: AtomicBool,
}

/// The reserve that a write must be within (R2). Guarded by the write lock.
#[derive(Debug, Default)]
pub(crate) struct Cover {
    /// The length of the reserve; 0 when it was given up.
    pub(super) bytes: u64,
    /// The part of it that is not for memtables.
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
