//! The hints around a place: those ahead of a walk, and those before it.

use super::block::BlockId;
use super::descent::{By, Step, Ties};
use super::search::Seek;
use super::tree::Index;
use crate::node::{Predecessor, Schema, Target};

/// A slot of a leaf, or the end after its slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HintPlace {
    leaf: BlockId,
    pub(crate) slot: usize,
}

/// Slots of a leaf, which are read in pairs. A last slot that has no partner is left out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hints {
    leaf: BlockId,
    /// The range of slots, counted in pairs.
    start: usize,
    end: usize,
}

impl Hints {
    /// The number of slots.
    #[inline(always)]
    pub(crate) fn len(self) -> u32 {
        2 * self.end.saturating_sub(self.start) as u32
    }
}

impl<S: Schema, T> Index<S, T> {
    /// The place after the target's hint.
    pub(crate) fn hint_behind(&self, target: Target<'_>) -> Option<HintPlace> {
        let probe = self.probe(target, Ties::Settle, &mut ())?;
        let slot = self.read(probe.leaf).find_hint(probe.hint?, probe.slot.into())?;
        Some(HintPlace { leaf: probe.leaf, slot: slot + 1 })
    }

    /// The place of the hint from which a search walked.
    pub(crate) fn place_of(&self, seek: &Seek) -> Option<HintPlace> {
        let leaf = self.read(seek.leaf?);
        Some(HintPlace { leaf: leaf.id(), slot: leaf.find_hint(seek.hint, seek.slot.into())? })
    }

    /// About `about` hints from a place on, or from the place after it; and the place after these hints. If that is behind the last slot of a leaf,
    /// it is the next leaf, which is prefetched.
    #[inline]
    pub(crate) fn hints_at(&self, place: HintPlace, about: usize) -> (Hints, Option<HintPlace>) {
        let leaf = self.block(place.leaf);
        let (start, count) = (place.slot.div_ceil(2), leaf.load_header().count() / 2);
        let end = start + about / 2;
        if end + about / 4 < count {
            return (Hints { leaf: place.leaf, start, end }, Some(HintPlace { slot: 2 * end, ..place }));
        }
        let next = leaf.next();
        next.into_iter().for_each(|next| self.block(next).prefetch(0..2));
        (Hints { leaf: place.leaf, start, end: count }, next.map(|leaf| HintPlace { leaf, slot: 0 }))
    }

    /// About `about` hints before a place, and the place of the first of them. If that is the first slot of a leaf, the place is the end of the
    /// previous leaf.
    #[inline]
    pub(crate) fn hints_before(&self, place: HintPlace, about: usize) -> (Hints, Option<HintPlace>) {
        let end = place.slot / 2;
        let start = if end > about / 2 + about / 4 { end - about / 2 } else { 0 };
        let before =
            if start > 0 { Some(HintPlace { slot: 2 * start, ..place }) } else { self.leaf_before(place.leaf) };
        (Hints { leaf: place.leaf, start, end }, before)
    }

    /// The hints, two slots at a time.
    #[inline(always)]
    pub(crate) fn pairs(&self, hints: Hints) -> impl DoubleEndedIterator<Item = [Option<Predecessor>; 2]> {
        let leaf = self.block(hints.leaf);
        (hints.start..hints.end).map(move |pair| leaf.hint_pair(pair))
    }

    /// Prefetches the nodes that the hints name, for a walk over them.
    #[inline(always)]
    pub(crate) fn prefetch_entries(&self, hints: Hints) {
        let leaf = self.block(hints.leaf);
        (hints.start..hints.end).for_each(|pair| leaf.prefetch_entries(pair));
    }

    /// The end of the previous leaf, if partial keys lead to it.
    #[cold]
    fn leaf_before(&self, leaf: BlockId) -> Option<HintPlace> {
        let target = self.nodes.node(self.block(leaf).lower().node()?).target();
        let path = self.path_to(target, By::PartialKeys, &mut ())?;
        let left = |(above, below): (&Step, &Step)| {
            let block = self.read(above.block);
            block.child(block.find_child(below.block)?.checked_sub(1)?)
        };
        let (above, below) = (path.steps().iter().rev().skip(1), path.steps().iter().rev());
        let leaf = self.last_leaf(self.read(above.zip(below).find_map(left)?))?;
        leaf.prefetch(0..2);
        Some(HintPlace { leaf: leaf.id(), slot: leaf.header.count() })
    }
}
