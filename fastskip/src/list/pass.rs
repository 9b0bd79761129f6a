//! A writer's way in and out, and what it takes from the arena meanwhile.

use super::List;
use crate::error::InsertError;
use crate::gate::{Left, Refusal};
use crate::height::height;
use crate::node::{Draft, NIL, Node};
use crate::search::Schema;
use crate::sync::{Ordering, PoisonError};

/// A writer's stay inside a shard's gate.
pub(crate) struct Pass<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    ticket: u64,
}

impl<S: Schema> List<S> {
    /// Enters `shard` (any number; it is folded) for `attempts` inserts.
    #[inline]
    pub(crate) fn enter(&self, shard: usize, attempts: u64) -> Result<Pass<'_, S>, InsertError> {
        let shard = shard % self.config.shards;
        match self.arena.shard(shard).gate.enter(attempts) {
            Ok(ticket) => Ok(Pass { list: self, shard, ticket }),
            Err((refusal, left)) => Err(self.turned_away(refusal, left)),
        }
    }

    #[cold]
    fn turned_away(&self, refusal: Refusal, left: Left) -> InsertError {
        self.left(left);
        match refusal {
            Refusal::Frozen => InsertError::Sealed,
            Refusal::Crowded => InsertError::Full,
        }
    }

    #[inline]
    fn left(&self, left: Left) {
        if left == Left::Drained {
            self.wake_freezer();
        }
    }

    #[cold]
    fn wake_freezer(&self) {
        // The lock lies between the freezer's look and its wait, so the wake-up cannot fall between them.
        let _looking = self.drain.0.lock().unwrap_or_else(PoisonError::into_inner);
        self.drain.1.notify_all();
    }

    /// Why a request failed. One that an empty table could not hold either is no sign of a full one; else, if a limit was
    /// reached, the table is full for good.
    #[cold]
    fn refused(&self, entries: u64, words: u64, tail: u64) -> InsertError {
        if !self.budget.could_hold(entries) || !self.arena.could_hold(words, tail) {
            return InsertError::TooLarge;
        }
        if self.arena.is_handed_out() || self.budget.is_used(1.0, self.entries() as u64) {
            self.full.store(true, Ordering::Relaxed);
            self.pressed.store(true, Ordering::Relaxed);
        }
        InsertError::Full
    }
}

impl<S: Schema> Drop for Pass<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.list.left(self.list.arena.shard(self.shard).gate.leave());
    }
}

impl<'a, S: Schema> Pass<'a, S> {
    /// The list inside whose gate this is.
    #[inline]
    pub(crate) fn list(&self) -> &'a List<S> {
        self.list
    }

    /// The height of this stay's `index`-th node.
    #[inline]
    pub(crate) fn height(&self, index: usize) -> usize {
        let ticket = self.ticket + index as u64;
        height(self.list.seed, ticket * self.list.config.shards as u64 + self.shard as u64)
    }

    /// Takes `words` in one piece (for none of them, [`NIL`]), and `entries` off the budget. The last `tail` words may lie past the limit.
    #[inline]
    pub(crate) fn reserve(&self, entries: u64, words: u64, tail: u64) -> Result<u32, InsertError> {
        let list = self.list;
        if words == 0 {
            return Ok(NIL);
        }
        let Ok(small) = u32::try_from(words) else { return Err(InsertError::TooLarge) };
        if list.full.load(Ordering::Relaxed) {
            return Err(InsertError::Full);
        }
        if !list.budget.take(entries, &list.arena.shard(self.shard).lease, list.leases()) {
            return Err(list.refused(entries, words, tail));
        }
        list.arena.alloc(self.shard, small, tail as u32).ok_or_else(|| {
            list.budget.give_back(entries);
            list.refused(entries, words, tail)
        })
    }

    /// Writes the bytes of `draft` into the piece at `start` that was reserved for it; returns the node's offset.
    ///
    /// # Safety
    /// `draft.words(S::META_WORDS)` words from `start` on came from [`reserve`](Self::reserve) and were used for nothing
    /// else.
    #[inline]
    pub(crate) unsafe fn write(&self, draft: &Draft<'_>, start: u32, meta: &[u64]) -> u32 {
        debug_assert_eq!(meta.len(), S::META_WORDS);
        let storage = &self.list.arena.storage;
        let off = start + draft.height as u32 - 1;
        // SAFETY: the piece is ours, and its tower begins at `start`.
        unsafe { draft.write(storage, off, S::META_WORDS) };
        for (index, word) in meta.iter().enumerate() {
            // SAFETY: the piece is ours; meta words follow the tower and are atomics from the start.
            let place = unsafe { Node { storage, off }.meta(index) };
            place.store(*word, Ordering::Relaxed);
        }
        off
    }

    /// Counts what this stay stored.
    #[inline]
    pub(crate) fn count(&self, entries: u64, tombstones: u64, key_bytes: u64, value_bytes: u64) {
        let counts = &self.list.arena.shard(self.shard).counts;
        counts.stored(entries, key_bytes, value_bytes);
        if tombstones != 0 {
            counts.deleted(tombstones);
        }
    }

    /// Counts an entry that became a tombstone.
    pub(crate) fn count_deleted(&self) {
        self.list.arena.shard(self.shard).counts.deleted(1);
    }

    /// Counts what this stay reserved for nothing.
    #[cold]
    pub(crate) fn waste(&self, entries: u64, words: u32) {
        self.list.arena.count_waste(self.shard, words);
        self.list.budget.give_back(entries);
    }
}
