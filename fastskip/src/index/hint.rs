//! Adds hints to leaves: for nodes that were just linked, for places where a search had to walk far, and for nodes that a writer could not hint
//! because it repeatedly found locks taken.
//!
//! Hints are left out while locks are taken. So concurrent appends, or a thread that is stopped while it holds a lock, leave runs of nodes without
//! hints. A search that walks such a run divides it into short ones ([`mend`](Index::mend)), so each further search in it is shorter. If it finds a
//! lock taken, it leaves the remaining nodes to later searches, unless the lock's holder is stopped (`replace.rs`).

use core::cmp::Ordering;

use super::block::{Locked, SlotContent};
use super::descent::{By, Ties};
use super::prefix::{NewHint, Split};
use super::search::Seek;
use super::tree::Index;
use crate::mem::arena::Pending;
use crate::node::{NodeId, Predecessor, Schema, Side, Target};
use crate::order::Order;
use crate::tuning::{HINT_TRIES, HINTED_OF, MEND_HINTS, MEND_STEP, SPARSE_WALK, SPARSE_WORDS, WALK_LIMIT};

/// The result of adding a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hinted {
    /// The hint is in a leaf.
    Added,
    /// A block's lock was taken, so the node has no hint yet.
    Blocked,
    /// The arena has no room for another block, or the blocks kept changing.
    GivenUp,
}

impl<S: Schema, T: Pending> Index<S, T> {
    /// Whether a node that was linked at `seek` must have a hint. One of [`HINTED_OF`] nodes gets no hint, if the node before it has one; while the
    /// table is small, about half of the nodes get none.
    #[inline(always)]
    pub(crate) fn wants_hint(&self, node: NodeId, seek: &Seek) -> bool {
        let offset = node.to_stored();
        // The offset is mixed well, because nodes of equal size lie at equal distances.
        let mixed = offset.wrapping_mul(0x9e37_79b1);
        let spread = u64::from((mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77));
        let drawn = (spread * u64::from(HINTED_OF)) >> 32;
        let (near, wanted) = if offset < SPARSE_WORDS { (SPARSE_WALK, drawn == 0) } else { (0, drawn != 0) };
        seek.is_misled || seek.is_misfit() || seek.splice.walked > near || wanted
    }

    /// Adds a hint for `node`, which was just linked at `seek`. Usually the hint from which the walk began is in the node's leaf, and the leaf has
    /// room. Then the new hint goes directly after that hint, and no key is read.
    #[inline(always)]
    pub(crate) fn add_hint(
        &self,
        shard: usize,
        node: NodeId,
        target: Target<'_>,
        seek: &mut Seek,
        split: Split,
    ) -> Hinted {
        let is_misled = seek.is_misled || seek.is_misfit();
        if let Some(leaf) = seek.leaf.filter(|_| !is_misled) {
            let Some(mut leaf) = self.block(leaf).try_lock() else { return Hinted::Blocked };
            // The target must begin with the bytes that the leaf's partial keys leave out. The hint from which the search began has these bytes,
            // unless it is the head, whose key is not a key of the leaf.
            let has_prefix = || match seek.hint {
                Predecessor::HEAD => {
                    self.prefix_with(*leaf, S::Order::sort_key(target.key).as_ref(), None) == leaf.header.prefix()
                }
                _ => seek.hint_shared >= leaf.header.prefix(),
            };
            let fits = !leaf.header.is_full() && has_prefix();
            let slot = || leaf.find_hint(seek.hint, seek.slot.into());
            if let Some(slot) = fits.then(slot).flatten() {
                let partial = leaf.header.partial_in::<S::Order>(target.key);
                // The new hint goes behind hints that other writers put there meanwhile, if their nodes precede the new node.
                let precedes = |slot: usize| {
                    let hint = |hint| self.nodes.compare(hint, target).order == Ordering::Less;
                    leaf.partial(slot) < partial || leaf.partial(slot) == partial && leaf.hint(slot).is_some_and(hint)
                };
                let mut slot = slot + 1;
                while slot < leaf.header.count() && precedes(slot) {
                    slot += 1;
                }
                self.insert_slot(&mut leaf, slot, partial, SlotContent::Hint(node.into()));
                return Hinted::Added;
            }
        }
        let hinted = self.add_hint_slowly(shard, NewHint { node, target, split, is_due: false }, is_misled);
        // The leaf may have changed by now, and prefixes may be shorter: the next insertion of a run needs the current ones.
        if let Some(probe) = self.probe(target, Ties::Settle, &mut ()) {
            (seek.leaf, seek.prefix) = (Some(probe.leaf), probe.prefix);
        }
        hinted
    }

    /// Like [`add_hint`](Self::add_hint), for a leaf that is full, unknown or not the right one, or a prefix that is too long.
    #[cold]
    #[inline(never)]
    fn add_hint_slowly(&self, shard: usize, hint: NewHint<'_>, mut by_keys: bool) -> Hinted {
        for _ in 0..HINT_TRIES {
            let by = if by_keys { By::Keys(Side::AtOrBefore) } else { By::PartialKeys };
            let Some(path) = self.path_to(hint.target, by, &mut ()) else { return Hinted::GivenUp };
            // A lock's holder may have left its changes unfinished, and these may have misled searches by partial keys.
            let has_locked = || path.steps().iter().any(|step| self.block(step.block).load_header().is_locked());
            if by_keys && has_locked() || !self.shorten_prefixes(&path, hint) {
                return Hinted::Blocked;
            }
            let Some(mut leaf) = self.block(path.leaf()).try_lock() else { return Hinted::Blocked };
            // The target must lie between the leaf's lower bound and that of the next leaf in the tree, and the leaf must not have been split since.
            let begins = |lower| self.nodes.compare(lower, hint.target).order != Ordering::Greater;
            let upper = path.steps().last().and_then(|step| step.upper);
            if leaf.header.count() < path.leaf_count || !begins(leaf.lower()) || upper.is_some_and(begins) {
                // The partial keys misled the descent, or the leaf was split.
                by_keys = true;
                continue;
            }
            let slot = self.slot_behind(&mut leaf, hint);
            if leaf.hint(slot - 1) == Some(hint.node.into()) {
                return Hinted::Added;
            }
            if leaf.header.is_full() {
                leaf = match self.split(shard, &path, leaf, slot, hint) {
                    Ok(half) => half,
                    Err(Some(hinted)) => return hinted,
                    Err(None) => {
                        by_keys = true;
                        continue;
                    }
                };
            }
            let slot = self.slot_behind(&mut leaf, hint);
            let partial = leaf.header.partial_in::<S::Order>(hint.target.key);
            self.insert_slot(&mut leaf, slot, partial, SlotContent::Hint(hint.node.into()));
            return Hinted::Added;
        }
        Hinted::GivenUp
    }

    /// The place of a hint in its locked leaf. Partial keys decide once they fit the new key, so nodes are read only for ties.
    fn slot_behind(&self, leaf: &mut Locked<'_>, hint: NewHint<'_>) -> usize {
        self.shorten_prefix(leaf, S::Order::sort_key(hint.target.key).as_ref(), Some(hint.node));
        let partial = leaf.header.partial_in::<S::Order>(hint.target.key);
        self.slot_of(**leaf, partial, &hint.target, Ties::Settle, &mut ()) + 1
    }

    /// Adds hints for the first `walked` nodes after `from`: evenly spread, at most [`MEND_HINTS`]. Stops at the first hint that fails, and returns
    /// the reason.
    #[cold]
    #[inline(never)]
    pub(crate) fn mend(&self, shard: usize, from: Predecessor, walked: u32) -> Hinted {
        let step = (walked / MEND_HINTS).max(MEND_STEP);
        let is_due = walked > WALK_LIMIT;
        let mut at = from;
        for passed in 1..=walked {
            let Some(node) = self.nodes.after(at) else { break };
            at = node.into();
            let hinted = if passed % step == 0 { self.mend_at(shard, node, is_due) } else { Hinted::Added };
            if hinted != Hinted::Added {
                return hinted;
            }
        }
        Hinted::Added
    }

    /// Adds a hint for a linked node, and shortens prefixes that do not fit it. Looks once at each locked block on the way; replaces it if its holder
    /// is stopped.
    #[cold]
    #[inline(never)]
    pub(crate) fn mend_at(&self, shard: usize, node: NodeId, is_due: bool) -> Hinted {
        let hint = NewHint { node, target: self.nodes.node(node).target(), split: Split::Even, is_due };
        let hinted = self.add_hint_slowly(shard, hint, true);
        if hinted == Hinted::Blocked && self.unblock(shard, node) {
            return self.add_hint_slowly(shard, hint, true);
        }
        hinted
    }
}
