//! The core of both tables: links nodes into the list, and is the only writer of links.
//!
//! To insert N between A and B at a level: store N's own link to B, then swing A's link from B to N by CAS. The CAS at
//! level 0 is the commit; the levels above, linked bottom up afterwards, only speed searches up.
//!
//! ```text
//!   A --------> B          A ----> N ----> B        A's CAS fails if anyone linked there meanwhile: then walk on from A,
//!        N ---->                                    which still precedes N, and try again with the same node.
//! ```
//!
//! I1 order: keys, and within a key versions descending, strictly sorted along every level. The CAS replaces exactly the
//!    link whose two ends were compared with N.
//! I2 ladder: a node reachable at level L > 0 is reachable at L-1. Levels are linked bottom up and never unlinked.
//! I3 single commit: before the CAS at level 0 no link leads to the node; after it the node is found.
//! I7 seal: writers pass through a gate, see `gate.rs`.
//! I9 piece: see `key.rs`.

use std::io;
use std::marker::PhantomData;

use crate::arena::{Arena, Layout};
use crate::budget::Budget;
use crate::config::Config;
use crate::error::InsertError;
use crate::gate::{Left, Refusal};
use crate::height::{MAX_HEIGHT, height, mix};
use crate::key::{self, Piece};
use crate::node::{Draft, HEAD, HEAD_WORDS, Link, NIL, Node};
use crate::search::{Finger, NodeRef, Schema, Target};
use crate::stats::{Stats, Totals, ratio};
use crate::storage::{Storage, WORD};
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, PoisonError, ord};

/// An arena, and the sorted list of nodes in it.
#[derive(Debug)]
pub(crate) struct List<S> {
    arena: Arena,
    /// Levels in use, a hint where searches begin. Every level is sound, used or not.
    levels: AtomicU32,
    budget: Budget,
    /// Set once a limit was reached, and never cleared: what little room is left then must not reopen the table.
    full: AtomicBool,
    /// Set once a limit is near, and never cleared.
    pressed: AtomicBool,
    config: Config,
    seed: u64,
    /// Where a freezing thread waits for the last writer.
    drain: (Mutex<()>, Condvar),
    schema: PhantomData<S>,
}

/// A writer's stay inside a shard's gate.
pub(crate) struct Pass<'a, S: Schema> {
    list: &'a List<S>,
    shard: usize,
    ticket: u64,
}

/// Where a node belongs at one level.
#[derive(Debug, Clone, Copy)]
struct Step {
    node: u32,
    shared: u32,
    link: Link,
}

/// Where a node belongs at every level of its tower (RocksDB's term).
pub(crate) struct Splice([Step; MAX_HEIGHT]);

impl<S: Schema> List<S> {
    /// An empty list.
    ///
    /// # Errors
    /// The system refuses the address range.
    pub(crate) fn new(config: Config) -> io::Result<Self> {
        let arena = Arena::new(Layout {
            shards: config.shards,
            chunk_bytes: config.chunk_bytes,
            max_memory_bytes: config.max_memory_bytes,
            huge_pages: config.huge_pages,
            head_words: HEAD_WORDS,
        })?;
        let list = Self {
            arena,
            levels: AtomicU32::new(1),
            budget: Budget::new(config.max_entries),
            full: AtomicBool::new(false),
            pressed: AtomicBool::new(false),
            seed: config.seed,
            config,
            drain: (Mutex::new(()), Condvar::new()),
            schema: PhantomData,
        };
        list.write_head();
        Ok(list)
    }

    fn write_head(&self) {
        for level in 0..MAX_HEIGHT {
            // SAFETY: the head has a link at every level.
            unsafe { self.head().link(level) }.store(Link::END.pack(), Ordering::Relaxed);
        }
    }

    /// Forgets every entry and opens the list again.
    pub(crate) fn reset(&mut self) {
        self.arena.reset();
        self.levels = AtomicU32::new(1);
        self.budget = Budget::new(self.config.max_entries);
        self.full = AtomicBool::new(false);
        self.pressed = AtomicBool::new(false);
        self.seed = mix(self.seed);
        self.write_head();
    }

    pub(crate) fn config(&self) -> &Config {
        &self.config
    }

    pub(crate) fn storage(&self) -> &Storage {
        &self.arena.storage
    }

    fn head(&self) -> Node<'_> {
        Node { storage: &self.arena.storage, off: HEAD }
    }

    /// The node at `off`, which a link of this list led to, or a finger's walk or an earlier insert returned.
    #[inline(always)]
    pub(crate) fn node(&self, off: u32) -> NodeRef<'_, S> {
        debug_assert!(off != NIL && off != HEAD);
        // SAFETY: offsets go round inside this crate only; those that reach here came from links of this list. I8.
        unsafe { NodeRef::new(&self.arena.storage, off) }
    }
}

/// Searching.
impl<S: Schema> List<S> {
    fn levels(&self) -> usize {
        // Relaxed: a stale hint begins a search lower, which is slower and not wrong.
        self.levels.load(Ordering::Relaxed) as usize
    }

    /// The first node not before `target` (or NIL), and whether it has the target's key.
    #[inline]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> (u32, bool) {
        let mut finger = Finger::<S>::new(&self.arena.storage, target);
        let mut first = NIL;
        for level in (0..self.levels()).rev() {
            let stop = finger.walk(level);
            first = stop.link.to;
            if stop.found {
                break;
            }
        }
        (first, finger.has_key(first))
    }

    /// The node behind `off` (or behind the head) in order, or NIL.
    #[inline]
    pub(crate) fn after(&self, off: u32) -> u32 {
        // SAFETY: the head, or an offset as in `node`; every node is linked at level 0.
        unsafe { Node { storage: &self.arena.storage, off }.next(0) }.to
    }

    /// The nodes right before `target`, up to as many as `stretch` keeps, in order. Expected O(log n), for all of them
    /// together: the descent remembers where it was a few levels up and goes on from there along level 0.
    pub(crate) fn before(&self, target: Target<'_>, stretch: &mut Stretch) {
        let mut finger = Finger::<S>::new(&self.arena.storage, target);
        let mut from = HEAD;
        for level in (0..self.levels()).rev() {
            finger.walk(level);
            if level == Stretch::LEVEL {
                from = finger.node();
            }
        }
        self.fill(stretch, from, finger.node());
    }

    /// The last nodes of the list.
    pub(crate) fn last(&self, stretch: &mut Stretch) {
        let (mut from, mut at) = (HEAD, HEAD);
        for level in (0..self.levels()).rev() {
            loop {
                // SAFETY: the head, or reached at this level or above (I2).
                let next = unsafe { Node { storage: &self.arena.storage, off: at }.next(level) }.to;
                if next == NIL {
                    break;
                }
                at = next;
            }
            if level == Stretch::LEVEL {
                from = at;
            }
        }
        self.fill(stretch, from, at);
    }

    fn fill(&self, stretch: &mut Stretch, from: u32, to: u32) {
        stretch.clear();
        let mut at = from;
        loop {
            if at != HEAD {
                stretch.push(at);
            }
            if at == to {
                return;
            }
            at = self.after(at);
        }
    }

    /// Where `target` belongs at the levels of a tower of `height`, or the node that already stands there.
    #[inline]
    pub(crate) fn locate(&self, target: Target<'_>, height: usize) -> Result<Splice, u32> {
        let mut finger = Finger::<S>::new(&self.arena.storage, target);
        let mut splice = Splice([Step { node: HEAD, shared: 0, link: Link::END }; MAX_HEIGHT]);
        for level in (0..self.levels().max(height)).rev() {
            let stop = finger.walk(level);
            if stop.found {
                return Err(stop.link.to);
            }
            if level < height {
                splice.0[level] = Step { node: finger.node(), shared: finger.shared(), link: stop.link };
            }
        }
        Ok(splice)
    }
}

/// The most recent nodes of a walk along level 0, for going back: one descent serves a stretch of steps.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    nodes: [u32; Self::LEN],
    pushed: usize,
    left: usize,
}

impl Stretch {
    /// A walk from this level is 16 nodes long in the mean.
    const LEVEL: usize = 4;
    const LEN: usize = 32;

    pub(crate) fn new() -> Self {
        Self { nodes: [NIL; Self::LEN], pushed: 0, left: 0 }
    }

    pub(crate) fn clear(&mut self) {
        (self.pushed, self.left) = (0, 0);
    }

    fn push(&mut self, off: u32) {
        self.nodes[self.pushed % Self::LEN] = off;
        self.pushed += 1;
        self.left = (self.left + 1).min(Self::LEN);
    }

    /// The last node, taken off.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        self.pushed -= 1;
        Some(self.nodes[self.pushed % Self::LEN])
    }
}

/// Writing.
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

    /// Turns away every later writer, and returns when none is inside.
    pub(crate) fn freeze(&self) {
        for shard in self.arena.shards() {
            shard.gate.freeze();
        }
        let mut looking = self.drain.0.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.arena.shards().all(|shard| shard.gate.is_drained()) {
            looking = self.drain.1.wait(looking).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Whether `freeze` was called.
    pub(crate) fn is_frozen(&self) -> bool {
        self.arena.shards().all(|shard| shard.gate.is_frozen())
    }

    /// Links the written, unlinked node `off` with a tower of `height` where `splice` says. `Err` is the node that
    /// stands for the target already; then `off` stays unlinked.
    #[inline]
    pub(crate) fn commit(&self, target: Target<'_>, splice: &Splice, off: u32, height: usize) -> Result<(), u32> {
        self.link(target, splice.0[0], off, 0)?;
        for (level, step) in splice.0.iter().enumerate().take(height).skip(1) {
            let raised = self.link(target, *step, off, level);
            assert!(raised.is_ok(), "I1 broken: the target was linked twice");
        }
        if height > self.levels() {
            self.levels.fetch_max(height as u32, Ordering::Relaxed);
        }
        Ok(())
    }

    #[inline(always)]
    fn link(&self, target: Target<'_>, mut step: Step, off: u32, level: usize) -> Result<(), u32> {
        let node = Node { storage: &self.arena.storage, off };
        loop {
            let onward = Link { piece: self.piece_from(target.key, step), to: step.link.to };
            // SAFETY: our own node, whose tower is higher than `level`.
            // Relaxed: the CAS below publishes it.
            unsafe { node.link(level) }.store(onward.pack(), Ordering::Relaxed);
            let to_us = Link { piece: Piece::of(target.key, step.shared), to: off };
            let before = Node { storage: &self.arena.storage, off: step.node };
            // ORDERING(link.commit): Release; pairs with `link.next`. Weaker: a reader that follows the link could read
            // bytes, meta words or links of the node before they are written (loom `publish`).
            // SAFETY: the head, or reached at this level or above by the search (I2).
            let swung = unsafe { before.link(level) }.compare_exchange(
                step.link.pack(),
                to_us.pack(),
                ord("link.commit", Ordering::Release),
                Ordering::Relaxed,
            );
            if swung.is_ok() {
                return Ok(());
            }
            step = self.relocate(target, step, level)?;
        }
    }

    /// Somebody linked at `step` first: walks on from there. What precedes the target keeps preceding it.
    #[cold]
    fn relocate(&self, target: Target<'_>, step: Step, level: usize) -> Result<Step, u32> {
        let mut finger = Finger::<S>::resume(&self.arena.storage, target, step.node, step.shared);
        let stop = finger.walk(level);
        if stop.found {
            return Err(stop.link.to);
        }
        Ok(Step { node: finger.node(), shared: finger.shared(), link: stop.link })
    }

    /// The piece of a link from the new node N, with `key`, to the successor B that `step` found behind A.
    ///
    /// A's own link says what B shares with A (q) and goes on with, and the search knows what N shares with A (r). Since
    /// A < N < B, q <= r. Where q < r, or where N and B part right behind q, B relates to N as it does to A, so the old
    /// piece is the new one and B is not touched.
    #[inline(always)]
    fn piece_from(&self, key: &[u8], step: Step) -> Piece {
        let old = step.link.piece;
        if step.link.to == NIL || old.shared() < step.shared {
            return old;
        }
        if old.more_shared(Piece::of(key, step.shared)) == 0 {
            return old;
        }
        let next = self.node(step.link.to).key();
        Piece::of(next, key::compare(key, next, step.shared).1)
    }

    /// Notes that a limit was hit, if that is why an allocation failed.
    #[cold]
    fn refused(&self) -> InsertError {
        if self.arena.is_handed_out() || self.budget.is_spent(self.leases()) {
            self.full.store(true, Ordering::Relaxed);
        }
        InsertError::Full
    }

    /// Whether a limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed) || self.arena.is_spent() || self.budget.is_spent(self.leases())
    }

    fn leases(&self) -> impl ExactSizeIterator<Item = &crate::budget::Lease> {
        self.arena.shards().map(|shard| &shard.lease)
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

    /// Takes `words` in one piece, and `entries` off the budget. The last `tail` words may lie past the limit.
    #[inline]
    pub(crate) fn reserve(&self, entries: u64, words: u64, tail: u64) -> Result<u32, InsertError> {
        let list = self.list;
        let Ok(small) = u32::try_from(words) else { return Err(InsertError::TooLarge) };
        if list.full.load(Ordering::Relaxed) {
            return Err(InsertError::Full);
        }
        if !list.budget.take(entries, &list.arena.shard(self.shard).lease, list.leases()) {
            return Err(list.refused());
        }
        if let Some(off) = list.arena.alloc(self.shard, small, tail as u32) {
            return Ok(off);
        }
        list.budget.give_back(entries);
        if list.arena.could_hold(words) { Err(list.refused()) } else { Err(InsertError::TooLarge) }
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

/// Figures.
impl<S: Schema> List<S> {
    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in self.arena.shards() {
            shard.counts.add_to(&mut totals);
        }
        totals
    }

    /// Entries stored, less those deleted since.
    pub(crate) fn live(&self) -> usize {
        let totals = self.totals();
        totals.entries.saturating_sub(totals.tombstones) as usize
    }

    /// Entries stored.
    pub(crate) fn entries(&self) -> usize {
        self.totals().entries as usize
    }

    /// All figures; `len` counts live entries.
    pub(crate) fn stats(&self) -> Stats {
        let totals = self.totals();
        let usage = self.arena.usage();
        let bytes = |words: u64| (words * WORD as u64) as usize;
        Stats {
            len: totals.entries.saturating_sub(totals.tombstones) as usize,
            entries: totals.entries as usize,
            tombstones: totals.tombstones as usize,
            total_inserts: self.arena.shards().map(|shard| shard.gate.attempts() as usize).sum(),
            memory_usage: bytes(usage.reserved - usage.idle),
            memory_reserved: bytes(usage.reserved),
            memory_idle: bytes(usage.idle),
            memory_wasted: bytes(usage.wasted),
            avg_key_size: ratio(totals.key_bytes, totals.entries),
            avg_value_size: ratio(totals.value_bytes, totals.entries),
            max_memory_bytes: self.config.max_memory_bytes,
            max_entries: self.config.max_entries,
            is_sealed: self.is_frozen(),
            is_under_backpressure: self.is_under_backpressure(),
        }
    }

    /// Whether the configured part of a limit is used up, now or ever before.
    pub(crate) fn is_under_backpressure(&self) -> bool {
        if self.pressed.load(Ordering::Relaxed) {
            return true;
        }
        let part = self.config.backpressure_at;
        let memory = self.config.max_memory_bytes as f64 * part;
        let pressed = (memory > 0.0 && self.arena.uses_at_least(memory as u64 / WORD as u64))
            || (self.config.max_entries > 0 && self.spent_entries() as f64 >= self.config.max_entries as f64 * part);
        if pressed {
            self.pressed.store(true, Ordering::Relaxed);
        }
        pressed
    }

    fn spent_entries(&self) -> u64 {
        self.budget.limit().saturating_sub(self.budget.remaining(self.leases()))
    }
}
