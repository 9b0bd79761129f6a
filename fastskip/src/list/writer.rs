//! Admits a writer to a shard; allocates, writes, links and counts its nodes. If the last write of a key and version wins in this table, lets a new
//! node replace the contents of the linked one (I10, `node/read.rs`).

use core::ops::Range;

use super::counts::Totals;
use super::run::Run;
use super::state::{List, Shard};
use crate::error::InsertError;
use crate::index::{Hinted, Seek, Split};
use crate::mem::arena::INDEX_WORDS;
use crate::node::{self, Kind, NewNode, NodeId, Nodes, Record, Schema, Target};
use crate::sync::{AtomicU64, Ordering};
use crate::tuning::{GROUP, WALK_LIMIT};

/// A writer inside a shard's gate; dropping it leaves the gate.
pub(crate) struct Writer<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    pub(super) state: &'a Shard,
    /// Whether no other writer is inside the shard.
    pub(super) is_alone: bool,
}

/// The number of words that a reservation of `entries` leaves for the index. The last entry may use up the limit entirely.
pub(crate) fn index_words(entries: u64) -> u64 {
    INDEX_WORDS * entries.saturating_sub(1)
}

/// Entries of a reservation that were announced and not stored yet: other allocations leave free the words that the index needs for them.
pub(crate) struct Announced<'a> {
    shard: &'a AtomicU64,
    entries: u64,
}

impl Announced<'_> {
    /// Records that `entries` more were stored.
    pub(crate) fn stored(&mut self, entries: usize) {
        let entries = self.entries.min(entries as u64);
        self.entries -= entries;
        self.shard.fetch_sub(entries, Ordering::Relaxed);
    }
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        if self.entries != 0 {
            self.shard.fetch_sub(self.entries, Ordering::Relaxed);
        }
    }
}

/// The result of an insert.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Outcome {
    /// The node was linked.
    New(NodeId),
    /// This node with the same key and version was already linked.
    Present(NodeId),
    /// This node was already linked, and now shows the contents of the new node.
    Replaced(NodeId),
}

/// The source of the words of new nodes: the arena, or a reservation.
pub(crate) trait NodeAlloc {
    /// Takes `words`, and `entries` from the limit on entries: one for a new entry, none for a replacement.
    fn take(&mut self, words: u32, entries: u64) -> Result<u32, InsertError>;

    /// Whether a present node stays as it is although nodes of the table are replaceable.
    #[inline(always)]
    fn keeps_present(&self) -> bool {
        false
    }
}

impl<S: Schema> List<S> {
    /// Enters `shard` for `attempts` inserts; `shard` may be any number, and is reduced modulo the number of shards.
    #[inline]
    pub(crate) fn enter(&self, shard: usize, attempts: u64) -> Result<Writer<'_, S>, InsertError> {
        // Avoids the division in most calls.
        let shard = if shard < self.config.arena.shards { shard } else { shard % self.config.arena.shards };
        let state = self.shard(shard);
        match state.gate.enter(attempts) {
            Ok(is_alone) => Ok(Writer { list: self, shard, state, is_alone }),
            Err((error, is_drained)) => {
                if is_drained {
                    self.freezing.wake();
                }
                Err(error)
            }
        }
    }

    /// Whether an empty table has memory for `entries` entries whose nodes take `words`; the last `tail` of these words may lie past the limit.
    pub(crate) fn could_hold(&self, entries: u64, words: u64, tail: u64) -> bool {
        self.nodes().arena.could_hold(words + index_words(entries), tail)
    }

    /// The reason why a request for a part of a limit failed, or one that the budget refused: even an empty table could not hold it, or this table has
    /// no room for it now.
    ///
    /// If the request was small, backpressure begins: all but a small part of the limit is used, or will be by a thread that is just fetching a
    /// chunk.
    #[cold]
    fn refused(&self, entries: u64, words: u64, tail: u64, own: Option<(u64, u64)>) -> InsertError {
        if !self.quota.could_hold(entries) || !self.could_hold(entries, words, tail) {
            return InsertError::TooLarge;
        }
        if own.is_some_and(|(asked, limit)| asked as f64 <= limit as f64 * (1.0 - self.config.backpressure_at)) {
            self.press();
        }
        InsertError::Full
    }
}

impl<S: Schema> Drop for Writer<'_, S> {
    #[inline]
    fn drop(&mut self) {
        if self.state.gate.leave() {
            self.list.freezing.wake();
        }
    }
}

impl<'a, S: Schema> Writer<'a, S> {
    /// The run of the shard, if no other writer is inside.
    #[inline]
    pub(super) fn run(&self) -> Option<&'a Run> {
        self.is_alone.then_some(&self.state.run)
    }

    /// Announces a reservation of `entries`, before it allocates their words.
    pub(crate) fn announce(&self, entries: usize) -> Announced<'a> {
        let announced = Announced { shard: &self.state.announced, entries: entries.saturating_sub(1) as u64 };
        if announced.entries != 0 {
            // Relaxed: see `Arena::pending`.
            announced.shard.fetch_add(announced.entries, Ordering::Relaxed);
        }
        announced
    }

    /// Takes `words` in one piece (offset 0 if `words` is 0), and takes `entries` from the quota. The last `tail` words may lie past the limit.
    #[inline]
    pub(crate) fn reserve(&self, entries: u64, words: u64, tail: u64) -> Result<u32, InsertError> {
        let list = self.list;
        if words == 0 {
            return Ok(0);
        }
        let Ok(small) = u32::try_from(words) else { return Err(InsertError::TooLarge) };
        if entries != 0 && !list.quota.take(entries, self.shard, |shard| &list.shard(shard).lease) {
            return Err(list.refused(entries, words, tail, Some((entries, list.quota.limit))));
        }
        let arena = &list.nodes().arena;
        let start = arena.alloc(self.shard, small, tail as u32).filter(|start| {
            let has_room = entries < GROUP as u64 || arena.has_index_room(tail);
            if !has_room {
                arena.give_back(self.shard, *start, *start + small);
            }
            has_room
        });
        start.ok_or_else(|| {
            list.quota.give_back(entries);
            // A refusal by the budget says nothing about this table.
            let is_own = list.config.arena.budget.is_none() || arena.is_own_limit_short(words);
            list.refused(entries, words, tail, is_own.then_some((words, arena.limit)))
        })
    }

    /// Stores `new`. If its key and version are stored already, `REPLACE` replaces that entry, unless `alloc` [keeps](NodeAlloc::keeps_present) it.
    /// `REPLACE` is for tables that have only replaceable nodes.
    #[inline]
    pub(crate) fn insert<const REPLACE: bool>(
        &self,
        new: &NewNode<'_>,
        alloc: &mut impl NodeAlloc,
    ) -> Result<Outcome, InsertError> {
        let target = new.target();
        let (seek, direction) = self.locate(target, || self.list.index.seek(target, &mut ()));
        self.insert_at::<REPLACE>(seek, direction, new, alloc)
    }

    /// [Stores](Self::insert) the nodes that `new` returns, in order, and calls `done` with the outcome of each.
    pub(crate) fn insert_all<'d, const REPLACE: bool>(
        &self,
        count: usize,
        new: impl Fn(usize) -> NewNode<'d>,
        alloc: &mut impl NodeAlloc,
        mut done: impl FnMut(usize, Result<Outcome, InsertError>),
    ) {
        for from in (0..count).step_by(GROUP) {
            let group = from..(from + GROUP).min(count);
            let follows = || self.run().is_some_and(|run| run.follow(&self.list.index, new(from).target()).is_some());
            if group.len() == 1 || follows() {
                group.for_each(|index| done(index, self.insert::<REPLACE>(&new(index), alloc)));
            } else {
                self.insert_group::<REPLACE>(group, &new, alloc, &mut done);
            }
        }
    }

    /// Stores at most [`GROUP`] nodes, whose places are found by one group of searches. A search of the group does not see the nodes that the group
    /// links later; so each insert first walks on from the place that it found.
    fn insert_group<'d, const REPLACE: bool>(
        &self,
        group: Range<usize>,
        new: &impl Fn(usize) -> NewNode<'d>,
        alloc: &mut impl NodeAlloc,
        done: &mut impl FnMut(usize, Result<Outcome, InsertError>),
    ) {
        let targets: [Target<'_>; GROUP] = core::array::from_fn(|index| match group.start + index {
            index if index < group.end => new(index).target(),
            _ => Target { key: &[], version: 0 },
        });
        let mut seeks: [Option<Seek>; GROUP] = [None; GROUP];
        self.list.seek_group(&targets[..group.len()], &mut seeks);
        for (index, seek) in group.zip(seeks.into_iter().flatten()) {
            let new = new(index);
            let (seek, direction) = self.locate(new.target(), || {
                let mut seek = seek;
                if seek.found.is_none() {
                    // Nodes that the group has linked meanwhile may precede the target. They have hints, so a walk over them is no reason to mend.
                    let walked = seek.splice.walked;
                    seek.found = self.nodes().walk_on(new.target(), &mut seek.splice, &mut ()).err();
                    seek.splice.walked = walked + u32::from(seek.splice.walked > walked);
                }
                seek
            });
            done(index, self.insert_at::<REPLACE>(seek, direction, &new, alloc));
        }
    }

    /// The place of `target`, and where a full leaf is to be cut for it. The place comes from the run if the target continues it, otherwise from
    /// `search`.
    #[inline(always)]
    fn locate(&self, target: Target<'_>, search: impl FnOnce() -> Seek) -> (Seek, Split) {
        let run = self.run();
        if let Some(next) = run.and_then(|run| run.follow(&self.list.index, target)) {
            return next;
        }
        let seek = search();
        (seek, run.map_or(Split::Even, |run| run.direction(&seek.splice)))
    }

    /// Writes the node and links it, unless the search has found the same key and version.
    #[inline(always)]
    fn insert_at<const REPLACE: bool>(
        &self,
        seek: Seek,
        direction: Split,
        new: &NewNode<'_>,
        alloc: &mut impl NodeAlloc,
    ) -> Result<Outcome, InsertError> {
        if let Some(present) = seek.found {
            if REPLACE && !alloc.keeps_present() {
                self.list.index.mend_after_read(&seek);
                return Ok(self.replace_by(present, self.write::<REPLACE>(new, 0, alloc)?, 0));
            }
            return Ok(Outcome::Present(present));
        }
        let mut splice = seek.splice;
        let nodes = self.nodes();
        let id = self.write::<REPLACE>(new, 1, alloc)?;
        let entry = Totals::entry(new.key.len(), new.value_len, new.kind == Kind::Tombstone);
        if S::HAS_VERSIONS {
            self.state.counts.note_seqno(new.version, self.is_alone);
        }
        self.state.counts.stored(entry, self.is_alone);
        match nodes.commit(new.target(), &mut splice, id, || self.state.counts.cas_failed()) {
            Ok(()) => {
                self.add_hint(id, new.target(), Seek { splice, ..seek }, direction);
                Ok(Outcome::New(id))
            }
            Err(present) => {
                self.state.counts.not_stored(entry, self.is_alone);
                if REPLACE && !alloc.keeps_present() {
                    return Ok(self.replace_by(present, id, 1));
                }
                self.waste(1, u32::from(REPLACE) + new.words(S::META_WORDS));
                Ok(Outcome::Present(present))
            }
        }
    }

    /// Allocates the words of a node, and writes it; with `REPLACE`, as a node that later writes may replace.
    #[inline(always)]
    fn write<const REPLACE: bool>(
        &self,
        new: &NewNode<'_>,
        entries: u64,
        alloc: &mut impl NodeAlloc,
    ) -> Result<NodeId, InsertError> {
        let mut start = alloc.take(u32::from(REPLACE) + new.words(S::META_WORDS), entries)?;
        if REPLACE {
            // SAFETY: the first of the words that were just allocated.
            start = unsafe { node::write_latest(self.nodes().storage(), start) };
        }
        // SAFETY: all of the words that were just allocated for this node, or all but the first.
        Ok(unsafe { new.write(self.nodes().storage(), start, S::meta(new.version).as_ref()) })
    }

    /// Lets `by`, which is written and not linked, replace the contents of `present`, and gives back the `entries` taken for it. Never waits: one
    /// swap.
    fn replace_by(&self, present: NodeId, by: NodeId, entries: u64) -> Outcome {
        let nodes = self.nodes();
        // The new value is counted before it is visible, and subtracted only after another one has replaced it: so no count is subtracted before it
        // was added.
        self.state.counts.stored(parts(nodes.node(by).own_record().0), self.is_alone);
        let before = nodes.node(present).replace(by);
        let holder = before.unwrap_or(present);
        self.state.counts.not_stored(parts(nodes.node(holder).own_record().0), self.is_alone);
        // The linked node keeps its place and its key.
        let kept = if holder == present { nodes.words_of_replaced(present) } else { 0 };
        self.waste(entries, nodes.words_of(holder) - kept);
        Outcome::Replaced(present)
    }

    /// Adds a hint for a node that was just linked at the place of `seek`, or leaves it without one, and remembers it as the shard's last node.
    #[inline(always)]
    fn add_hint(&self, node: NodeId, target: Target<'_>, mut seek: Seek, direction: Split) {
        let index = &self.list.index;
        let hinted =
            index.wants_hint(node, &seek).then(|| index.add_hint(self.shard, node, target, &mut seek, direction));
        let blocked = self.run().map_or(0, |run| run.remember(&seek, node, direction, hinted));
        if seek.splice.walked > WALK_LIMIT || blocked > WALK_LIMIT {
            self.mend(node, &seek, blocked);
        } else if seek.is_misled && hinted == Some(Hinted::Blocked) {
            index.unblock(self.shard, node);
        }
    }

    /// Adds the hints that nodes around `node` did not get. In a descending run these nodes are behind the new node, in any other run before it. If a
    /// lock is taken, the run still counts those nodes, and the next write tries again.
    #[cold]
    fn mend(&self, node: NodeId, seek: &Seek, blocked: u32) {
        let hinted = if seek.splice.walked > WALK_LIMIT {
            self.list.index.mend(self.shard, seek.hint, seek.splice.walked)
        } else {
            self.list.index.mend(self.shard, node.into(), blocked)
        };
        if hinted != Hinted::Blocked {
            self.run().into_iter().for_each(Run::forget);
        }
    }

    pub(crate) fn list(&self) -> &'a List<S> {
        self.list
    }

    pub(super) fn nodes(&self) -> &'a Nodes<S, Shard> {
        self.list.nodes()
    }

    /// Counts an entry that became a tombstone.
    pub(crate) fn count_deleted(&self) {
        let deleted = Totals { tombstones: 1, ..Totals::default() };
        self.state.counts.stored(deleted, self.is_alone);
    }

    /// Counts entries and words that this writer reserved in vain.
    #[cold]
    pub(crate) fn waste(&self, entries: u64, words: u32) {
        self.list.nodes().arena.count_waste(self.shard, words);
        self.list.quota.give_back(entries);
    }

    /// Gives back the unused rest of a reservation.
    pub(crate) fn give_back(&self, entries: u64, start: u32, words: u32) {
        if words != 0 {
            self.list.nodes().arena.give_back(self.shard, start, start + words);
        }
        self.list.quota.give_back(entries);
    }
}

/// The counted parts of an entry, other than the entry itself and its key.
fn parts(Record { value, kind, .. }: Record<'_>) -> Totals {
    Totals { entries: 0, ..Totals::entry(0, value.len(), kind == Kind::Tombstone) }
}

/// Allocates each node from the arena when it is needed.
pub(crate) struct ArenaAlloc<'p, 'a, S: Schema> {
    writer: &'p Writer<'a, S>,
    /// The number of words that it has allocated.
    pub(crate) taken: u32,
    /// See [`NodeAlloc::keeps_present`].
    pub(crate) keeps_present: bool,
}

impl<'p, 'a, S: Schema> ArenaAlloc<'p, 'a, S> {
    pub(crate) fn new(writer: &'p Writer<'a, S>) -> Self {
        Self { writer, taken: 0, keeps_present: false }
    }
}

impl<S: Schema> NodeAlloc for ArenaAlloc<'_, '_, S> {
    #[inline]
    fn take(&mut self, words: u32, entries: u64) -> Result<u32, InsertError> {
        let start = self.writer.reserve(entries, words.into(), words.into())?;
        // Cannot overflow: all these words lie in one range.
        self.taken += words;
        Ok(start)
    }

    #[inline(always)]
    fn keeps_present(&self) -> bool {
        self.keeps_present
    }
}
