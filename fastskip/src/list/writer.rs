//! Admits a writer to a shard, allocates and writes its nodes, has them linked and counts them. In a table where the last write of a key and version
//! wins, lets a new node show instead of the linked one (I10, `node/read.rs`).

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

/// A writer inside a shard's gate; dropping it leaves.
pub(crate) struct Writer<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    pub(super) state: &'a Shard,
    /// Whether nobody else is inside the shard.
    pub(super) is_alone: bool,
}

/// The words of the index for which a reservation of `entries` leaves room. The last entry may use the limit to the last word.
pub(crate) fn index_words(entries: u64) -> u64 {
    INDEX_WORDS * entries.saturating_sub(1)
}

/// Entries of a reservation that were announced and not stored yet: nothing else may take the words that the index needs for them.
pub(crate) struct Announced<'a> {
    shard: &'a AtomicU64,
    entries: u64,
}

impl Announced<'_> {
    /// Takes note of `entries` more that are stored.
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
    /// This node was there already.
    Present(NodeId),
    /// This node was there already, and now shows what the new one holds.
    Replaced(NodeId),
}

/// Where the words of new nodes come from: the arena, or a reservation.
pub(crate) trait NodeAlloc {
    /// Takes `words`, and of the limit on entries as many as are new: one, or none for a replacement.
    fn take(&mut self, words: u32, entries: u64) -> Result<u32, InsertError>;
}

impl<S: Schema> List<S> {
    /// Enters `shard` (any number; it is folded) for `attempts` inserts.
    #[inline]
    pub(crate) fn enter(&self, shard: usize, attempts: u64) -> Result<Writer<'_, S>, InsertError> {
        // Spares most calls the division.
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

    /// Whether an empty table has memory for `entries` whose nodes take `words`, of which the last `tail` may lie past the limit.
    pub(crate) fn could_hold(&self, entries: u64, words: u64, tail: u64) -> bool {
        self.nodes().arena.could_hold(words + index_words(entries), tail)
    }

    /// Why a request for `asked` of `limit` failed: even an empty table could not hold it, or this one has no room for it now.
    ///
    /// If the request was small, backpressure begins: all but a small part of the limit is used, or will be by a thread that is
    /// fetching a chunk, though it is not yet known how much of it.
    #[cold]
    fn refused(&self, entries: u64, words: u64, tail: u64, (asked, limit): (u64, u64)) -> InsertError {
        if !self.quota.could_hold(entries) || !self.could_hold(entries, words, tail) {
            return InsertError::TooLarge;
        }
        if asked as f64 <= limit as f64 * (1.0 - self.config.backpressure_at) {
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

    /// Announces a reservation of `entries`, before it takes their words.
    pub(crate) fn announce(&self, entries: usize) -> Announced<'a> {
        let announced = Announced { shard: &self.state.announced, entries: entries.saturating_sub(1) as u64 };
        if announced.entries != 0 {
            // Relaxed: see `Arena::pending`.
            announced.shard.fetch_add(announced.entries, Ordering::Relaxed);
        }
        announced
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
        if entries != 0 && !list.quota.take(entries, self.shard, |shard| &list.shard(shard).lease) {
            return Err(list.refused(entries, words, tail, (entries, list.quota.limit)));
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
            list.refused(entries, words, tail, (words, list.nodes().arena.limit))
        })
    }

    /// Stores `new`; with `REPLACE`, in a table that has only replaceable nodes, also where its key and version are there.
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

    /// [Stores](Self::insert) the nodes that `new` returns, in their order, and calls `done` with the outcome of each.
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

    /// Stores at most [`GROUP`] nodes, whose places are searched for together. What one of them changes, those searched with it
    /// have not seen: each walks on from its place first.
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
                    // Nodes that the group has linked since may precede the target. They have their hints, so a walk over them is no reason to mend.
                    let walked = seek.splice.walked;
                    seek.found = self.nodes().walk_on(new.target(), &mut seek.splice, &mut ()).err();
                    seek.splice.walked = walked + u32::from(seek.splice.walked > walked);
                }
                seek
            });
            done(index, self.insert_at::<REPLACE>(seek, direction, &new, alloc));
        }
    }

    /// The place of `target`, by the run if that goes on, else as `search` says, and where a full leaf is to be cut for it.
    #[inline(always)]
    fn locate(&self, target: Target<'_>, search: impl FnOnce() -> Seek) -> (Seek, Split) {
        let run = self.run();
        if let Some(next) = run.and_then(|run| run.follow(&self.list.index, target)) {
            return next;
        }
        let seek = search();
        (seek, run.map_or(Split::Even, |run| run.direction(&seek.splice)))
    }

    /// Writes the node and links it, unless the search has found it.
    #[inline(always)]
    fn insert_at<const REPLACE: bool>(
        &self,
        seek: Seek,
        direction: Split,
        new: &NewNode<'_>,
        alloc: &mut impl NodeAlloc,
    ) -> Result<Outcome, InsertError> {
        if let Some(present) = seek.found {
            if REPLACE {
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
                if REPLACE {
                    return Ok(self.replace_by(present, id, 1));
                }
                self.waste(1, new.words(S::META_WORDS));
                Ok(Outcome::Present(present))
            }
        }
    }

    /// Takes the words of a node, and writes it; with `REPLACE`, one that later writes may replace.
    #[inline(always)]
    fn write<const REPLACE: bool>(
        &self,
        new: &NewNode<'_>,
        entries: u64,
        alloc: &mut impl NodeAlloc,
    ) -> Result<NodeId, InsertError> {
        let mut start = alloc.take(u32::from(REPLACE) + new.words(S::META_WORDS), entries)?;
        if REPLACE {
            // SAFETY: the first of the words that were just taken.
            start = unsafe { node::write_latest(self.nodes().storage(), start) };
        }
        // SAFETY: the words, or the others of them, which were just taken for this node.
        Ok(unsafe { new.write(self.nodes().storage(), start, S::meta(new.version).as_ref()) })
    }

    /// Lets `by`, which is written and was not linked, show instead of `present`, and gives back the `entries` that were taken for it. Never
    /// waits: one swap.
    fn replace_by(&self, present: NodeId, by: NodeId, entries: u64) -> Outcome {
        let nodes = self.nodes();
        // Counted before it shows, and taken back after another one shows instead: so no count is taken back before it was made.
        self.state.counts.stored(parts(nodes.node(by).own_record().0), self.is_alone);
        let before = nodes.node(present).replace(by);
        let holder = before.unwrap_or(present);
        self.state.counts.not_stored(parts(nodes.node(holder).own_record().0), self.is_alone);
        // The node that is linked keeps its place, with its key.
        let kept = if holder == present { nodes.words_of_replaced(present) } else { 0 };
        self.waste(entries, nodes.words_of(holder) - kept);
        Outcome::Replaced(present)
    }

    /// Adds a hint for a node that was just linked where `seek` says, or leaves it without, and remembers it as the shard's last one.
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

    /// Adds the hints that nodes around `node` went without. A run that descends leaves them behind the new node, any other
    /// before it. If a lock is in the way, the run still counts those nodes, and the next write tries again.
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

    pub(super) fn nodes(&self) -> &'a Nodes<S, Shard> {
        self.list.nodes()
    }

    /// Counts an entry that became a tombstone.
    pub(crate) fn count_deleted(&self) {
        let deleted = Totals { tombstones: 1, ..Totals::default() };
        self.state.counts.stored(deleted, self.is_alone);
    }

    /// Counts what this writer reserved for nothing.
    #[cold]
    pub(crate) fn waste(&self, entries: u64, words: u32) {
        self.list.nodes().arena.count_waste(self.shard, words);
        self.list.quota.give_back(entries);
    }

    /// Gives back what of a reservation was not used.
    pub(crate) fn give_back(&self, entries: u64, start: u32, words: u32) {
        if words != 0 {
            self.list.nodes().arena.give_back(self.shard, start, start + words);
        }
        self.list.quota.give_back(entries);
    }
}

/// The counted parts of an entry beside the entry itself and its key.
fn parts(Record { value, kind, .. }: Record<'_>) -> Totals {
    Totals { entries: 0, ..Totals::entry(0, value.len(), kind == Kind::Tombstone) }
}

/// Allocates each node from the arena when it is needed.
pub(crate) struct ArenaAlloc<'p, 'a, S: Schema> {
    writer: &'p Writer<'a, S>,
    /// Words that it has taken.
    pub(crate) taken: u32,
}

impl<'p, 'a, S: Schema> ArenaAlloc<'p, 'a, S> {
    pub(crate) fn new(writer: &'p Writer<'a, S>) -> Self {
        Self { writer, taken: 0 }
    }
}

impl<S: Schema> NodeAlloc for ArenaAlloc<'_, '_, S> {
    #[inline]
    fn take(&mut self, words: u32, entries: u64) -> Result<u32, InsertError> {
        let start = self.writer.reserve(entries, words.into(), words.into())?;
        // Cannot overflow: all of it lies in one range.
        self.taken += words;
        Ok(start)
    }
}
