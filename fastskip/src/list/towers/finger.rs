//! Finds where a key stands; reads links, writes nothing.
//!
//! A [`Finger`] goes right while the next node precedes the target, then down, as in any skip list (Pugh, 1990). What is
//! its own is that the partial key in a link settles most steps (see `key.rs`): a node is looked at only when its partial key ties
//! with the target's, so an overshoot costs no cache miss.

use core::cmp::Ordering;
use core::marker::PhantomData;

use crate::key::{self, MAX_SHARED, PartialKey};
use crate::list::schema::{NodeRef, Schema};
use crate::mem::storage::Storage;
use crate::node::{Link, Node, NodeId, Predecessor, Target};

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
    /// Its partial key ties with the target's: its key must be looked at.
    Tie(Link, NodeId),
}

/// A place in a table: a node before the target on some level, and what it shares with the target.
#[derive(Debug, Clone)]
pub(crate) struct Finger<'a, 'k, S> {
    storage: &'a Storage,
    target: Target<'k>,
    node: Predecessor,
    shared: u32,
    partial: PartialKey,
    level: usize,
    /// Nodes gone forward on this level.
    moves: u32,
    /// A node that was compared and found not to precede the target, and whether its key is the target's.
    bound: Option<NodeId>,
    bound_has_key: bool,
    schema: PhantomData<S>,
}

impl<'a, 'k, S: Schema> Finger<'a, 'k, S> {
    /// A finger at the head, on `level`.
    #[inline]
    pub(crate) fn new(storage: &'a Storage, target: Target<'k>, level: usize) -> Self {
        let shared = key::compare(&[], target.key, 0).1;
        Self::resume(storage, target, level, Predecessor::HEAD, shared)
    }

    /// A finger at a node that is linked at `level`, precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn resume(
        storage: &'a Storage,
        target: Target<'k>,
        level: usize,
        node: Predecessor,
        shared: u32,
    ) -> Self {
        let partial = PartialKey::of(target.key, shared);
        let (moves, bound, bound_has_key) = (0, None, false);
        Self { storage, target, node, shared, partial, level, moves, bound, bound_has_key, schema: PhantomData }
    }

    /// The node the finger is at: the head, or one that precedes the target.
    #[inline(always)]
    pub(crate) fn node(&self) -> Predecessor {
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

    /// Whether the node `id`, to which the last walk's link led, has the target's key.
    #[inline]
    pub(crate) fn has_key(&self, id: Option<NodeId>) -> bool {
        // Had its partial key not tied with the target's it would have another key; so it was compared.
        self.bound_has_key && id == self.bound
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
                Look::Tie(link, next) => {
                    if let Some(stop) = self.settle(link, next) {
                        return stop;
                    }
                }
            }
        }
    }

    /// Asks for the links that [`look`](Self::look) reads next.
    #[inline(always)]
    pub(crate) fn prefetch_tower(&self) {
        self.here().prefetch_link(self.level);
    }

    /// Asks for the key of `node`.
    #[inline(always)]
    pub(crate) fn prefetch_key(&self, node: NodeId) {
        Node::new(self.storage, node).prefetch_key();
    }

    #[inline(always)]
    fn here(&self) -> Node<'a> {
        Node::new(self.storage, self.node)
    }

    #[inline(always)]
    fn advance(&mut self, node: NodeId, shared: u32) {
        self.node = node.into();
        self.moves += 1;
        if shared != self.shared {
            self.shared = shared;
            self.partial = PartialKey::of(self.target.key, shared);
        }
    }

    /// Goes one node forward if the link's partial key alone shows that it precedes the target.
    #[inline(always)]
    pub(crate) fn look(&mut self) -> Look {
        // SAFETY: the finger only stands on the head or on nodes it reached at this level or above (I2).
        let link = unsafe { self.here().next(self.level) };
        let Some(next) = link.to else { return Look::Past(link) };
        if link.partial > self.partial {
            return Look::Past(link);
        }
        if link.partial < self.partial {
            let more = if link.partial.shared() == self.shared { link.partial.more_shared(self.partial) } else { 0 };
            self.advance(next, (self.shared + more).min(MAX_SHARED));
            return Look::Moved;
        }
        if link.to == self.bound { Look::Past(link) } else { Look::Tie(link, next) }
    }

    /// Compares the target with `next`, to which `link` just led, and goes there if it precedes the target.
    #[inline]
    pub(crate) fn settle(&mut self, link: Link, next: NodeId) -> Option<Stop> {
        // SAFETY: read from a link of this table.
        let node = unsafe { NodeRef::<S>::new(self.storage, next) };
        let (by_key, shared) = key::compare(node.key(), self.target.key, self.shared);
        let order = by_key.then_with(|| self.target.version.cmp(&node.version()));
        if order == Ordering::Less {
            self.advance(next, shared);
            return None;
        }
        self.bound = Some(next);
        self.bound_has_key = by_key == Ordering::Equal;
        Some(Stop { link, found: order == Ordering::Equal })
    }
}
