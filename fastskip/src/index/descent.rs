//! Descents in the index: by partial keys alone, by partial keys with ties settled by keys, or by keys alone.

use core::ops::Range;

use super::block::{Block, BlockId, Header, Rows, partial_in};
use super::path::Path;
use super::relative::ties_before;
use super::tree::Index;
use crate::node::{Predecessor, Target};
use crate::nodes::{Schema, Side, Visits};
use crate::tuning::STABLE_LOOKS;

/// The place to which the index sends a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The leaf, whose hints surround the target if the partial keys were right.
    pub(crate) leaf: BlockId,
    /// The last hint whose partial key is not greater than the target's, and its slot.
    pub(crate) hint: Option<Predecessor>,
    pub(crate) slot: u8,
    /// If `hint` ties with the target: the hint before it, in case the node of `hint` comes after the target.
    pub(crate) before: Option<Predecessor>,
    /// The longest prefix that partial keys on the way left out. The probe is useful only if the target has this prefix.
    pub(crate) prefix: u32,
}

/// A search on its way down.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    /// The block that it has reached; `None` if there was none.
    pub(crate) at: Option<BlockId>,
    lens: Lens,
}

/// How a target looks in the block that a search has reached. It is made anew only where the prefix changes: so the comparison with a block's partial
/// keys need not wait for the block's header.
#[derive(Debug, Clone, Copy)]
struct Lens {
    /// The number of bytes that the block's partial keys leave out.
    prefix: u32,
    /// The partial key of the target behind them.
    partial: i32,
    /// The longest prefix on the way.
    longest: u32,
}

impl Lens {
    #[inline(always)]
    fn new(header: Header, target: &Target<'_>) -> Self {
        let prefix = header.prefix();
        Self { prefix, partial: partial_in(header, *target), longest: prefix }
    }

    #[inline(always)]
    fn move_to(&mut self, header: Header, target: &Target<'_>) {
        if header.prefix() != self.prefix {
            *self = Self { longest: self.longest.max(header.prefix()), ..Self::new(header, target) };
        }
    }
}

/// The way in which ties of partial keys are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Several ties are settled by keys. A single one counts as "not greater" in a leaf, and as the more likely case above.
    Guess,
    /// By keys.
    Settle,
}

/// The guide of a descent to a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Partial keys, with ties settled by keys.
    PartialKeys,
    /// Keys alone: for targets that partial keys would mislead.
    Keys(Side),
}

impl<S: Schema, T> Index<S, T> {
    /// Descends by partial keys to a leaf.
    #[inline(always)]
    pub(crate) fn probe(&self, target: Target<'_>, ties: Ties, visits: &mut impl Visits) -> Option<Probe> {
        let mut block = self.block(self.root()?);
        let mut header = block.header();
        let mut lens = Lens::new(header, &target);
        // I2: each step leads one level down.
        while header.level() > 0 {
            block = self.block(self.child_for(block, header, lens, &target, (ties, None), visits)?);
            header = block.header();
            lens.move_to(header, &target);
        }
        self.probe_leaf(block, header, lens, &target, (ties, None), visits)
    }

    /// Starts a descent: at the root. Returns the number of steps down to a leaf.
    #[inline(always)]
    pub(crate) fn probe_start(&self) -> Option<(Descent, u32)> {
        let root = self.root()?;
        // No block leaves out as much.
        let lens = Lens { prefix: u32::MAX, partial: 0, longest: 0 };
        Some((Descent { at: Some(root), lens }, self.block(root).header().level()))
    }

    /// One step down, to a block that is prefetched. Returns whether this block is tied.
    #[inline(always)]
    pub(crate) fn probe_down(
        &self,
        descent: &mut Descent,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> bool {
        let Some(at) = descent.at else { return false };
        let block = self.block(at);
        let header = block.header();
        descent.lens.move_to(header, target);
        descent.at = self.child_for(block, header, descent.lens, target, ties, visits);
        header.is_tied()
    }

    /// The end of a descent, in a leaf.
    #[inline(always)]
    pub(crate) fn probe_end(
        &self,
        descent: &Descent,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> Option<Probe> {
        let leaf = self.block(descent.at?);
        let header = leaf.header();
        // I2: each step leads one level down.
        debug_assert_eq!(header.level(), 0);
        let mut lens = descent.lens;
        lens.move_to(header, target);
        self.probe_leaf(leaf, header, lens, target, ties, visits)
    }

    #[inline(always)]
    fn probe_leaf(
        &self,
        leaf: Block<'_>,
        header: Header,
        lens: Lens,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> Option<Probe> {
        visits.block();
        let slot = self.slot_of(leaf, header, lens.partial, target, ties, visits);
        let ties = slot > 0 && leaf.partial(slot) == lens.partial;
        let before = if ties { leaf.hint(slot - 1) } else { None };
        Some(Probe { leaf: leaf.id(), hint: leaf.hint(slot), slot: slot as u8, before, prefix: lens.longest })
    }

    /// The child of `block` in which to search for the target, prefetched.
    #[inline(always)]
    fn child_for(
        &self,
        block: Block<'_>,
        header: Header,
        lens: Lens,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> Option<BlockId> {
        visits.block();
        let slot = self.slot_of(block, header, lens.partial, target, ties, visits);
        let child = match block.child(slot) {
            Some(child) if block.header() == header && !header.is_locked() => child,
            _ => self.child_of_changing(block.id(), target, ties, visits)?,
        };
        self.prefetch_child(child, header);
        Some(child)
    }

    /// [`child_for`](Self::child_for) while a writer changes the block: looks again a few times, and uses the last result if the changes do not end.
    #[cold]
    #[inline(never)]
    fn child_of_changing(
        &self,
        block: BlockId,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> Option<BlockId> {
        let block = self.block(block);
        let mut looks = 1;
        loop {
            let header = block.header();
            let slot = self.slot_for(block, header, target, ties, visits);
            // A slot may be counted before it is visible.
            let child = (0..=slot).rev().find_map(|slot| block.child(slot));
            looks += 1;
            if block.header() == header && !header.is_locked() || looks > STABLE_LOOKS {
                return child;
            }
        }
    }

    /// The last slot whose partial key is not greater than the target's; the first slot if there is none. The slot that settles ties may be known.
    #[inline(always)]
    pub(super) fn slot_for(
        &self,
        block: Block<'_>,
        header: Header,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> usize {
        self.slot_of(block, header, partial_in(header, *target), target, ties, visits)
    }

    /// [`slot_for`](Self::slot_for) a target with this partial key.
    #[inline(always)]
    fn slot_of(
        &self,
        block: Block<'_>,
        header: Header,
        partial: i32,
        target: &Target<'_>,
        ties: (Ties, Option<u8>),
        visits: &mut impl Visits,
    ) -> usize {
        let last = block.count_not_greater(header, partial).max(1) - 1;
        if last == 0 || block.partial(last) != partial {
            return last;
        }
        let is_leaf = header.level() == 0;
        let is_single = if last > 1 { block.partial(last - 1) != partial } else { is_leaf };
        // In a tied block above the leaves a guess is as often wrong as right.
        if ties.0 == Ties::Guess && is_single && (is_leaf || !header.is_tied()) {
            // Most likely, the block begins with an older version of the target's own key.
            return if S::HAS_VERSIONS && !is_leaf { last - 1 } else { last };
        }
        self.settle_ties(block.id(), header, target, last + 1, ties.1, visits)
    }

    /// [`slot_for`](Self::slot_for) if the slots before `end` end in ties.
    #[cold]
    #[inline(never)]
    fn settle_ties(
        &self,
        block: BlockId,
        header: Header,
        target: &Target<'_>,
        end: usize,
        candidate: Option<u8>,
        visits: &mut impl Visits,
    ) -> usize {
        let block = self.block(block);
        let slots = ties_before(block, header, end);
        let by_trie = match header.is_tied() {
            true => self.settle_by_trie(block, header, *target, slots.clone(), candidate, visits),
            false => None,
        };
        by_trie.unwrap_or_else(|| self.last_slot(block, header, *target, Side::AtOrBefore, slots, visits))
    }

    /// By keys, the last of `slots` that is not after the target; the slot before the first if all are after it.
    pub(super) fn last_slot(
        &self,
        block: Block<'_>,
        header: Header,
        target: Target<'_>,
        side: Side,
        slots: Range<usize>,
        visits: &mut impl Visits,
    ) -> usize {
        let Range { start: mut first, mut end } = slots;
        self.prefetch_separators(block, header, first..end);
        while first < end {
            let middle = first.midpoint(end);
            visits.node();
            // The child's own bound: while a writer moves slots, row 3 may belong to another child.
            let is_behind = match block.held(header.level(), middle) {
                Some(held) => side.is_behind(self.nodes.compare(held.separator(), target).order),
                None => true,
            };
            if is_behind {
                end = middle;
            } else {
                first = middle + 1;
            }
        }
        first.max(1) - 1
    }

    /// Prefetches the memory that a search by keys among the slots needs first.
    fn prefetch_separators(&self, block: Block<'_>, header: Header, slots: Range<usize>) {
        if header.level() > 0 && header.rows() == Rows::Two {
            // First the words that name the nodes, then the nodes: two misses for all of them, not two for each that is compared.
            let children = slots.clone().filter_map(|slot| block.child(slot));
            children.for_each(|child| self.block(child).prefetch_bounds());
        }
        slots.for_each(|slot| self.nodes.prefetch(block.separator(header, slot)));
    }

    /// Descends by keys alone, which no partial key can mislead: only missing hints can make the result less than the nearest. The probe's prefix
    /// is longer than any if a block on the way is locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe_by_keys(&self, target: Target<'_>, side: Side, visits: &mut impl Visits) -> Option<Probe> {
        let path = self.path_to(target, By::Keys(side), visits)?;
        let leaf = self.block(path.leaf()?);
        let header = leaf.header();
        let slot = self.last_slot(leaf, header, target, side, 1..header.count(), visits);
        let before = slot.checked_sub(1).and_then(|slot| leaf.hint(slot));
        Some(Probe { leaf: leaf.id(), hint: leaf.hint(slot), slot: slot as u8, before, prefix: path.prefix })
    }

    /// The blocks on the way to the target's place.
    pub(super) fn path_to(&self, target: Target<'_>, by: By, visits: &mut impl Visits) -> Option<Path> {
        let mut path = Path::new();
        let mut at = self.root()?;
        let mut upper = None;
        loop {
            let block = self.block(at);
            let header = block.header();
            visits.block();
            // While a block is being changed, no key counts as having its prefix.
            path.prefix = path.prefix.max(if header.is_locked() { u32::MAX } else { header.prefix() });
            if !path.push(at, upper) {
                return None;
            }
            if header.level() == 0 {
                path.leaf_count = header.count();
                return Some(path);
            }
            let slot = match by {
                By::Keys(side) => self.last_slot(block, header, target, side, 1..header.count(), visits),
                By::PartialKeys => self.slot_for(block, header, &target, (Ties::Settle, None), visits),
            };
            if slot + 1 < header.count() {
                upper = block.separator(header, slot + 1);
            }
            at = block.child(slot)?;
        }
    }

    /// The last hint under a block of which `header` was read.
    pub(super) fn last_hint(&self, block: Block<'_>, header: Header) -> Option<Predecessor> {
        let (leaf, header) = self.last_leaf(block, header)?;
        (0..header.count()).rev().find_map(|slot| leaf.hint(slot))
    }

    /// The last leaf under a block of which `header` was read, and its header.
    pub(super) fn last_leaf<'a>(&'a self, mut block: Block<'a>, mut header: Header) -> Option<(Block<'a>, Header)> {
        while header.level() > 0 {
            // A slot may be counted before it is seen.
            block = self.block((0..header.count()).rev().find_map(|slot| block.child(slot))?);
            header = block.header();
        }
        Some((block, header))
    }
}
