//! Admits a writer to a shard, allocates and writes its nodes, has them linked and counts them.

use super::List;
use super::gate::{Admission, LeaveState, Refusal};
use super::schema::Schema;
use super::stats::{Counts, Totals};
use super::towers::{GROUP, Group, Splice, Trail, coins};
use crate::error::InsertError;
use crate::node::{Kind, MAX_HEIGHT, NewNode, NodeId};
use crate::sync::PoisonError;

/// A writer inside a shard's gate; dropping it leaves.
pub(crate) struct Writer<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    admission: Admission,
}

/// What an insert came to.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// The node was linked.
    New(NodeId),
    /// This node was there already.
    Present(NodeId),
}

/// Where the words of new nodes come from: the arena, or a reservation.
pub(crate) trait NodeAlloc {
    /// The highest tower it can give.
    fn most_levels(&self) -> usize;

    /// Takes `words`, of which `levels` are a tower's.
    fn take(&mut self, words: u32, levels: usize) -> Result<u32, InsertError>;
}

impl<S: Schema> List<S> {
    /// Enters `shard` (any number; it is folded) for `attempts` inserts.
    #[inline]
    pub(crate) fn enter(&self, shard: usize, attempts: u64) -> Result<Writer<'_, S>, InsertError> {
        let shard = shard % self.config.shards;
        match self.arena.shard(shard).gate.enter(attempts) {
            Ok(admission) => Ok(Writer { list: self, shard, admission }),
            Err((refusal, state)) => Err(self.turned_away(refusal, state)),
        }
    }

    #[cold]
    fn turned_away(&self, refusal: Refusal, state: LeaveState) -> InsertError {
        self.leave_seen(state);
        match refusal {
            Refusal::Frozen => InsertError::Sealed,
            Refusal::Crowded => InsertError::Full,
        }
    }

    #[inline]
    fn leave_seen(&self, state: LeaveState) {
        if state == LeaveState::Drained {
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
        if !self.quota.could_hold(entries) || !self.arena.could_hold(words, tail) {
            return InsertError::TooLarge;
        }
        if self.arena.is_handed_out() || self.quota.is_used(1.0, || self.entries() as u64) {
            self.arena.mark_full();
        }
        InsertError::Full
    }
}

impl<S: Schema> Drop for Writer<'_, S> {
    #[inline]
    fn drop(&mut self) {
        self.list.leave_seen(self.list.arena.shard(self.shard).gate.leave());
    }
}

impl<'a, S: Schema> Writer<'a, S> {
    /// The coins of this writer's `index`-th node.
    #[inline]
    pub(crate) fn coins(&self, index: usize) -> u64 {
        let ticket = self.admission.ticket + index as u64;
        coins(self.list.seed, ticket * self.list.config.shards as u64 + self.shard as u64)
    }

    /// The shard's trail, if nobody else is inside.
    #[inline]
    pub(super) fn trail(&self) -> Option<&'a Trail> {
        self.admission.alone.then(|| &self.list.arena.shard(self.shard).trail)
    }

    /// Takes `words` in one piece (for none of them, offset 0), and `entries` off the quota. The last `tail` words may lie
    /// past the limit.
    #[inline]
    pub(crate) fn reserve(&self, entries: u64, words: u64, tail: u64) -> Result<u32, InsertError> {
        let list = self.list;
        if words == 0 {
            return Ok(0);
        }
        let Ok(small) = u32::try_from(words) else { return Err(InsertError::TooLarge) };
        if list.arena.is_marked_full() {
            return Err(InsertError::Full);
        }
        if !list.quota.take(entries, &list.arena.shard(self.shard).lease, list.leases()) {
            return Err(list.refused(entries, words, tail));
        }
        list.arena.alloc(self.shard, small, tail as u32).ok_or_else(|| {
            list.quota.give_back(entries);
            list.refused(entries, words, tail)
        })
    }

    /// Stores `new`, the `index`-th of this writer.
    #[inline]
    pub(crate) fn insert(
        &self,
        index: usize,
        new: &NewNode<'_>,
        alloc: &mut impl NodeAlloc,
    ) -> Result<Outcome, InsertError> {
        let mut splice = Splice::new();
        match self.list.locate(self.trail(), new.target(), self.coins(index), alloc.most_levels(), &mut splice) {
            Ok(height) => self.insert_at(&splice, height, new, alloc),
            Err(present) => Ok(Outcome::Present(present)),
        }
    }

    /// Stores the nodes that `new` returns, the first ones of this writer, and tells `done` the outcome of each, in their order.
    pub(crate) fn insert_all<'d>(
        &self,
        count: usize,
        new: impl Fn(usize) -> NewNode<'d>,
        alloc: &mut impl NodeAlloc,
        mut done: impl FnMut(usize, Result<Outcome, InsertError>),
    ) {
        // Large, and not needed by batches of one.
        let mut group = None;
        let mut from = 0;
        while from < count {
            let until = (from + GROUP).min(count);
            if until - from > 1 && self.list.is_large() && !self.list.is_next(self.trail(), new(from).target()) {
                let group = group.get_or_insert_with(Group::new);
                group.locate(self.list, (from..until).map(|index| new(index).target()));
                for (index, place) in (from..until).zip(group.places()) {
                    let outcome = match place {
                        Err(present) => Ok(Outcome::Present(present)),
                        Ok(splice) => {
                            let height = splice.height(self.coins(index), alloc.most_levels());
                            self.insert_at(splice, height, &new(index), alloc)
                        }
                    };
                    done(index, outcome);
                }
            } else {
                (from..until).for_each(|index| done(index, self.insert(index, &new(index), alloc)));
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
        new: &NewNode<'_>,
        alloc: &mut impl NodeAlloc,
    ) -> Result<Outcome, InsertError> {
        let words = new.words(height, S::META_WORDS);
        let start = alloc.take(words, height)?;
        let list = self.list;
        let meta = S::meta(new.version);
        // SAFETY: just taken for this node and tower.
        let id = unsafe { new.write(list.storage(), start, height, meta.as_ref()) };
        match list.commit(new.target(), splice, id, height, self.counts()) {
            Ok(()) => {
                if let Some(trail) = self.trail() {
                    trail.remember(splice, id, height);
                }
                self.counts()
                    .stored(Totals::entry(new.key, new.value, new.kind == Kind::Tombstone), self.admission.alone);
                Ok(Outcome::New(id))
            }
            Err(present) => {
                self.waste(1, words);
                Ok(Outcome::Present(present))
            }
        }
    }

    fn counts(&self) -> &'a Counts {
        &self.list.arena.shard(self.shard).counts
    }

    /// Counts an entry that became a tombstone.
    pub(crate) fn count_deleted(&self) {
        let deleted = Totals { tombstones: 1, ..Totals::default() };
        self.counts().stored(deleted, self.admission.alone);
    }

    /// Counts what this writer reserved for nothing.
    #[cold]
    pub(crate) fn waste(&self, entries: u64, words: u32) {
        self.list.arena.count_waste(self.shard, words);
        self.list.quota.give_back(entries);
    }

    /// Gives back what of a reservation was not used: into the shard if possible, else as waste.
    pub(crate) fn give_back(&self, entries: u64, start: u32, words: u32) {
        if !self.list.arena.give_back(self.shard, start, start + words) {
            self.list.arena.count_waste(self.shard, words);
        }
        self.list.quota.give_back(entries);
    }
}

/// Allocates each node from the arena when it is needed.
pub(crate) struct ArenaAlloc<'p, 'a, S: Schema>(pub(crate) &'p Writer<'a, S>);

impl<S: Schema> NodeAlloc for ArenaAlloc<'_, '_, S> {
    #[inline]
    fn most_levels(&self) -> usize {
        MAX_HEIGHT
    }

    #[inline]
    fn take(&mut self, words: u32, _: usize) -> Result<u32, InsertError> {
        self.0.reserve(1, words.into(), words.into())
    }
}
