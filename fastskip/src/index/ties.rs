//! The differences between slots of a block whose partial keys tie, as is frequent for paths and addresses.
//!
//! A tied block stores for each slot the same data that a link stores about its successor (`key.rs`): the length of the prefix that the slot's key
//! shares with the key of the slot before, and the bytes that follow the prefix. So the slots are a trie that leaves out shared bytes. A search
//! compares the target with only one node, however many slots tie. First it goes down the trie by the bytes of the target, ignoring the left-out
//! bytes, to a slot that shares as long a prefix with the target as any other slot. Comparing the target with that slot's key gives the length of
//! their shared prefix, which determines the distance from there to the target's place (Ferragina and Grossi, "The String B-tree", 1999; in a row
//! instead of a tree: Ferguson, "Bit-Tree", 1992).

use alloc::vec::Vec;
use core::cmp::Ordering;
use core::ops::Range;

use super::block::{BlockId, Header, Locked, ReadBlock, Relative, Rows, SlotContent};
use super::descent::Ties;
use super::tree::Index;
use crate::key::{MAX_SHARED, PartialKey};
use crate::node::{Cost, Predecessor, Schema, Side, Target};
use crate::order::Order;

/// The pairs of neighbouring slots of a block whose partial keys hardly differ. Bit `slot` is for the pair of that slot and the slot before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gaps {
    /// Bits of pairs whose partial keys differ by less than 16.
    narrow: u32,
    /// Bits of pairs whose partial keys are equal.
    pub(super) none: u32,
}

impl Gaps {
    #[inline]
    pub(super) fn between(block: ReadBlock<'_>) -> Self {
        let (mut narrow, mut none) = (0, 0);
        let mut before = block.partial(0);
        for slot in 1..block.header.count() {
            let partial = block.partial(slot);
            // The partial keys are in order unless a writer was misled.
            let gap = partial.wrapping_sub(before) as u32;
            narrow |= u32::from(gap < 16) << slot;
            none |= u32::from(gap == 0) << slot;
            before = partial;
        }
        Self { narrow, none }
    }

    /// Whether more than an eighth of the gaps before `slots` are narrow.
    #[inline]
    pub(super) fn are_narrow(self, slots: Range<usize>) -> bool {
        let of_slots = !(!0 << slots.end) & !0 << slots.start;
        (self.narrow & of_slots).count_ones() as usize * 8 > slots.len() + 1
    }
}

impl<S: Schema, T> Index<S, T> {
    /// Adds a hint or a block to a locked block, and makes the block tied if the new slot ties with a neighbour.
    #[inline(always)]
    pub(super) fn insert_slot(&self, block: &mut Locked<'_>, slot: usize, partial: i32, content: SlotContent) {
        if !block.header.is_tied() {
            let ties = |slot: usize| slot < block.header.count() && block.partial(slot) == partial;
            if block.header.rows() == Rows::Two || !(ties(slot - 1) || ties(slot)) {
                return block.insert(slot, partial, content, None);
            }
            self.tie(block);
        }
        let relative = self.relative_to_neighbours(block, slot, content.separator());
        block.insert(slot, partial, content, Some(relative));
    }

    /// Two differences: of `separator` from the slot before `slot`, and of the present slot at `slot` from `separator`.
    #[cold]
    #[inline(never)]
    fn relative_to_neighbours(&self, block: &Locked<'_>, slot: usize, separator: Predecessor) -> Relative {
        let sort_key = self.nodes.sort_key_of(Some(separator));
        let own = PartialKey::between(self.slot_sort_key(block, slot - 1), &sort_key);
        let next = (slot < block.header.count()).then(|| {
            let next = block.relative(slot);
            // If the new key shares more with the slot before it than the next slot does, the next slot differs from both in the same way.
            if own.shared() > next.shared() {
                next
            } else {
                PartialKey::between(&sort_key, self.slot_sort_key(block, slot))
            }
        });
        Relative { own, next }
    }

    /// The sort key of a slot's lower bound.
    pub(super) fn slot_sort_key(&self, block: &ReadBlock<'_>, slot: usize) -> impl AsRef<[u8]> {
        self.nodes.sort_key_of(block.separator(slot))
    }

    /// The difference of a slot's sort key from that of the slot before it.
    pub(super) fn relative(&self, block: &ReadBlock<'_>, slot: usize) -> PartialKey {
        PartialKey::between(self.slot_sort_key(block, slot - 1), self.slot_sort_key(block, slot))
    }

    /// Adds row 2 to a block that has room for it, if any of its slots tie.
    pub(super) fn tie_if_needed(&self, block: &mut Locked<'_>) {
        if block.header.rows() > Rows::Two && !block.header.is_tied() && Gaps::between(**block).none != 0 {
            self.tie(block);
        }
    }

    #[cold]
    fn tie(&self, block: &mut Locked<'_>) {
        let relative: Vec<_> = (1..block.header.count()).map(|slot| self.relative(block, slot)).collect();
        (1..).zip(relative).for_each(|(slot, relative)| block.set_relative(slot, relative));
        block.set_tied();
    }

    /// The number of rows of a new block of `level` that is made beside or above a full block. The new block gets all rows if slots tie even after
    /// the longest prefix that they share, which the full block leaves out; a leaf gets them if more than an eighth of its slots tie. Versions of one
    /// key do not form a trie and do not count as ties.
    pub(super) fn rows_beside(&self, block: &Locked<'_>, gaps: Gaps, level: u32) -> Rows {
        let most = if block.header.level() > 0 { 0 } else { block.header.count() / 8 };
        let ties = |slot: &usize| gaps.none >> slot & 1 != 0;
        let are_keys = |slot: &usize| !self.relative(block, *slot).may_be_same_key();
        let is_tied = gaps.none.count_ones() as usize > most
            && (1..block.header.count()).filter(ties).filter(are_keys).count() > most;
        match (is_tied, level) {
            (false, _) => Rows::Two,
            (true, 0) => Rows::Three,
            (true, _) => Rows::Four,
        }
    }

    /// Prefetches the node that settles ties by `slot`. In a leaf whose keys have versions, also prefetches the node before it, which is compared
    /// next.
    #[inline(always)]
    fn prefetch_look(&self, block: ReadBlock<'_>, slot: usize) {
        self.nodes.prefetch(block.separator(slot));
        if S::HAS_VERSIONS && block.header.level() == 0 {
            self.nodes.prefetch(block.hint(slot - 1));
        }
    }

    /// The slot that settles the target's ties in a block, if there are any. Prefetches the node of that slot.
    #[inline(never)]
    pub(crate) fn prefetch_candidate(&self, block: BlockId, target: Target<'_>) -> Option<u8> {
        let block = self.read(block);
        let partial = block.header.partial_in::<S::Order>(target.key);
        let end = block.count_not_greater(partial);
        if !block.header.is_tied() || end < 2 || block.partial(end - 1) != partial {
            return None;
        }
        let slots = ties_before(block, end);
        if slots.len() == 1 && block.header.level() == 0 {
            return None;
        }
        let candidate = blind_candidate(block, S::Order::sort_key(target.key).as_ref(), slots);
        self.prefetch_look(block, candidate);
        Some(candidate as u8)
    }

    /// The last slot that is not after the target, if the slots before `end` tie with the target.
    #[cold]
    #[inline(never)]
    pub(super) fn settle_ties(
        &self,
        (block, header): (BlockId, Header),
        target: &Target<'_>,
        end: usize,
        ties: Ties,
        cost: &mut impl Cost,
    ) -> usize {
        // The block is passed by its id, so it need not be in the cache for searches that meet no ties.
        let block = self.block(block).with_header(header);
        let slots = ties_before(block, end);
        let candidate = if let Ties::Guess(candidate) = ties { candidate } else { None };
        let by_trie = match block.header.is_tied() {
            true => self.settle_by_trie(block, *target, slots.clone(), candidate, cost),
            false => None,
        };
        by_trie.unwrap_or_else(|| self.last_slot(block, *target, Side::AtOrBefore, slots, cost))
    }

    /// For slots of a tied block that all tie with the target: the last one not after the target; the slot before the first one if all are after it.
    /// Returns `None` if one comparison is not enough, because all slots are versions of one key, or share more bytes than a partial key can count.
    fn settle_by_trie(
        &self,
        block: ReadBlock<'_>,
        target: Target<'_>,
        slots: Range<usize>,
        known: Option<u8>,
        cost: &mut impl Cost,
    ) -> Option<usize> {
        let known = known.map(usize::from).filter(|slot| slots.contains(slot));
        let candidate =
            known.unwrap_or_else(|| blind_candidate(block, S::Order::sort_key(target.key).as_ref(), slots.clone()));
        let alike = alike(block, candidate, slots.clone());
        if alike.len() > 1 && alike == slots {
            return None;
        }
        self.prefetch_look(block, candidate);
        if block.header.level() > 0 {
            // Most likely the search continues in this child or nearby, so its cache lines are fetched together with those of the node.
            self.prefetch_child(block.child(candidate)?, block.header);
        }
        cost.node();
        let compared = self.nodes.compare(block.separator(candidate)?, target);
        if compared.shared == MAX_SHARED && alike.len() > 1 && compared.order != Ordering::Equal {
            let rest =
                if compared.order == Ordering::Greater { alike.start..candidate } else { candidate + 1..alike.end };
            return Some(self.last_slot(block, target, Side::AtOrBefore, rest, cost));
        }
        // A slot that shares more with the candidate than the target does is on the candidate's side of the target.
        let is_beside = |slot: &usize| block.relative(*slot).shared() > compared.shared;
        Some(match compared.order {
            Ordering::Equal => candidate,
            Ordering::Less => candidate + (candidate + 1..slots.end).take_while(is_beside).count(),
            Ordering::Greater => candidate - 1 - (slots.start + 1..=candidate).rev().take_while(is_beside).count(),
        })
    }
}

/// The slots around `slot`, within `slots`, whose keys share more bytes than a partial key can count: most likely versions of one key.
#[inline]
fn alike(block: ReadBlock<'_>, slot: usize, slots: Range<usize>) -> Range<usize> {
    let is_alike = |slot: &usize| block.relative(*slot).shared() == MAX_SHARED;
    let before = (slots.start + 1..=slot).rev().take_while(is_alike).count();
    let behind = (slot + 1..slots.end).take_while(is_alike).count();
    slot - before..slot + 1 + behind
}

/// The slots before `end` that tie with the last of them: at least one slot; the first slot of the block is included only if `end` is 1.
#[inline]
fn ties_before(block: ReadBlock<'_>, end: usize) -> Range<usize> {
    let last = end - 1;
    let partial = block.partial(last);
    let first = partial.checked_sub(1).map_or(0, |less| block.count_not_greater(less));
    // The last slot ties with itself, even if a writer changes it meanwhile.
    first.max(1).min(last)..end
}

/// A slot whose key shares as long a prefix with the target, whose sort key is `sort_key`, as the key of any of `slots`.
#[inline]
fn blind_candidate(block: ReadBlock<'_>, sort_key: &[u8], slots: Range<usize>) -> usize {
    let mut candidate = slots.start;
    // Slots that branch off the candidate behind a slot that is after the target are after it too: their differences are less than `behind`.
    let mut behind = 0;
    for slot in slots.start + 1..slots.end {
        let relative = block.relative(slot);
        if u64::from(relative.0) < behind {
            continue;
        }
        if relative <= PartialKey::new(sort_key, relative.shared()) {
            (candidate, behind) = (slot, 0);
        } else {
            behind = (u64::from(relative.0 >> 24) + 1) << 24;
        }
    }
    candidate
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SearchCost;
    use crate::list::tests::{list_of, mix};

    /// Calls `look` with every block.
    fn each_block<S: Schema, T>(index: &Index<S, T>, id: BlockId, look: &mut impl FnMut(ReadBlock<'_>)) {
        let block = index.read(id);
        look(block);
        if block.header.level() > 0 {
            (0..block.header.count()).for_each(|slot| each_block(index, block.child(slot).unwrap(), look));
        }
    }

    /// The ranges of slots, except the first, whose partial keys are the same.
    fn runs(block: ReadBlock<'_>) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for slot in 1..block.header.count() {
            match runs.last_mut() {
                Some(run) if block.partial(run.start) == block.partial(slot) => run.end = slot + 1,
                _ => runs.push(slot..slot + 1),
            }
        }
        runs
    }

    /// Keys over few letters, zeros among them, so that shared prefixes, padding and ties of all lengths occur. A few differ only in zeros at the
    /// end.
    fn key(number: u64) -> Vec<u8> {
        let random = mix(number);
        let len = random % 23;
        let letter = |at| b"\0ab\xff"[(mix(random ^ at) >> 60) as usize % 4];
        (0..len).map(|at| if at % 5 > 2 { letter(at) } else { b'x' }).collect()
    }

    /// Catches a wrong place among ties, and comparisons that rarely settle a tie.
    #[test]
    fn one_look_finds_what_a_search_by_keys_finds() {
        let list = list_of((0..30_000).map(key));
        let (mut settled, mut tried) = (0, 0);
        each_block(&list.index, list.index.root().unwrap(), &mut |block| {
            let header = block.header;
            for run in runs(block).into_iter().filter(|run| header.is_tied() && run.len() > 1) {
                let partial = block.partial(run.start);
                let ties = |key: &Vec<u8>| header.partial_of(key) == partial;
                for key in (0..60_000).step_by(7).map(key).filter(ties) {
                    let target = Target { key: &key, version: 0 };
                    let mut cost = SearchCost::default();
                    let mut settle_from =
                        |known| list.index.settle_by_trie(block, target, run.clone(), known, &mut cost);
                    let slot = settle_from(None);
                    // The result is the same with candidate slots that were found for other blocks.
                    assert!([run.start - 1, run.end].iter().all(|&known| settle_from(Some(known as u8)) == slot));
                    let known = list.index.prefetch_candidate(block.id(), target);
                    assert!(known.is_some() && settle_from(known) == slot);
                    assert!(cost.nodes >= 4 || slot.is_none() && cost.nodes == 0);
                    let by_keys = list.index.last_slot(block, target, Side::AtOrBefore, run.clone(), &mut ());
                    assert!(slot.is_none_or(|slot| slot == by_keys), "{key:?}: slot {slot:?}, by keys {by_keys}");
                    settled += usize::from(slot.is_some());
                    tried += 1;
                }
            }
        });
        // Keys that differ only in zeros at the end share more bytes than a partial key can count.
        assert!(tried > 10_000 && settled * 5 > tried * 4, "{settled} of {tried}");
    }

    /// Catches tie rows in blocks without ties, which waste memory, and ties without tie rows, each of which costs a search by keys.
    #[test]
    fn leaves_have_a_third_row_where_keys_tie() {
        let rows = |key: fn(u64) -> Vec<u8>| {
            let list = list_of((0..6000).map(key));
            let (mut leaves, mut above) = ([0; 3], 0);
            each_block(&list.index, list.index.root().unwrap(), &mut |block| {
                let header = block.header;
                above += usize::from(header.level() > 0);
                leaves[header.rows() as usize] += usize::from(header.level() == 0);
                let is_tied = runs(block).into_iter().any(|run| run.len() > 1);
                assert!(!is_tied || header.rows() == Rows::Two || header.is_tied());
            });
            assert!(above > 0);
            leaves
        };
        assert!(rows(|i| mix(i).to_be_bytes().to_vec())[1..] == [0, 0]);
        let [two, three, four] = rows(|i| [&[b'x'; 20][..], &mix(i).to_be_bytes()].concat());
        assert!(two > 100 && (three, four) == (0, 0), "a prefix that all share: {two}, {three}, {four}");
        let tied: [fn(u64) -> Vec<u8>; 2] = [
            |i| [&mix(i / 8).to_be_bytes()[..4], b"common", &mix(i).to_be_bytes()].concat(),
            // Descending keys: the block to the right of a cut gets no more keys.
            |i| [&(!i / 8).to_be_bytes()[4..], b"common", &(!i).to_be_bytes()].concat(),
        ];
        for key in tied {
            let [two, three, four] = rows(key);
            assert!(three > 100 && two < 10 && four == 0, "eight keys of a prefix each: {two}, {three}, {four}");
        }
    }
}
