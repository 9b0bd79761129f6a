//! [`LogSync`]: lets one thread sync a log for all waiting writers.

use std::sync::{Condvar, Mutex};
use std::thread::yield_now;

use crate::error::Result;
use crate::lock::{lock, wait};

/// The number of times that a thread yields its processor before it syncs for all waiting threads; this takes a fraction of the sync's time.
const YIELDS_BEFORE_SYNC: usize = 4;

/// The turn to sync; there is one for all logs: a thread that waits for a failing sync must not sync a later log, which might succeed (rule 7).
#[derive(Debug, Default)]
pub(super) struct LogSync {
    is_syncing: Mutex<bool>,
    /// When a sync ends, all waiting writers check at once whether it covered their writes.
    ended: Condvar,
}

impl LogSync {
    /// Runs `sync` when the turn comes, unless `is_synced` is true before.
    pub(super) fn in_turn(&self, is_synced: impl Fn() -> bool, sync: impl FnOnce() -> Result<()>) -> Result<()> {
        let mut is_syncing = lock(&self.is_syncing);
        // The change that is waited for may happen before each check.
        while !is_synced() && *is_syncing {
            is_syncing = wait(&self.ended, is_syncing);
        }
        if is_synced() {
            return Ok(());
        }
        *is_syncing = true;
        drop(is_syncing);
        let _turn = SyncTurn(self);
        // The threads that the last sync has woken are about to write again, and this sync should cover their writes.
        for _ in 0..YIELDS_BEFORE_SYNC {
            yield_now();
        }
        sync()
    }
}

/// The turn to sync. It ends when this is dropped, also after a panic; otherwise all other threads would wait for ever.
struct SyncTurn<'a>(&'a LogSync);

impl Drop for SyncTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.is_syncing) = false;
        self.0.ended.notify_all();
    }
}
