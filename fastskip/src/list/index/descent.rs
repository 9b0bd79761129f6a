//! Ways down the index: by partial keys alone, with ties settled by keys, or by keys alone.

use core::ops::Range;

use super::Path;
use super::block::{Block, BlockId, Header, bias};
use crate::key::four_bytes;
use crate::list::List;
use crate::list::order::{Side, Visits};
use crate::list::schema::Schema;
use crate::node::{Node, Predecessor, Target};
use crate::tuning::STABLE_LOOKS;

/// Where the index sends a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Probe {
    /// The leaf, whose hints surround the target if the partial keys told the truth.
    pub(crate) leaf: BlockId,
    /// The last hint whose partial key is not greater than the target's.
    pub(crate) hint: Option<Predecessor>,
    /// If that one ties with the target's: the hint before, in case that the node comes behind the target.
    pub(crate) before: Option<Predecessor>,
    /// The longest prefix that partial keys on the way left out. The probe is worth something only if the target has it.
    pub(crate) prefix: u32,
}

/// How ties of partial keys are settled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ties {
    /// Several are settled by keys. A single one in a leaf is taken for "not greater", above for the likelier.
    Guess,
    /// By keys.
    Settle,
}

/// The partial key that the target would have in a block.
#[inline(always)]
fn partial_in(header: Header, target: Target<'_>) -> i32 {
    bias(four_bytes(target.key, header.prefix() as usize))
}

impl<S: Schema> List<S> {
    /// Descends by partial keys to a leaf.
    #[inline(always)]
    pub(crate) fn probe(&self, target: Target<'_>, ties: Ties, visits: &mut impl Visits) -> Option<Probe> {
        let mut prefix = 0;
        let mut at = self.index.root()?;
        loop {
            let block = self.block(at);
            let header = block.header();
            visits.block();
            prefix = prefix.max(header.prefix());
            if header.level() == 0 {
                return Some(self.probe_leaf(block, header, target, prefix, ties, visits));
            }
            at = self.child_for(block, header, target, ties, visits)?;
            self.block(at).prefetch();
        }
    }

    /// Starts the descent of one target of a group: the root.
    #[inline(always)]
    pub(crate) fn probe_start(&self) -> Option<(BlockId, u32)> {
        let root = self.index.root()?;
        Some((root, self.block(root).header().level()))
    }

    /// One step of a descent that is done for several targets in turns: one level down, to a block whose lines are asked for.
    /// `prefix` gathers what the probe will need.
    #[inline(always)]
    pub(crate) fn probe_down(&self, at: BlockId, target: Target<'_>, prefix: &mut u32) -> Option<BlockId> {
        let block = self.block(at);
        let header = block.header();
        *prefix = (*prefix).max(header.prefix());
        if header.level() == 0 {
            // The root was split since the level was read.
            return Some(at);
        }
        let child = self.child_for(block, header, target, Ties::Guess, &mut ())?;
        self.block(child).prefetch();
        Some(child)
    }

    /// The last step of such a descent. `None` where it has not come to a leaf.
    #[inline(always)]
    pub(crate) fn probe_end(&self, at: BlockId, target: Target<'_>, prefix: u32) -> Option<Probe> {
        let block = self.block(at);
        let header = block.header();
        let prefix = prefix.max(header.prefix());
        (header.level() == 0).then(|| self.probe_leaf(block, header, target, prefix, Ties::Guess, &mut ()))
    }

    /// The child of `block` to search for the target in. Looks again a few times while a writer changes the block; if that
    /// does not end, what was seen last must do.
    #[inline(always)]
    fn child_for(
        &self,
        block: Block<'_>,
        mut header: Header,
        target: Target<'_>,
        ties: Ties,
        visits: &mut impl Visits,
    ) -> Option<BlockId> {
        let mut looks = 0;
        loop {
            let slot = self.slot_for(block, header, target, ties, visits);
            // A slot may be counted before it is seen.
            let child = block.child(slot).or_else(|| (0..slot).rev().find_map(|slot| block.child(slot)));
            let now = block.header();
            looks += 1;
            if now == header && !now.is_locked() || looks > STABLE_LOOKS {
                return child;
            }
            header = now;
        }
    }

    #[inline(always)]
    fn probe_leaf(
        &self,
        block: Block<'_>,
        header: Header,
        target: Target<'_>,
        prefix: u32,
        ties: Ties,
        visits: &mut impl Visits,
    ) -> Probe {
        let slot = self.slot_for(block, header, target, ties, visits);
        let ties = slot > 0 && block.partial(slot) == partial_in(header, target);
        let before = if ties { block.hint(slot - 1) } else { None };
        Probe { leaf: block.id(), hint: block.hint(slot), before, prefix }
    }

    /// The last slot whose partial key is not greater than the target's; the first slot if there is none.
    #[inline(always)]
    fn slot_for(
        &self,
        block: Block<'_>,
        header: Header,
        target: Target<'_>,
        ties: Ties,
        visits: &mut impl Visits,
    ) -> usize {
        let partial = partial_in(header, target);
        let not_greater = block.count_not_greater(header, partial).max(1);
        let ties_at = |slot: usize| block.partial(slot) == partial;
        let last = not_greater - 1;
        if last == 0 || !ties_at(last) {
            return last;
        }
        let is_single = last > 1 && !ties_at(last - 1) || last == 1 && header.level() == 0;
        match ties {
            Ties::Guess if is_single && (header.level() == 0 || !S::HAS_VERSIONS) => last,
            // The block begins with the target's own key, most likely in an older version.
            Ties::Guess if is_single => last - 1,
            Ties::Guess | Ties::Settle => self.settle_ties(block, header, target, not_greater, visits),
        }
    }

    /// [`slot_for`](Self::slot_for) where the slots before `end` end in ties.
    #[cold]
    #[inline(never)]
    fn settle_ties(
        &self,
        block: Block<'_>,
        header: Header,
        target: Target<'_>,
        end: usize,
        visits: &mut impl Visits,
    ) -> usize {
        let partial = partial_in(header, target);
        let mut first = end - 1;
        while first > 1 && block.partial(first - 1) == partial {
            first -= 1;
        }
        self.slot_by_key(block, header, target, Side::AtOrBefore, first..end, visits).max(1) - 1
    }

    /// Of `slots`: the first whose separator is behind the target.
    pub(super) fn slot_by_key(
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
            let is_behind = match self.separator(block, header.level(), middle) {
                Some(separator) => side.is_behind(self.compare(separator, target).order),
                None => true,
            };
            if is_behind {
                end = middle;
            } else {
                first = middle + 1;
            }
        }
        first
    }

    /// Asks for what a search by keys among the slots looks at first.
    fn prefetch_separators(&self, block: Block<'_>, header: Header, slots: Range<usize>) {
        for slot in slots {
            if header.level() > 0 {
                block.child(slot).into_iter().for_each(|child| self.block(child).prefetch_bounds());
            } else {
                block.hint(slot).into_iter().for_each(|hint| Node::new(self.storage(), hint).prefetch_link());
            }
        }
    }

    /// Descends by keys alone, which no partial key can mislead: only missing hints keep the answer from being the nearest. The
    /// probe's prefix is greater than any if a block on the way is locked.
    #[cold]
    #[inline(never)]
    pub(crate) fn probe_by_keys(&self, target: Target<'_>, side: Side, visits: &mut impl Visits) -> Option<Probe> {
        let mut at = self.index.root()?;
        let mut prefix = 0;
        loop {
            let block = self.block(at);
            let header = block.header();
            visits.block();
            // No key has the prefix of a block that somebody is changing.
            prefix = prefix.max(if header.is_locked() { u32::MAX } else { header.prefix() });
            let slot = self.slot_by_key(block, header, target, side, 1..header.count(), visits).max(1) - 1;
            if header.level() == 0 {
                let before = slot.checked_sub(1).and_then(|slot| block.hint(slot));
                return Some(Probe { leaf: at, hint: block.hint(slot), before, prefix });
            }
            at = block.child(slot)?;
        }
    }

    /// The blocks on the way to where the target belongs.
    pub(super) fn path_to(&self, target: Target<'_>, by_keys: bool) -> Option<Path> {
        let mut path = Path::new();
        let mut at = self.index.root()?;
        let mut upper = None;
        loop {
            let block = self.block(at);
            let header = block.header();
            if !path.push(at, upper) {
                return None;
            }
            if header.level() == 0 {
                path.leaf_count = header.count();
                return Some(path);
            }
            let slot = if by_keys {
                self.slot_by_key(block, header, target, Side::AtOrBefore, 1..header.count(), &mut ()).max(1) - 1
            } else {
                self.slot_for(block, header, target, Ties::Settle, &mut ())
            };
            if slot + 1 < header.count() {
                upper = self.separator(block, header.level(), slot + 1);
            }
            at = block.child(slot)?;
        }
    }
}
