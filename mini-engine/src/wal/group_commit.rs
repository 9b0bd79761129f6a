//! Group commit: the positions up to which a log is complete and durable, and one sync for all waiting threads.
//!
//! S2 every frame before `complete` is whole, in the file or in its mapping. The callers that advance it have checked that all earlier writes are
//! published; it may lag behind the whole frames.
//! S3 `synced` is the value that `complete` had when the last successful sync began. So a sync record never covers a hole.
//! S4 there is one sync at a time: the kernel reports a failure once, so a second sync at the same time as a failing one would wrongly succeed.
//!
//! Neither position ever goes back. The models of `loom-tests`, which compile this file, show this.

use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering, PoisonError};

/// The positions of a log, in bytes from its start.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    complete: AtomicU64,
    synced: AtomicU64,
    syncing: Mutex<()>,
}

impl GroupCommit {
    /// The positions of a log that is synced up to `start`.
    pub(crate) fn new(start: u64) -> Self {
        Self { complete: AtomicU64::new(start), synced: AtomicU64::new(start), syncing: Mutex::new(()) }
    }

    /// Records that every frame before `end` is whole (S2): a sync that begins from now on covers them.
    pub(crate) fn complete(&self, end: u64) {
        // ORDERING(complete): AcqRel; pairs with Acquire in `Turn::sync`. Weaker: a sync could count as covering frames that other threads had not
        // stored yet. Their publication has shown the caller that they were whole before this call.
        self.complete.fetch_max(end, Ordering::AcqRel);
    }

    /// The position up to which the log is synced.
    pub(crate) fn synced(&self) -> u64 {
        // ORDERING(synced): Acquire; pairs with Release in `Turn::sync`. Weaker: a frame could record a sync that other threads which see the frame
        // do not see yet.
        self.synced.load(Ordering::Acquire)
    }

    /// Waits for the turn to sync (S4).
    pub(crate) fn turn(&self) -> Turn<'_> {
        // The lock guards no data that could be inconsistent.
        Turn { commit: self, _syncing: self.syncing.lock().unwrap_or_else(PoisonError::into_inner) }
    }

    /// Takes the turn to sync, if no thread has it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        self.syncing.try_lock().ok().map(|syncing| Turn { commit: self, _syncing: syncing })
    }
}

/// The right to sync the log.
pub(crate) struct Turn<'a> {
    commit: &'a GroupCommit,
    _syncing: MutexGuard<'a, ()>,
}

impl Turn<'_> {
    /// Makes every [complete](GroupCommit::complete) frame durable by calling `device`, unless they already are. Returns whether `device` was called.
    ///
    /// # Errors
    /// The errors of `device`; after one, `synced` does not advance any more.
    pub(crate) fn sync<E>(&self, device: impl FnOnce() -> Result<(), E>) -> Result<bool, E> {
        // Loaded before the sync, which may not cover frames that become complete during it.
        let target = self.commit.complete.load(Ordering::Acquire);
        if self.commit.synced() >= target {
            return Ok(false);
        }
        device()?;
        self.commit.synced.store(target, Ordering::Release);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_complete_when_it_began_and_nothing_more() {
        // Catches a frame that counts as durable although it was stored during the sync, or was never reported as whole.
        let commit = GroupCommit::new(40);
        assert_eq!((commit.turn().sync(|| Err(())), commit.synced()), (Ok(false), 40));
        commit.complete(100);
        let during = || {
            assert!(commit.try_turn().is_none(), "two syncs at once");
            commit.complete(200);
            // This frame is reported late.
            commit.complete(150);
            Ok::<_, ()>(())
        };
        assert_eq!((commit.turn().sync(during), commit.synced()), (Ok(true), 100));
        assert_eq!((commit.turn().sync(|| Err("device")), commit.synced()), (Err("device"), 100));
        assert_eq!((commit.turn().sync(|| Ok::<_, ()>(())), commit.synced()), (Ok(true), 200));
        assert_eq!((commit.turn().sync(|| Err(())), commit.synced()), (Ok(false), 200));
    }
}
