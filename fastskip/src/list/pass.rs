//! A writer's way in and out, and what it takes from the arena meanwhile.

use super::List;
use super::group::{GROUP, Group};
use super::splice::Splice;
use crate::error::InsertError;
use crate::gate::{Left, Refusal, Stay};
use crate::height::{MAX_HEIGHT, coins};
use crate::node::{Draft, Kind, NIL, Node};
use crate::search::Schema;
use crate::stats::Totals;
use crate::storage::WORD;
use crate::sync::{Ordering, PoisonError};
use crate::trail::Trail;

/// A writer's stay inside a shard's gate.
pub(crate) struct Pass<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    stay: Stay,
}

/// What an insert came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// The node was linked.
    New(u32),
    /// This node was there already.
    Present(u32),
}

/// Where an insert takes its words from.
pub(crate) trait Room {
    /// The highest tower it can give.
    fn most_levels(&self) -> usize;

    /// Takes `words`, of which `levels` are a tower's.
    fn take(&mut self, words: u32, levels: usize) -> Result<u32, InsertError>;
}

impl<S: Schema> List<S> {
    /// Enters `shard` (any number; it is folded) for `attempts` inserts.
    #[inline]
    pub(crate) fn enter(&self, shard: usize, attempts: u64) -> Result<Pass<'_, S>, InsertError> {
        let shard = shard % self.config.shards;
        match self.arena.shard(shard).gate.enter(attempts) {
            Ok(stay) => Ok(Pass { list: self, shard, stay }),
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
        if self.arena.is_handed_out() || self.budget.is_used(1.0, || self.entries() as u64) {
            self.arena.close();
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

    /// The coins of this stay's `index`-th node.
    #[inline]
    pub(crate) fn coins(&self, index: usize) -> u64 {
        let ticket = self.stay.ticket + index as u64;
        coins(self.list.seed, ticket * self.list.config.shards as u64 + self.shard as u64)
    }

    /// The shard's trail, if nobody else is inside.
    #[inline]
    pub(super) fn trail(&self) -> Option<&'a Trail> {
        self.stay.alone.then(|| &self.list.arena.shard(self.shard).trail)
    }

    /// Takes `words` in one piece (for none of them, [`NIL`]), and `entries` off the budget. The last `tail` words may lie past the limit.
    #[inline]
    pub(crate) fn reserve(&self, entries: u64, words: u64, tail: u64) -> Result<u32, InsertError> {
        let list = self.list;
        if words == 0 {
            return Ok(NIL);
        }
        let Ok(small) = u32::try_from(words) else { return Err(InsertError::TooLarge) };
        if list.arena.is_closed() {
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

    /// Stores `draft`, the `index`-th of this stay.
    #[inline]
    pub(crate) fn insert(&self, index: usize, draft: &Draft<'_>, room: &mut impl Room) -> Result<Outcome, InsertError> {
        let mut splice = Splice::new();
        match self.locate(draft.target(), self.coins(index), room.most_levels(), &mut splice) {
            Ok(height) => self.insert_at(&splice, height, draft, room),
            Err(present) => Ok(Outcome::Present(present)),
        }
    }

    /// Stores `drafts`, the first ones of this stay, and tells `done` the outcome of each, in their order.
    pub(crate) fn insert_all<'d>(
        &self,
        count: usize,
        draft: impl Fn(usize) -> Draft<'d>,
        room: &mut impl Room,
        mut done: impl FnMut(usize, Result<Outcome, InsertError>),
    ) {
        // Large, and not needed by batches of one.
        let mut group = None;
        let mut from = 0;
        while from < count {
            let until = (from + GROUP).min(count);
            if until - from > 1 && self.list.is_large() && !self.is_next(draft(from).target()) {
                let group = group.get_or_insert_with(Group::new);
                group.locate(self.list, (from..until).map(|index| draft(index).target()));
                for (index, place) in (from..until).zip(group.places()) {
                    let outcome = match place {
                        Err(present) => Ok(Outcome::Present(present)),
                        Ok(splice) => {
                            let height = splice.height(self.coins(index), room.most_levels());
                            self.insert_at(splice, height, &draft(index), room)
                        }
                    };
                    done(index, outcome);
                }
            } else {
                (from..until).for_each(|index| done(index, self.insert(index, &draft(index), room)));
            }
            from = until;
        }
    }

    /// Writes the node and links it.
    #[inline]
    fn insert_at(
        &self,
        splice: &Splice,
        height: usize,
        draft: &Draft<'_>,
        room: &mut impl Room,
    ) -> Result<Outcome, InsertError> {
        let words = draft.words(height, S::META_WORDS);
        let start = room.take(words, height)?;
        // SAFETY: just taken for this draft and tower.
        let off = unsafe { self.write(draft, start, height) };
        match self.commit(draft.target(), splice, off, height) {
            Ok(()) => {
                self.remember(splice, off, height);
                self.count(draft);
                Ok(Outcome::New(off))
            }
            Err(present) => {
                self.waste(1, words);
                Ok(Outcome::Present(present))
            }
        }
    }

    /// Writes the bytes of `draft` into the piece at `start`; returns the node's offset.
    ///
    /// # Safety
    /// As many words as the draft has with a tower of `height`, from `start` on, came from [`Room::take`] and were used for
    /// nothing else.
    #[inline]
    unsafe fn write(&self, draft: &Draft<'_>, start: u32, height: usize) -> u32 {
        let storage = &self.list.arena.storage;
        let off = start + height as u32 - 1;
        storage.open(start, (height + S::META_WORDS) * WORD + draft.bytes());
        // SAFETY: the piece is ours, and its tower begins at `start`.
        unsafe { draft.write(storage, off, S::META_WORDS) };
        for (index, word) in S::meta(draft.version).as_ref().iter().enumerate() {
            // SAFETY: the piece is ours; meta words follow the tower and are atomics from the start.
            let place = unsafe { Node { storage, off }.meta(index) };
            place.store(*word, Ordering::Relaxed);
        }
        off
    }

    /// Counts an entry that was stored.
    #[inline]
    fn count(&self, draft: &Draft<'_>) {
        let entry = Totals::entry(draft.key, draft.value, draft.kind == Kind::Tombstone);
        self.list.arena.shard(self.shard).counts.stored(entry, self.stay.alone);
    }

    /// Counts a link that another thread changed first.
    #[cold]
    pub(super) fn count_cas_failure(&self) {
        self.list.arena.shard(self.shard).counts.cas_failed();
    }

    /// Counts an entry that became a tombstone.
    pub(crate) fn count_deleted(&self) {
        let deleted = Totals { tombstones: 1, ..Totals::default() };
        self.list.arena.shard(self.shard).counts.stored(deleted, self.stay.alone);
    }

    /// Counts what this stay reserved for nothing.
    #[cold]
    pub(crate) fn waste(&self, entries: u64, words: u32) {
        self.list.arena.count_waste(self.shard, words);
        self.list.budget.give_back(entries);
    }

    /// Gives back what of a reservation was not used: into the shard if possible, else as waste.
    pub(crate) fn give_back(&self, entries: u64, start: u32, words: u32) {
        if !self.list.arena.give_back(self.shard, start, start + words) {
            self.list.arena.count_waste(self.shard, words);
        }
        self.list.budget.give_back(entries);
    }
}

/// Room that is taken from the arena as it is needed.
pub(crate) struct Fresh<'p, 'a, S: Schema>(pub(crate) &'p Pass<'a, S>);

impl<S: Schema> Room for Fresh<'_, '_, S> {
    #[inline]
    fn most_levels(&self) -> usize {
        MAX_HEIGHT
    }

    #[inline]
    fn take(&mut self, words: u32, _: usize) -> Result<u32, InsertError> {
        self.0.reserve(1, words.into(), words.into())
    }
}
