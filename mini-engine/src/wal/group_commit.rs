//! Group commit: the positions up to which a log is whole and durable, and one sync for all threads that wait.
//!
//! S2 `complete` is an end before which every frame is whole, in the file or in its mapping. The callers that move it know that all
//!    earlier writes are published; it may lag behind what is whole.
//! S3 `synced` is where `complete` was when the last sync began that succeeded. So a sync record never covers a hole.
//! S4 one sync at a time: the kernel reports a failure once, so a second sync beside the failing one would lie.
//!
//! Neither position ever goes back. Shown by the models of `loom-tests`, which compile this file.

use crate::sync::{AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError};

/// The positions of a log, in bytes from its start.
#[derive(Debug)]
pub(crate) struct GroupCommit {
    complete: AtomicU64,
    synced: AtomicU64,
    is_syncing: Mutex<bool>,
    ended: Condvar,
}

impl GroupCommit {
    /// Of a log that is synced up to `start`.
    pub(crate) fn new(start: u64) -> Self {
        let (complete, synced) = (AtomicU64::new(start), AtomicU64::new(start));
        Self { complete, synced, is_syncing: Mutex::new(false), ended: Condvar::new() }
    }

    /// Says that every frame before `end` is whole (S2): a sync that begins from now on covers them.
    pub(crate) fn complete(&self, end: u64) {
        // ORDERING(complete): AcqRel; pairs with Acquire in `Turn::sync`. Weaker: a sync could be taken to cover frames that other
        // threads had not stored yet. That they were whole before this call the caller knows from their publication.
        self.complete.fetch_max(end, Ordering::AcqRel);
    }

    /// Up to where the log is synced.
    pub(crate) fn synced(&self) -> u64 {
        // ORDERING(synced): Acquire; pairs with Release in `Turn::sync`. Weaker: a frame could record a sync that had not taken place
        // for all who see the frame.
        self.synced.load(Ordering::Acquire)
    }

    /// Waits for the turn to sync (S4).
    pub(crate) fn turn(&self) -> Turn<'_> {
        let mut is_syncing = self.lock();
        while *is_syncing {
            is_syncing = self.wait(is_syncing);
        }
        self.take(is_syncing)
    }

    /// The turn to sync, if nobody has it.
    pub(crate) fn try_turn(&self) -> Option<Turn<'_>> {
        let is_syncing = self.lock();
        (!*is_syncing).then(|| self.take(is_syncing))
    }

    fn take(&self, mut is_syncing: MutexGuard<'_, bool>) -> Turn<'_> {
        *is_syncing = true;
        Turn(self)
    }

    fn lock(&self) -> MutexGuard<'_, bool> {
        self.is_syncing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, is_syncing: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
        self.ended.wait(is_syncing).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The right to sync the log, until it is dropped: after a panic too, or everybody would wait for ever.
pub(crate) struct Turn<'a>(&'a GroupCommit);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        *self.0.lock() = false;
        self.0.ended.notify_all();
    }
}

impl Turn<'_> {
    /// Makes every [complete](GroupCommit::complete) frame durable by `device`, unless they are. Whether that was called.
    ///
    /// # Errors
    /// Those of `device`; nothing counts as synced then that did not before.
    pub(crate) fn sync<E>(&self, device: impl FnOnce() -> Result<(), E>) -> Result<bool, E> {
        // Before the sync: what becomes complete meanwhile it may miss.
        let target = self.0.complete.load(Ordering::Acquire);
        if self.0.synced() >= target {
            return Ok(false);
        }
        device()?;
        self.0.synced.store(target, Ordering::Release);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sync_covers_what_was_complete_when_it_began_and_nothing_more() {
        // Catches a frame that counts as durable though it was stored while the device was at work, or was never said to be whole.
        let commit = GroupCommit::new(40);
        assert_eq!((commit.turn().sync(|| Err(())), commit.synced()), (Ok(false), 40));
        commit.complete(100);
        let during = || {
            assert!(commit.try_turn().is_none(), "two syncs at once");
            commit.complete(200);
            // One that is told late.
            commit.complete(150);
            Ok::<_, ()>(())
        };
        assert_eq!((commit.turn().sync(during), commit.synced()), (Ok(true), 100));
        assert_eq!((commit.turn().sync(|| Err("device")), commit.synced()), (Err("device"), 100));
        assert_eq!((commit.turn().sync(|| Ok::<_, ()>(())), commit.synced()), (Ok(true), 200));
        assert_eq!((commit.turn().sync(|| Err(())), commit.synced()), (Ok(false), 200));
    }
}
