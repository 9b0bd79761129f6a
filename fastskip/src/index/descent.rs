//! Descents in the index: by partial keys alone, by partial keys with ties settled by keys, or by keys alone.

use core::ops::Range;

use super::block::{BlockId, Header, ReadBlock, Rows};
use super::tree::Index;
use crate::node::{Cost, Predecessor, Schema, Side, Target};
use crate::order::Order;
use crate::tuning::STABLE_LOOKS;

/// The place to which the index sends a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Probe {
    /// The leaf; the target lies between its hints if the partial keys were right.
    pub(crate) leaf: BlockId,
    /// The last hint whose partial key is not greater than the target's, and the slot of that hint.
    pub(crate) hint: Option<Predecessor>,
    pub(crate) slot: u8,
    /// If `hint` ties with the target: the hint before it, for the case that the node of `hint` comes after the target.
    pub(crate) before: Option<Predecessor>,
    /// The longest prefix that the partial keys of the visited blocks leave out. The probe is useful only if the target has this prefix.
    pub(crate) prefix: u32,
}

/// The way in which ties of partial keys are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Several ties are settled by comparing keys: most likely the key of one known slot, whose node has been prefetched. A single tie counts as "not
    /// greater" in a leaf, and above the leaves as the more likely case.
    Guess(Option<u8>),
    /// All ties are settled by comparing keys.
    Settle,
}

/// A descent that has not reached a leaf yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Descent {
    /// The block that the descent has reached; `None` if there was none.
    pub(crate) at: Option<BlockId>,
    lens: Lens,
}

/// The target as a partial key for the block that a search has reached. It is computed again only if the prefix changes, so the comparison with the
/// partial keys of a block need not wait until the block's header is loaded.
#[derive(Debug, Clone, Copy)]
struct Lens {
    /// The number of bytes that the block's partial keys leave out.
    prefix: u32,
    /// The partial key of the target after this prefix.
    partial: i32,
    /// The longest prefix of the blocks visited.
    longest: u32,
}

impl Lens {
    #[inline(always)]
    fn new<O: Order>(header: Header, target: &Target<'_>) -> Self {
        let prefix = header.prefix();
        Self { prefix, partial: header.partial_in::<O>(target.key), longest: prefix }
    }

    #[inline(always)]
    fn move_to<O: Order>(&mut self, header: Header, target: &Target<'_>) {
        if header.prefix() != self.prefix {
            *self = Self { longest: self.longest.max(header.prefix()), ..Self::new::<O>(header, target) };
        }
    }
}

impl<S: Schema, T> Index<S, T> {
    /// Descends by partial keys to a leaf.
    #[inline(always)]
    pub(crate) fn probe(&self, target: Target<'_>, ties: Ties, cost: &mut impl Cost) -> Option<Probe> {
        let mut block = self.read(self.root()?);
        let mut lens = Lens::new::<S::Order>(block.header, &target);
        // I2: each step leads one level down.
        while block.header.level() > 0 {
            block = self.read(self.child_for(block, lens, &target, ties, cost)?);
            lens.move_to::<S::Order>(block.header, &target);
        }
        self.probe_leaf(block, lens, &target, ties, cost)
    }

    /// Starts a descent at the root. Returns the number of steps down to a leaf.
    #[inline(always)]
    pub(crate) fn probe_start(&self) -> Option<(Descent, u32)> {
        let root = self.root()?;
        // Longer than any prefix that a block leaves out, so the first step always computes the partial key.
        let lens = Lens { prefix: u32::MAX, partial: 0, longest: 0 };
        Some((Descent { at: Some(root), lens }, self.block(root).load_header().level()))
    }

    /// Makes one step down, to a block that is then prefetched. Returns whether the new block is tied.
    #[inline(always)]
    pub(crate) fn probe_down(&self, descent: &mut Descent, target: &Target<'_>, ties: Ties) -> bool {
        let Some(at) = descent.at else { return false };
        let block = self.read(at);
        descent.lens.move_to::<S::Order>(block.header, target);
        descent.at = self.child_for(block, descent.lens, target, ties, &mut ());
        block.header.is_tied()
    }

    /// Ends a descent, which has reached a leaf.
    #[inline(always)]
    pub(crate) fn probe_end(&self, descent: &Descent, target: &Target<'_>, ties: Ties) -> Option<Probe> {
        let leaf = self.read(descent.at?);
        // I2: each step leads one level down.
        debug_assert_eq!(leaf.header.level(), 0);
        let mut lens = descent.lens;
        lens.move_to::<S::Order>(leaf.header, target);
        self.probe_leaf(leaf, lens, target, ties, &mut ())
    }

    #[inline(always)]
    fn probe_leaf(
        &self,
        leaf: ReadBlock<'_>,
        lens: Lens,
        target: &Target<'_>,
        ties: Ties,
        cost: &mut impl Cost,
    ) -> Option<Probe> {
        cost.block();
        let slot = self.slot_of(leaf, lens.partial, target, ties, cost);
        let is_tie = slot > 0 && leaf.partial(slot) == lens.partial;
        let before = if is_tie { leaf.hint(slot - 1) } else { None };
        Some(Probe { leaf: leaf.id(), hint: leaf.hint(slot), slot: slot as u8, before, prefix: lens.longest })
    }

    /// The child of `block` in which to search for the target, prefetched.
    #[inline(always)]
    fn child_for(
        &self,
        block: ReadBlock<'_>,
        lens: Lens,
        target: &Target<'_>,
        ties: Ties,
        cost: &mut impl Cost,
    ) -> Option<BlockId> {
        cost.block();
        let slot = self.slot_of(block, lens.partial, target, ties, cost);
        let child = match block.child(slot) {
            Some(child) if block.load_header() == block.header && !block.header.is_locked() => child,
            _ => self.child_of_changing(block.id(), target, ties, cost)?,
        };
        self.prefetch_child(child, block.header);
        Some(child)
    }

    /// Like [`child_for`](Self::child_for), while a writer changes the block: retries a few times, and uses the last result if the changes continue.
    #[cold]
    #[inline(never)]
    fn child_of_changing(
        &self,
        block: BlockId,
        target: &Target<'_>,
        ties: Ties,
        cost: &mut impl Cost,
    ) -> Option<BlockId> {
        let mut looks = 1;
        loop {
            let block = self.read(block);
            let slot = self.slot_of(block, block.header.partial_in::<S::Order>(target.key), target, ties, cost);
            // A slot may be counted before it is visible.
            let child = (0..=slot).rev().find_map(|slot| block.child(slot));
            looks += 1;
            if block.load_header() == block.header && !block.header.is_locked() || looks > STABLE_LOOKS {
                return child;
            }
        }
    }

    /// The last slot whose partial key is not greater than `partial`, the target's partial key in this block; the first slot if there is none.
    #[inline(always)]
    pub(super) fn slot_of(
        &self,
        block: ReadBlock<'_>,
        partial: i32,
        target: &Target<'_>,
        ties: Ties,
        cost: &mut impl Cost,
    ) -> usize {
        let last = block.count_not_greater(partial).max(1) - 1;
        if last == 0 || block.partial(last) != partial {
            return last;
        }
        let is_leaf = block.header.level() == 0;
        let is_single = if last > 1 { block.partial(last - 1) != partial } else { is_leaf };
        // In a tied block above the leaves, a guess is wrong in half of all cases.
        if ties != Ties::Settle && is_single && (is_leaf || !block.header.is_tied()) {
            // Most likely the block begins with an older version of the target's own key.
            return if S::HAS_VERSIONS && !is_leaf { last - 1 } else { last };
        }
        self.settle_ties((block.id(), block.header), target, last + 1, ties, cost)
    }

    /// The last of `slots` that is not after the target, found by comparing keys; the slot before the first one if all are after the target.
    pub(super) fn last_slot(
        &self,
        block: ReadBlock<'_>,
        target: Target<'_>,
        side: Side,
        slots: Range<usize>,
        cost: &mut impl Cost,
    ) -> usize {
        if block.header.level() > 0 && block.header.rows() == Rows::Two {
            // First loads the words that name the nodes, then the nodes: two cache misses for all of them, instead of two for each node compared.
            let children = slots.clone().filter_map(|slot| block.child(slot));
            children.for_each(|child| self.block(child).prefetch_bounds());
        }
        slots.clone().for_each(|slot| self.nodes.prefetch(block.separator(slot)));
        let Range { start: mut first, mut end } = slots;
        while first < end {
            let middle = first.midpoint(end);
            cost.node();
            // The child's own bound: while a writer moves slots, row 3 may belong to another child.
            let is_behind = match block.content(middle) {
                Some(content) => side.is_behind(self.nodes.compare(content.separator(), target).order),
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

    /// The blocks from the root to the leaf where the target belongs.
    pub(super) fn path_to(&self, target: Target<'_>, by: By, cost: &mut impl Cost) -> Option<Path> {
        let mut at = Step { block: self.root()?, upper: None };
        let mut path = Path { steps: [at; MAX_LEVELS], len: 0, leaf_count: 0, prefix: 0 };
        loop {
            let block = self.read(at.block);
            let header = block.header;
            cost.block();
            // While a block is being changed, no key is assumed to have the block's prefix.
            path.prefix = path.prefix.max(if header.is_locked() { u32::MAX } else { header.prefix() });
            *path.steps.get_mut(path.len)? = at;
            path.len += 1;
            if header.level() == 0 {
                path.leaf_count = header.count();
                return Some(path);
            }
            let slot = match by {
                By::Keys(side) => self.last_slot(block, target, side, 1..header.count(), cost),
                By::PartialKeys => {
                    self.slot_of(block, header.partial_in::<S::Order>(target.key), &target, Ties::Settle, cost)
                }
            };
            if slot + 1 < header.count() {
                at.upper = block.separator(slot + 1);
            }
            at.block = block.child(slot)?;
        }
    }

    /// The last hint under a block.
    pub(super) fn last_hint(&self, block: ReadBlock<'_>) -> Option<Predecessor> {
        let leaf = self.last_leaf(block)?;
        (0..leaf.header.count()).rev().find_map(|slot| leaf.hint(slot))
    }

    /// The last leaf under a block.
    pub(super) fn last_leaf<'a>(&'a self, mut block: ReadBlock<'a>) -> Option<ReadBlock<'a>> {
        while block.header.level() > 0 {
            // A slot may be counted before it is seen.
            block = self.read((0..block.header.count()).rev().find_map(|slot| block.child(slot))?);
        }
        Some(block)
    }
}

/// The guide of a descent to a leaf.
#[derive(Debug, Clone, Copy)]
pub(super) enum By {
    /// Partial keys, with ties settled by keys.
    PartialKeys,
    /// Keys alone: for targets that partial keys would mislead.
    Keys(Side),
}

/// The maximum number of levels of blocks. Fifteen levels of two slots each would hold only thirty thousand hints, but splits leave blocks with two
/// slots only at one edge of a level. A root that would exceed the limit is not split.
pub(super) const MAX_LEVELS: usize = 16;

/// A block on a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    pub(super) block: BlockId,
    /// The lower bound of the next block in the tree, or a node before it; `None` at the right edge.
    pub(super) upper: Option<Predecessor>,
}

/// The blocks on the way from the root to a leaf.
#[derive(Debug, Clone)]
pub(super) struct Path {
    steps: [Step; MAX_LEVELS],
    len: usize,
    /// Slots in use in the leaf.
    pub(super) leaf_count: usize,
    /// The length of the longest prefix that partial keys of these blocks leave out; greater than any such length if one of their locks was taken.
    pub(super) prefix: u32,
}

impl Path {
    /// The blocks, the root first; at least one.
    #[inline]
    pub(super) fn steps(&self) -> &[Step] {
        &self.steps[..self.len]
    }

    #[inline]
    pub(super) fn leaf(&self) -> BlockId {
        self.steps[self.len - 1].block
    }
}
