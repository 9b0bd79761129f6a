//! Adds hints to leaves, and keeps partial keys true to their prefixes.

use core::cmp::Ordering;

use super::block::{Locked, SlotContent, bias};
use super::descent::{By, Ties};
use super::path::Path;
use super::prefix::{NewHint, Split};
use super::seek::Seek;
use super::tree::Index;
use crate::key::four_bytes;
use crate::mem::arena::Pending;
use crate::node::{NodeId, Predecessor, Target};
use crate::nodes::{Schema, Side};
use crate::tuning::{HINT_TRIES, HINTED_OF, SPARSE_WALK, SPARSE_WORDS};

/// The result of adding a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hinted {
    /// It is in a leaf.
    Added,
    /// A block's lock was taken, so the node stays without a hint.
    Blocked,
    /// The arena has no room for another block, or the blocks kept changing.
    GivenUp,
}

impl<S: Schema, T: Pending> Index<S, T> {
    /// Whether a node that was linked at `seek` must have a hint. One of [`HINTED_OF`] nodes has none, if the node before it has one; while the
    /// table is small, about half have none.
    #[inline(always)]
    pub(crate) fn wants_hint(&self, node: NodeId, seek: &Seek) -> bool {
        let offset = node.to_stored();
        // Mixed well, because nodes of one size lie at even distances.
        let mixed = offset.wrapping_mul(0x9e37_79b1);
        let spread = u64::from((mixed ^ mixed >> 15).wrapping_mul(0x85eb_ca77));
        let drawn = (spread * u64::from(HINTED_OF)) >> 32;
        let (near, wanted) = if offset < SPARSE_WORDS { (SPARSE_WALK, drawn == 0) } else { (0, drawn != 0) };
        seek.is_misled || seek.is_misfit() || seek.splice.walked > near || wanted
    }

    /// Adds a hint for `node`, which was just linked at `seek`. Usually the hint from which the walk began is in its leaf, which has room: then the
    /// new hint goes directly after it, and no key need be read.
    #[inline(always)]
    pub(crate) fn add_hint(
        &self,
        shard: usize,
        node: NodeId,
        target: Target<'_>,
        seek: &mut Seek,
        split: Split,
    ) -> Hinted {
        let hint = NewHint { node, target, split, is_due: false };
        let is_misled = seek.is_misled || seek.is_misfit();
        if let Some(leaf) = seek.leaf.filter(|_| !is_misled) {
            let Some(mut locked) = self.block(leaf).try_lock() else { return Hinted::Blocked };
            let takes = !locked.is_full() && self.fits(&locked, seek, target);
            let slot = || self.block(leaf).find_hint(*locked, seek.hint, seek.slot.into());
            if let Some(slot) = takes.then(slot).flatten() {
                self.insert_behind(&mut locked, slot, hint);
                return Hinted::Added;
            }
        }
        let hinted = self.add_hint_slowly(shard, hint, is_misled);
        // The leaf may have changed by now, and prefixes may be shorter: the next insertion of a run needs them.
        if let Some(probe) = self.probe(target, Ties::Settle, &mut ()) {
            (seek.leaf, seek.prefix) = (Some(probe.leaf), probe.prefix);
        }
        hinted
    }

    /// Whether the target has the bytes that the leaf's partial keys leave out. The hint from which the search began has them, unless it is the
    /// head, whose key is not a key of the leaf.
    #[inline(always)]
    fn fits(&self, leaf: &Locked<'_>, seek: &Seek, target: Target<'_>) -> bool {
        if seek.hint == Predecessor::HEAD {
            return self.prefix_of_key(leaf.block(), **leaf, target.key, None) == leaf.prefix();
        }
        seek.hint_shared >= leaf.prefix()
    }

    /// Puts the hint after `slot`, and after hints of other writers that were put there meanwhile and precede it.
    #[inline(always)]
    fn insert_behind(&self, leaf: &mut Locked<'_>, slot: usize, hint: NewHint<'_>) {
        let block = leaf.block();
        let partial = bias(four_bytes(hint.target.key, leaf.prefix() as usize));
        let mut slot = slot + 1;
        while slot < leaf.count() {
            let other = block.partial(slot);
            if other > partial || other == partial && !self.precedes(block.hint(slot), hint.target) {
                break;
            }
            slot += 1;
        }
        self.insert_slot(leaf, slot, partial, SlotContent::Hint(hint.node.into()));
    }

    fn precedes(&self, separator: Option<Predecessor>, target: Target<'_>) -> bool {
        separator.is_some_and(|separator| self.nodes.compare(separator, target).order == Ordering::Less)
    }

    /// Like [`add_hint`](Self::add_hint), if the leaf is full, unknown or not the right one, or a prefix is too long.
    #[cold]
    #[inline(never)]
    pub(super) fn add_hint_slowly(&self, shard: usize, hint: NewHint<'_>, mut by_keys: bool) -> Hinted {
        for _ in 0..HINT_TRIES {
            let by = if by_keys { By::Keys(Side::AtOrBefore) } else { By::PartialKeys };
            let Some(path) = self.path_to(hint.target, by, &mut ()) else { return Hinted::GivenUp };
            if by_keys && self.has_locked(&path) || !self.shorten_prefixes(&path, hint) {
                return Hinted::Blocked;
            }
            let Some(leaf) = path.leaf().map(|leaf| self.block(leaf)) else { return Hinted::GivenUp };
            let Some(mut locked) = leaf.try_lock() else { return Hinted::Blocked };
            if !self.is_in_range(&path, &locked, hint.target) {
                // The partial keys led astray, or the leaf was split.
                by_keys = true;
                continue;
            }
            let slot = self.slot_behind(&mut locked, hint);
            if leaf.hint(slot - 1) == Some(hint.node.into()) {
                return Hinted::Added;
            }
            match self.insert_locked(shard, &path, locked, slot, hint) {
                Some(hinted) => return hinted,
                None => by_keys = true,
            }
        }
        Hinted::GivenUp
    }

    /// The place of a hint in its locked leaf. Partial keys decide, once they fit the new key: nodes are read only for ties.
    fn slot_behind(&self, leaf: &mut Locked<'_>, hint: NewHint<'_>) -> usize {
        self.shorten_prefix(leaf, hint);
        self.slot_for(leaf.block(), **leaf, &hint.target, (Ties::Settle, None), &mut ()) + 1
    }

    /// Whether the lock of a block on a path is taken. Unfinished work of its holder may be what misled searches by partial keys.
    fn has_locked(&self, path: &Path) -> bool {
        let mut blocks = (0..path.len).filter_map(|depth| path.get(depth));
        blocks.any(|block| self.block(block).header().is_locked())
    }

    /// Puts the hint into its leaf, which is split if it is full. `None` if the path is out of date.
    fn insert_locked<'a>(
        &'a self,
        shard: usize,
        path: &Path,
        mut leaf: Locked<'a>,
        slot: usize,
        hint: NewHint<'_>,
    ) -> Option<Hinted> {
        if leaf.is_full() {
            let half = match self.split(shard, path, leaf, slot, hint) {
                Ok(half) => half,
                Err(refusal) => return refusal,
            };
            leaf = half;
        }
        let slot = self.slot_behind(&mut leaf, hint);
        let partial = bias(four_bytes(hint.target.key, leaf.prefix() as usize));
        self.insert_slot(&mut leaf, slot, partial, SlotContent::Hint(hint.node.into()));
        Some(Hinted::Added)
    }

    /// Whether the target belongs in the locked leaf at the end of a path: between its lower bound and the bound of the next leaf in the tree, with
    /// no split since.
    fn is_in_range(&self, path: &Path, leaf: &Locked<'_>, target: Target<'_>) -> bool {
        let begins = |lower| self.nodes.compare(lower, target).order != Ordering::Greater;
        let upper = path.upper(path.len - 1);
        leaf.count() >= path.leaf_count && begins(leaf.block().lower()) && !upper.is_some_and(begins)
    }
}
