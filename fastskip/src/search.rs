//! Finds where a key stands; reads links, writes nothing.
//!
//! A [`Finger`] goes right while the next node precedes the target, then down, as in any skip list (Pugh, 1990). What is
//! its own is that the piece in a link settles most steps (see `key.rs`): a node is looked at only when its piece ties
//! with the target's, so an overshoot costs no cache miss.

use core::cmp::Ordering;
use core::marker::PhantomData;

use crate::key::{self, MAX_SHARED, Piece};
use crate::node::{HEAD, Link, NIL, Node};
use crate::storage::Storage;

/// What tells the two types of table apart below their API: what else a node holds, and how equal keys are ordered.
pub(crate) trait Schema: Send + Sync + 'static {
    /// Words between a node's links and its bytes.
    const META_WORDS: usize;

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

/// A place in a table: a node before the target, and what it shares with the target.
#[derive(Debug, Clone)]
pub(crate) struct Finger<'a, 'k, S> {
    storage: &'a Storage,
    target: Target<'k>,
    node: u32,
    shared: u32,
    piece: Piece,
    /// A node that was compared and found not to precede the target, and whether its key is the target's.
    bound: u32,
    bound_has_key: bool,
    schema: PhantomData<S>,
}

impl<'a, 'k, S: Schema> Finger<'a, 'k, S> {
    /// A finger at the head.
    #[inline]
    pub(crate) fn new(storage: &'a Storage, target: Target<'k>) -> Self {
        let shared = key::compare(&[], target.key, 0).1;
        Self::resume(storage, target, HEAD, shared)
    }

    /// A finger at a node where one for the same target was before.
    #[inline(always)]
    pub(crate) fn resume(storage: &'a Storage, target: Target<'k>, node: u32, shared: u32) -> Self {
        let piece = Piece::of(target.key, shared);
        Self { storage, target, node, shared, piece, bound: NIL, bound_has_key: false, schema: PhantomData }
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

    /// Whether the node `off`, to which the last walk's link led, has the target's key.
    #[inline]
    pub(crate) fn has_key(&self, off: u32) -> bool {
        // Had its piece not tied with the target's it would have another key; so it was compared.
        off == self.bound && self.bound_has_key
    }

    #[inline(always)]
    fn advance(&mut self, node: u32, shared: u32) {
        self.node = node;
        self.shared = shared;
        self.piece = Piece::of(self.target.key, shared);
    }

    /// Goes right along `level` as long as nodes precede the target. The finger's node must be linked at `level`.
    #[inline(always)]
    pub(crate) fn walk(&mut self, level: usize) -> Stop {
        loop {
            let here = Node { storage: self.storage, off: self.node };
            // SAFETY: the finger only stands on the head or on nodes it reached at this level or above (I2).
            let link = unsafe { here.next(level) };
            if link.piece > self.piece {
                return Stop { link, found: false };
            }
            if link.piece < self.piece {
                if link.piece.shared() == self.shared {
                    let shared = self.shared + link.piece.more_shared(self.piece);
                    self.advance(link.to, shared.min(MAX_SHARED));
                } else {
                    self.node = link.to;
                }
                continue;
            }
            if link.to == NIL || link.to == self.bound {
                return Stop { link, found: false };
            }
            match self.compare(link.to) {
                (Ordering::Less, shared) => self.advance(link.to, shared),
                (order, _) => return Stop { link, found: order == Ordering::Equal },
            }
        }
    }

    /// How the node `off`, which a link just led to, compares with the target, and what their keys share.
    #[inline]
    fn compare(&mut self, off: u32) -> (Ordering, u32) {
        // SAFETY: read from a link of this table, not the end of a level.
        let node = unsafe { NodeRef::<S>::new(self.storage, off) };
        let (by_key, shared) = key::compare(node.key(), self.target.key, self.shared);
        let order = by_key.then_with(|| self.target.version.cmp(&node.version()));
        if order != Ordering::Less {
            self.bound = off;
            self.bound_has_key = by_key == Ordering::Equal;
        }
        (order, shared)
    }
}
