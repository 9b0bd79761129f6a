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

mod figures;
mod pass;
mod stretch;

use std::io;
use std::marker::PhantomData;

use crate::arena::{Arena, Layout};
use crate::budget::Budget;
use crate::config::Config;
use crate::height::{MAX_HEIGHT, mix};
use crate::key::{self, Piece};
use crate::node::{HEAD, HEAD_WORDS, Link, NIL, Node};
use crate::search::{Finger, NodeRef, Schema, Target};
use crate::storage::Storage;
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, PoisonError, ord};

pub(crate) use pass::Pass;
pub(crate) use stretch::Stretch;

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
        self.write_head();
        self.arena.reset();
        self.levels = AtomicU32::new(1);
        self.budget = Budget::new(self.config.max_entries);
        self.full = AtomicBool::new(false);
        self.pressed = AtomicBool::new(false);
        self.seed = mix(self.seed);
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

/// Writing.
impl<S: Schema> List<S> {
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
            // ORDERING(link.commit, link.raise): Release; pairs with `link.next`. Weaker: a reader that follows the link
            // could read bytes, meta words or links of the node before they are written (loom `publish`, `tower`).
            // SAFETY: the head, or reached at this level or above by the search (I2).
            let swung = unsafe { before.link(level) }.compare_exchange(
                step.link.pack(),
                to_us.pack(),
                match level {
                    0 => ord("link.commit", Ordering::Release),
                    _ => ord("link.raise", Ordering::Release),
                },
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
}
