//! Differences between the slots of a block whose partial keys tie, as those of paths and addresses often do.
//!
//! A tied block stores for each slot what a link stores about its successor (`key.rs`): the length of the prefix that the slot's key shares with
//! the key of the slot before, and the bytes that follow it. So the slots are a trie that leaves out shared bytes. A target finds its place by
//! looking at one node, however many slots tie. First it goes down the trie by its own bytes, ignoring the left-out ones, to a slot that shares as
//! much with the target as any. Comparing the two gives the length of what they share, which tells how far from there the place is (Ferragina and
//! Grossi, "The String B-tree", 1999; in a row instead of a tree: Ferguson, "Bit-Tree", 1992).

use core::cmp::Ordering;
use core::ops::Range;

use super::block::{Block, BlockId, Gaps, Header, Locked, Relative, Rows, SlotContent, partial_in};
use super::tree::Index;
use crate::key::{self, MAX_SHARED, PartialKey};
use crate::node::{Predecessor, Target};
use crate::nodes::{Schema, Side, Visits};

impl<S: Schema, T> Index<S, T> {
    /// Puts a hint or a block into a locked block, which is tied if the new slot ties with a neighbour.
    #[inline(always)]
    pub(super) fn insert_slot(&self, block: &mut Locked<'_>, slot: usize, partial: i32, held: SlotContent) {
        if !block.is_tied() {
            let ties = |slot: usize| slot < block.count() && block.block().partial(slot) == partial;
            if block.rows() == Rows::Two || !(ties(slot - 1) || ties(slot)) {
                return block.insert(slot, partial, held, None);
            }
            self.tie(block);
        }
        let relative = self.relative_to_neighbours(block, slot, held.separator());
        block.insert(slot, partial, held, Some(relative));
    }

    /// The difference of `separator` from the slot before `slot`, and that of the present slot at `slot` from `separator`.
    #[cold]
    #[inline(never)]
    fn relative_to_neighbours(&self, block: &Locked<'_>, slot: usize, separator: Predecessor) -> Relative {
        let key = self.nodes.key_of(Some(separator));
        let key_at = |slot: usize| self.nodes.key_of(block.block().separator(**block, slot));
        let own = PartialKey::between(key_at(slot - 1), key);
        let next = (slot < block.count()).then(|| {
            let next = block.block().relative(slot);
            // If the new key shares more with the slot before, the next slot differs from both in the same way.
            if own.shared() > next.shared() { next } else { PartialKey::between(key, key_at(slot)) }
        });
        Relative { own, next }
    }

    /// Ties a block that has room for it, if any of its slots tie.
    pub(super) fn tie_if_needed(&self, block: &mut Locked<'_>) {
        if block.rows() > Rows::Two && !block.is_tied() && Gaps::of(block).ties() != 0 {
            self.tie(block);
        }
    }

    #[cold]
    fn tie(&self, block: &mut Locked<'_>) {
        let key_at = |slot: usize| self.nodes.key_of(block.block().separator(**block, slot));
        let relative: Vec<_> =
            (1..block.count()).map(|slot| PartialKey::between(key_at(slot - 1), key_at(slot))).collect();
        for (slot, relative) in (1..).zip(relative) {
            block.set_relative(slot, relative);
        }
        block.set_tied();
    }

    /// The number of rows that a new block of `level` gets, beside or above a full one. It gets all rows if slots tie even after the longest prefix
    /// that they share, which the full block has; in a leaf, if more than an eighth of them do.
    pub(super) fn rows_beside(&self, block: &Locked<'_>, gaps: Gaps, level: u32) -> Rows {
        let most = if block.level() > 0 { 0 } else { block.count() / 8 };
        match (gaps.ties().count_ones() as usize > most && self.count_ties(block, gaps) > most, level) {
            (false, _) => Rows::Two,
            (true, 0) => Rows::Three,
            (true, _) => Rows::Four,
        }
    }

    /// The number of slots that tie with the slot before, not counting versions of one key, which do not form a trie.
    #[cold]
    fn count_ties(&self, block: &Locked<'_>, gaps: Gaps) -> usize {
        let key_at = |slot: usize| self.nodes.key_of(block.block().separator(**block, slot));
        let ties = |slot: &usize| gaps.ties() >> slot & 1 != 0;
        let are_keys = |slot: &usize| key::compare(key_at(slot - 1), key_at(*slot), 0).1 < MAX_SHARED;
        (1..block.count()).filter(ties).filter(are_keys).count()
    }

    /// Prefetches the node that settles ties by `slot`. In a leaf whose keys have versions, also prefetches the node before it, which the search
    /// compares then.
    #[inline(always)]
    fn prefetch_look(&self, block: Block<'_>, header: Header, slot: usize) {
        self.nodes.prefetch(block.separator(header, slot));
        if S::HAS_VERSIONS && header.level() == 0 {
            self.nodes.prefetch(block.hint(slot - 1));
        }
    }

    /// The slot that settles the target's ties in a block, if there are any. Its node is prefetched.
    #[inline(never)]
    pub(crate) fn prefetch_candidate(&self, block: BlockId, target: Target<'_>) -> Option<u8> {
        let block = self.block(block);
        let header = block.header();
        let partial = partial_in(header, target);
        let end = block.count_not_greater(header, partial);
        if !header.is_tied() || end < 2 || block.partial(end - 1) != partial {
            return None;
        }
        let slots = ties_before(block, header, end);
        if slots.len() == 1 && header.level() == 0 {
            return None;
        }
        let candidate = blind_candidate(block, target, slots);
        self.prefetch_look(block, header, candidate);
        Some(candidate as u8)
    }

    /// Of the slots of a tied block that all tie with the target: the last one that is not after it; the slot before the first if all are after it.
    /// `None` if one look is not enough, because all slots are versions of one key, or share more than is counted.
    pub(super) fn settle_by_trie(
        &self,
        block: Block<'_>,
        header: Header,
        target: Target<'_>,
        slots: Range<usize>,
        known: Option<u8>,
        visits: &mut impl Visits,
    ) -> Option<usize> {
        let known = known.map(usize::from).filter(|slot| slots.contains(slot));
        let candidate = known.unwrap_or_else(|| blind_candidate(block, target, slots.clone()));
        let alike = alike(block, candidate, slots.clone());
        if alike.len() > 1 && alike == slots {
            return None;
        }
        self.prefetch_look(block, header, candidate);
        if header.level() > 0 {
            // Most likely the search continues there or nearby, so its lines are fetched together with the node's.
            self.prefetch_child(block.child(candidate)?, header);
        }
        visits.node();
        let compared = self.nodes.compare(block.separator(header, candidate)?, target);
        if compared.shared == MAX_SHARED && alike.len() > 1 && compared.order != Ordering::Equal {
            let rest =
                if compared.order == Ordering::Greater { alike.start..candidate } else { candidate + 1..alike.end };
            return Some(self.last_slot(block, header, target, Side::AtOrBefore, rest, visits));
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

/// The slots around `slot`, within `slots`, whose keys share more than is counted: most likely versions of one key.
fn alike(block: Block<'_>, slot: usize, slots: Range<usize>) -> Range<usize> {
    let is_alike = |slot: &usize| block.relative(*slot).shared() == MAX_SHARED;
    let before = (slots.start + 1..=slot).rev().take_while(is_alike).count();
    let behind = (slot + 1..slots.end).take_while(is_alike).count();
    slot - before..slot + 1 + behind
}

/// The slots before `end` that tie with the last of them; at least one, and the first slot of the block only if `end` is 1.
pub(super) fn ties_before(block: Block<'_>, header: Header, end: usize) -> Range<usize> {
    let last = end - 1;
    let partial = block.partial(last);
    let first = partial.checked_sub(1).map_or(0, |less| block.count_not_greater(header, less));
    // The last one ties with itself, also if a writer changes it meanwhile.
    first.max(1).min(last)..end
}

/// A slot whose key shares as much with the target as any of `slots`.
fn blind_candidate(block: Block<'_>, target: Target<'_>, slots: Range<usize>) -> usize {
    let mut candidate = slots.start;
    // Slots that branch off the candidate behind a slot that is after the target are after it too: their differences are less than this.
    let mut behind = 0;
    for slot in slots.start + 1..slots.end {
        let relative = block.relative(slot);
        if u64::from(relative.0) < behind {
            continue;
        }
        if relative <= PartialKey::of(target.key, relative.shared()) {
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
    use crate::index::block::{BlockId, bias};
    use crate::key::four_bytes;
    use crate::list::tests::{list_of, mix};

    /// Calls `look` with every block.
    fn each_block<S: Schema, T>(index: &Index<S, T>, id: BlockId, look: &mut impl FnMut(Block<'_>)) {
        let block = index.block(id);
        look(block);
        if block.header().level() > 0 {
            (0..block.header().count()).for_each(|slot| each_block(index, block.child(slot).unwrap(), look));
        }
    }

    /// The ranges of slots, except the first, whose partial keys are the same.
    fn runs(block: Block<'_>) -> Vec<Range<usize>> {
        let mut runs: Vec<Range<usize>> = Vec::new();
        for slot in 1..block.header().count() {
            match runs.last_mut() {
                Some(run) if block.partial(run.start) == block.partial(slot) => run.end = slot + 1,
                _ => runs.push(slot..slot + 1),
            }
        }
        runs
    }

    /// Keys of few letters, zeros among them, so that prefixes, paddings and ties of all lengths occur. A few differ only in zeros
    /// at their ends.
    fn key(number: u64) -> Vec<u8> {
        let random = mix(number);
        let len = random % 23;
        let letter = |at| b"\0ab\xff"[(mix(random ^ at) >> 60) as usize % 4];
        (0..len).map(|at| if at % 5 > 2 { letter(at) } else { b'x' }).collect()
    }

    /// Catches a wrong place among ties, and looks that are mostly useless.
    #[test]
    fn one_look_finds_what_a_search_by_keys_finds() {
        let list = list_of((0..30_000).map(key));
        let (mut told, mut asked) = (0, 0);
        each_block(&list.index, list.index.root().unwrap(), &mut |block| {
            let header = block.header();
            for run in runs(block).into_iter().filter(|run| header.is_tied() && run.len() > 1) {
                let partial = block.partial(run.start);
                let ties = |key: &Vec<u8>| bias(four_bytes(key, header.prefix() as usize)) == partial;
                for key in (0..60_000).step_by(7).map(key).filter(ties) {
                    let target = Target { key: &key, version: 0 };
                    let mut cost = SearchCost::default();
                    let mut settle =
                        |known| list.index.settle_by_trie(block, header, target, run.clone(), known, &mut cost);
                    let slot = settle(None);
                    // Slots that were found for other blocks.
                    assert!([run.start - 1, run.end].iter().all(|&known| settle(Some(known as u8)) == slot));
                    let known = list.index.prefetch_candidate(block.id(), target);
                    assert!(known.is_some() && settle(known) == slot);
                    assert!(cost.nodes >= 4 || slot.is_none() && cost.nodes == 0);
                    let by_keys = list.index.last_slot(block, header, target, Side::AtOrBefore, run.clone(), &mut ());
                    assert!(slot.is_none_or(|slot| slot == by_keys), "{key:?}: slot {slot:?}, by keys {by_keys}");
                    told += usize::from(slot.is_some());
                    asked += 1;
                }
            }
        });
        // Keys that differ only in zeros at the end share more than is counted.
        assert!(asked > 10_000 && told * 5 > asked * 4, "{told} of {asked}");
    }

    /// Catches rows for ties in blocks without ties, which waste memory, and ties without such rows, each of which costs a search by keys.
    #[test]
    fn leaves_have_a_third_row_where_keys_tie() {
        let rows = |key: fn(u64) -> Vec<u8>| {
            let list = list_of((0..6000).map(key));
            let (mut leaves, mut above) = ([0; 3], 0);
            each_block(&list.index, list.index.root().unwrap(), &mut |block| {
                let header = block.header();
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
            // Descending keys: the right side of a cut gets no more keys.
            |i| [&(!i / 8).to_be_bytes()[4..], b"common", &(!i).to_be_bytes()].concat(),
        ];
        for key in tied {
            let [two, three, four] = rows(key);
            assert!(three > 100 && two < 10 && four == 0, "eight keys of a prefix each: {two}, {three}, {four}");
        }
    }
}
