//! Finds where a key stands; reads links, writes nothing.
//!
//! A [`Finger`] goes right while the next node precedes the target, then down, as in any skip list (Pugh, 1990). What is
//! its own is that the piece in a link settles most steps (see `key.rs`): a node is looked at only when its piece ties
//! with the target's, so an overshoot costs no cache miss.

use core::cmp::Ordering;
use core::marker::PhantomData;

use crate::key::{self, MAX_SHARED, Piece};
use crate::node::{Draft, HEAD, Link, NIL, Node};
use crate::storage::Storage;

/// What tells the two types of table apart below their API: what else a node holds, and how equal keys are ordered.
pub(crate) trait Schema: Send + Sync + 'static {
    /// Words between a node's links and its bytes.
    const META_WORDS: usize;

    /// What those words are at first.
    fn meta(version: u64) -> impl AsRef<[u64]>;

    /// The version of a node: among equal keys, greater ones come first.
    fn version(node: NodeRef<'_, Self>) -> u64
    where
        Self: Sized;
}

/// A node (not the head) that was reached through links, so that everything about it is published.
pub(crate) struct NodeRef<'a, S> {
    node: Node<'a>,
    schema: PhantomData<S>,
}

impl<S> Clone for NodeRef<'_, S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for NodeRef<'_, S> {}

impl<'a, S: Schema> NodeRef<'a, S> {
    /// # Safety
    /// `off` is a node of a table with schema `S` in `storage`, not the head, and was read from one of its links.
    #[inline(always)]
    pub(crate) unsafe fn new(storage: &'a Storage, off: u32) -> Self {
        Self { node: Node { storage, off }, schema: PhantomData }
    }

    /// Meta word `index`, which must be less than `S::META_WORDS`.
    #[inline(always)]
    pub(crate) fn meta(self, index: usize) -> &'a crate::sync::AtomicU64 {
        assert!(index < S::META_WORDS);
        // SAFETY: a node of schema `S` (`new`), and `index` was just checked.
        unsafe { self.node.meta(index) }
    }

    #[inline(always)]
    pub(crate) fn key(self) -> &'a [u8] {
        // SAFETY: reached through links, schema `S` (`new`).
        unsafe { self.node.key(S::META_WORDS) }
    }

    #[inline(always)]
    pub(crate) fn entry(self) -> (&'a [u8], &'a [u8], crate::node::Kind) {
        // SAFETY: reached through links, not the head, schema `S` (`new`).
        unsafe { self.node.entry(S::META_WORDS) }
    }

    #[inline(always)]
    pub(crate) fn version(self) -> u64 {
        S::version(self)
    }
}

impl<'k> Draft<'k> {
    /// Where it belongs.
    pub(crate) fn target(&self) -> Target<'k> {
        Target { key: self.key, version: self.version }
    }
}

/// What is searched for: the first entry with this key and a version not greater, or the first one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) version: u64,
}

/// What a walk along one level ended at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stop {
    /// The link that leads from the finger's node to the target or past it.
    pub(crate) link: Link,
    /// Whether it leads to exactly the target.
    pub(crate) found: bool,
}

/// What the link before a finger says of the node behind it.
pub(crate) enum Look {
    /// It does not precede the target.
    Past(Link),
    /// It precedes the target, and the finger is there now.
    Moved,
    /// Its piece ties with the target's: its key must be looked at.
    Tie(Link),
}

/// A place in a table: a node before the target on some level, and what it shares with the target.
#[derive(Debug, Clone)]
pub(crate) struct Finger<'a, 'k, S> {
    storage: &'a Storage,
    target: Target<'k>,
    node: u32,
    shared: u32,
    piece: Piece,
    level: usize,
    /// Nodes gone forward on this level.
    moves: u32,
    /// A node that was compared and found not to precede the target, and whether its key is the target's.
    bound: u32,
    bound_has_key: bool,
    schema: PhantomData<S>,
}

impl<'a, 'k, S: Schema> Finger<'a, 'k, S> {
    /// A finger at the head, on `level`.
    #[inline]
    pub(crate) fn new(storage: &'a Storage, target: Target<'k>, level: usize) -> Self {
        let shared = key::compare(&[], target.key, 0).1;
        Self::resume(storage, target, level, HEAD, shared)
    }

    /// A finger at a node that is linked at `level`, precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn resume(storage: &'a Storage, target: Target<'k>, level: usize, node: u32, shared: u32) -> Self {
        let piece = Piece::of(target.key, shared);
        let (moves, bound, bound_has_key) = (0, NIL, false);
        Self { storage, target, node, shared, piece, level, moves, bound, bound_has_key, schema: PhantomData }
    }

    /// The node the finger is at: the head, or one that precedes the target.
    #[inline(always)]
    pub(crate) fn node(&self) -> u32 {
        self.node
    }

    /// What that node's key shares with the target's.
    #[inline(always)]
    pub(crate) fn shared(&self) -> u32 {
        self.shared
    }

    /// The level it is on.
    #[inline(always)]
    pub(crate) fn level(&self) -> usize {
        self.level
    }

    /// How many nodes it went forward on this level.
    #[inline(always)]
    pub(crate) fn moves(&self) -> u32 {
        self.moves
    }

    /// Whether the node `off`, to which the last walk's link led, has the target's key.
    #[inline]
    pub(crate) fn has_key(&self, off: u32) -> bool {
        // Had its piece not tied with the target's it would have another key; so it was compared.
        off == self.bound && self.bound_has_key
    }

    /// Goes one level down; false at the lowest.
    #[inline(always)]
    pub(crate) fn descend(&mut self) -> bool {
        self.moves = 0;
        let below = self.level.checked_sub(1);
        self.level = below.unwrap_or(0);
        below.is_some()
    }

    /// Goes right along its level as long as nodes precede the target.
    #[inline(always)]
    pub(crate) fn walk(&mut self) -> Stop {
        loop {
            match self.look() {
                Look::Moved => {}
                Look::Past(link) => return Stop { link, found: false },
                Look::Tie(link) => {
                    if let Some(stop) = self.settle(link) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Asks for the links that [`look`](Self::look) reads next.
    #[inline(always)]
    pub(crate) fn prefetch_tower(&self) {
        self.storage.prefetch(self.node - self.level as u32);
    }

    /// Asks for the key of the node that `link` leads to.
    #[inline(always)]
    pub(crate) fn prefetch_key(&self, link: Link) {
        self.storage.prefetch(link.to + 1);
    }

    #[inline(always)]
    fn advance(&mut self, node: u32, shared: u32) {
        self.node = node;
        self.moves += 1;
        if shared != self.shared {
            self.shared = shared;
            self.piece = Piece::of(self.target.key, shared);
        }
    }

    /// Goes one node forward if the link's piece alone shows that it precedes the target.
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Look {
        let here = Node { storage: self.storage, off: self.node };
        // SAFETY: the finger only stands on the head or on nodes it reached at this level or above (I2).
        let link = unsafe { here.next(self.level) };
        if link.piece > self.piece {
            return Look::Past(link);
        }
        if link.piece < self.piece {
            let more = if link.piece.shared() == self.shared { link.piece.more_shared(self.piece) } else { 0 };
            self.advance(link.to, (self.shared + more).min(MAX_SHARED));
            return Look::Moved;
        }
        if link.to == NIL || link.to == self.bound { Look::Past(link) } else { Look::Tie(link) }
    }

    /// Compares the target with the node that `link` just led to, and goes there if it precedes the target.
    #[inline]
    pub(crate) fn settle(&mut self, link: Link) -> Option<Stop> {
        // SAFETY: read from a link of this table, not the end of a level.
        let node = unsafe { NodeRef::<S>::new(self.storage, link.to) };
        let (by_key, shared) = key::compare(node.key(), self.target.key, self.shared);
        let order = by_key.then_with(|| self.target.version.cmp(&node.version()));
        if order == Ordering::Less {
            self.advance(link.to, shared);
            return None;
        }
        self.bound = link.to;
        self.bound_has_key = by_key == Ordering::Equal;
        Some(Stop { link, found: order == Ordering::Equal })
    }
}
