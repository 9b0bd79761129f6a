//! The hints around a place: ahead of a walk, and before it.

use super::block::BlockId;
use super::descent::{By, Ties};
use super::seek::Seek;
use super::tree::Index;
use crate::node::{Predecessor, Target};
use crate::nodes::Schema;

/// A slot of a leaf, or the end after its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HintPlace {
    leaf: BlockId,
    pub(crate) slot: usize,
}

impl<S: Schema, T> Index<S, T> {
    /// The place that follows the target's hint.
    pub(crate) fn hint_behind(&self, target: Target<'_>) -> Option<HintPlace> {
        let probe = self.probe(target, Ties::Settle, &mut ())?;
        let leaf = self.block(probe.leaf);
        Some(HintPlace {
            leaf: probe.leaf,
            slot: leaf.find_hint_at(leaf.header(), probe.hint?, probe.slot.into())? + 1,
        })
    }

    /// The place of the hint from which a search walked.
    pub(crate) fn place_of(&self, seek: &Seek) -> Option<HintPlace> {
        let leaf = self.block(seek.leaf?);
        Some(HintPlace { leaf: leaf.id(), slot: leaf.find_hint_at(leaf.header(), seek.hint, seek.slot.into())? })
    }

    /// The hint at a place, if there is one, and the next place. After the last slot of a leaf that is the next leaf, which is prefetched.
    #[inline]
    pub(crate) fn hint_at(&self, place: HintPlace) -> (Option<Predecessor>, Option<HintPlace>) {
        let leaf = self.block(place.leaf);
        if place.slot < leaf.header().count() {
            return (leaf.hint(place.slot), Some(HintPlace { slot: place.slot + 1, ..place }));
        }
        let next = leaf.next();
        next.into_iter().for_each(|next| self.block(next).prefetch());
        (None, next.map(|leaf| HintPlace { leaf, slot: 0 }))
    }

    /// The hint before a place, if there is one, and its place. Before the first slot of a leaf, the place is the end of the previous leaf.
    #[inline]
    pub(crate) fn hint_before(&self, place: HintPlace) -> (Option<Predecessor>, Option<HintPlace>) {
        match place.slot.checked_sub(1) {
            Some(slot) => (self.block(place.leaf).hint(slot), Some(HintPlace { slot, ..place })),
            None => (None, self.leaf_before(place.leaf)),
        }
    }

    /// The end of the previous leaf, if partial keys lead there.
    #[cold]
    fn leaf_before(&self, leaf: BlockId) -> Option<HintPlace> {
        let target = self.nodes.node(self.block(leaf).lower().node()?).target();
        let path = self.path_to(target, By::PartialKeys, &mut ())?;
        let left = |depth: usize| {
            let block = self.block(path.get(depth)?);
            let slot = block.find_child(block.header(), path.get(depth + 1)?)?.checked_sub(1)?;
            block.child(slot)
        };
        let block = self.block((0..path.len - 1).rev().find_map(left)?);
        let (leaf, header) = self.last_leaf(block, block.header())?;
        leaf.prefetch();
        Some(HintPlace { leaf: leaf.id(), slot: header.count() })
    }

    /// The last hint of the list.
    pub(crate) fn final_hint(&self) -> Option<Predecessor> {
        let root = self.block(self.root()?);
        self.last_hint(root, root.header())
    }
}
