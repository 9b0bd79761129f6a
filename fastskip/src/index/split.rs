//! Divides full blocks.
//!
//! The leaf is locked. Before anything changes, its parents are locked upwards until one has room; if a lock is taken, the split is given up. Then,
//! from the top down, each full block moves the slots after the cut to a new block on its right:
//!
//! ```text
//!   1. the right block is filled, where nobody sees it       a reader stopped anywhere sees each hint in one block at least,
//!   2. it is put into the parent                             and a writer stopped anywhere leaves it so: it goes on only
//!      if the parent was not replaced before
//!   3. the left block's `next` leads to it
//!   4. the left block is cut
//! ```

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::block::{Header, Locked, Rows, SlotContent, bias};
use super::descent::{MAX_LEVELS, Path};
use super::hint::Hinted;
use super::prefix::{NewHint, Split};
use super::ties::Gaps;
use super::tree::Index;
use crate::mem::arena::{BlockSource, Pending};
use crate::node::{Predecessor, Schema};
use crate::tuning::SLOTS;

/// The result for a hint whose full leaf could not be split; `None` if the path is out of date.
type SplitError = Option<Hinted>;

impl<S: Schema, T: Pending> Index<S, T> {
    /// Splits the full, locked leaf at the end of `path`; `hint` belongs there at `slot`. Returns the half in which the hint belongs, still locked.
    pub(super) fn split<'a>(
        &'a self,
        shard: usize,
        path: &Path,
        leaf: Locked<'a>,
        slot: usize,
        hint: NewHint<'_>,
    ) -> Result<Locked<'a>, SplitError> {
        let source = BlockSource { shard, is_due: hint.is_due };
        let mut full = self.lock_parents(source, path, leaf)?;
        // The last element is the parent with room; before it are the blocks to split, the leaf first.
        let mut parent = full.pop().ok_or(None)?;
        while let Some(mut left) = full.pop() {
            let gaps = self.spread(&mut left);
            let cut = match hint.split {
                Split::Ascending if full.is_empty() && slot == left.header.count() => SLOTS - 1,
                Split::Descending if full.is_empty() && slot == 1 => 2.min(SLOTS - 1),
                _ => middle(&left, gaps),
            };
            let upper = path.steps()[path.steps().len() - 1 - full.len()].upper;
            let Some(right) = self.divide(source, &mut parent, &mut left, (cut, gaps), upper) else {
                return Err(Some(Hinted::GivenUp));
            };
            let is_right = match full.last() {
                Some(child) => right.find_child(child.id()).is_some(),
                None => self.nodes.compare(right.lower(), hint.target).order != Ordering::Greater,
            };
            parent = if is_right { right } else { left };
        }
        Ok(parent)
    }

    /// Locks the parents of a locked leaf up to the first one that has room; if even the root is full, makes a new root above it. Returns all locked
    /// blocks, the leaf first.
    fn lock_parents<'a>(
        &'a self,
        source: BlockSource,
        path: &Path,
        leaf: Locked<'a>,
    ) -> Result<Vec<Locked<'a>>, SplitError> {
        let mut locked = Vec::with_capacity(path.steps().len() + 1);
        let mut child = leaf;
        for step in path.steps().iter().rev().skip(1) {
            let parent = self.block(step.block).try_lock().ok_or(Some(Hinted::Blocked))?;
            let has_child = parent.find_child(child.id()).is_some();
            if parent.header.level() != child.header.level() + 1 || !has_child {
                return Err(None);
            }
            locked.push(child);
            if !parent.header.is_full() {
                locked.push(parent);
                return Ok(locked);
            }
            child = parent;
        }
        // A full root gets a new root above it.
        let root = child.id();
        if self.root() != Some(root) || path.steps()[0].block != root {
            return Err(None);
        }
        let level = child.header.level() + 1;
        if level as usize + 1 > MAX_LEVELS {
            return Err(Some(Hinted::GivenUp));
        }
        let gaps = self.spread(&mut child);
        // The bytes that the first and the last hinted key share are shared by all hinted keys.
        let last = self.last_hint(*child).and_then(Predecessor::node);
        let shared = |first| last.map_or(0, |last| self.shared(first, last));
        let prefix = self.nodes.after(Predecessor::HEAD).map_or(0, shared);
        let header = Header::new(level, prefix, self.rows_beside(&child, gaps, level));
        let new = self.new_block(source, header, Predecessor::HEAD);
        let mut new = new.ok_or(Some(Hinted::GivenUp))?;
        new.insert(0, bias(0), SlotContent::Child(root, Predecessor::HEAD), None);
        if !self.set_root(root, new.id()) {
            self.waste_block(source.shard, new.header);
            return Err(None);
        }
        locked.extend([child, new]);
        Ok(locked)
    }

    /// Moves the slots of `left` from `cut` on to a new block, and adds that block to `parent`. The block after `parent` does not begin before
    /// `upper`. Returns `None` if that is impossible, or there is no room.
    fn divide(
        &self,
        source: BlockSource,
        parent: &mut Locked<'_>,
        left: &mut Locked<'_>,
        (cut, gaps): (usize, Gaps),
        upper: Option<Predecessor>,
    ) -> Option<Locked<'_>> {
        let (level, count) = (left.header.level(), left.header.count());
        let lower = left.separator(cut).unwrap_or(Predecessor::HEAD);
        let behind = parent.find_child(left.id()).map(|slot| slot + 1).filter(|slot| *slot < parent.header.count());
        let upper = behind.and_then(|behind| parent.separator(behind)).or(upper);
        if upper.is_some_and(|upper| !self.nodes.is_before(lower, upper)) {
            // The hints from slot `cut` on were added during the last split of the block, and belong to the block after it.
            left.set_count(cut);
            return None;
        }
        let header = Header::new(level, left.header.prefix(), self.rows_beside(left, gaps, level));
        let mut right = self.new_block(source, header, lower)?;
        if left.header.is_tied() && header.rows() > Rows::Two {
            right.set_tied();
        }
        right.copy_slots(**left, cut..count);
        right.set_bounds(lower, left.next());
        if gaps.are_narrow(cut + 1..count) {
            self.lengthen_prefix(&mut right);
        }
        self.tie_if_needed(&mut right);
        // Adds the new block to the parent, behind `left`.
        let sort_key = self.nodes.sort_key_of(Some(lower));
        self.shorten_prefix(parent, sort_key.as_ref(), None);
        let partial = parent.header.partial_of(sort_key.as_ref());
        let slot = parent.find_child(left.id()).map_or(parent.header.count(), |slot| slot + 1);
        self.insert_slot(parent, slot, partial, SlotContent::Child(right.id(), lower));
        if parent.is_retired() {
            // The parent was replaced meanwhile, and its copy may lack `right`, so `left` keeps its slots.
            self.waste_block(source.shard, right.header);
            return None;
        }
        left.replace_next(left.next(), right.id());
        left.set_count(cut);
        if gaps.are_narrow(1..cut) {
            self.lengthen_prefix(left);
        }
        Some(right)
    }
}

/// The slot near the middle that differs most from the slot before it: as the new lower bound, it is then visible in the parent's partial keys.
fn middle(block: &Locked<'_>, gaps: Gaps) -> usize {
    let count = block.header.count();
    let reach = if gaps.are_narrow(1..count) { count / 4 } else { count / 8 };
    let differ = |slot: usize| (block.partial(slot) ^ block.partial(slot - 1)).leading_zeros() / 4;
    let cuts = (count / 2 - reach).max(1)..=(count / 2 + reach).min(count - 1);
    cuts.min_by_key(|&slot| (differ(slot), slot.abs_diff(count / 2))).unwrap_or(count / 2)
}

#[cfg(test)]
mod tests {
    use crate::list::tests::{list_of, mix};

    /// Catches blocks that do not lead to the next block of their level, so that readahead would end there.
    #[test]
    fn the_blocks_of_a_level_lead_to_each_other() {
        for key in [(|i| i) as fn(u64) -> u64, |i| u64::MAX - i, mix] {
            let list = list_of((0..6000).map(|i| key(i).to_be_bytes().to_vec()));
            let mut level = vec![list.index.root().unwrap()];
            while list.index.block(level[0]).load_header().level() > 0 {
                let children = |id| (0..list.index.block(id).load_header().count()).map(move |slot| (id, slot));
                let children = level.into_iter().flat_map(children);
                level = children.map(|(id, slot)| list.index.block(id).child(slot).unwrap()).collect();
                let next: Vec<_> = level.iter().map(|&id| list.index.block(id).next()).collect();
                let expected: Vec<_> = level[1..].iter().copied().map(Some).chain([None]).collect();
                assert!(next == expected, "{next:?}, expected {expected:?}");
            }
        }
    }
}
