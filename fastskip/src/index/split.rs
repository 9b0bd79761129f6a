//! Divides full blocks.
//!
//! The leaf is locked. Its parents are tried upwards until one has room, before anything changes; if a lock is taken, nothing happens. Then, from
//! the top down, each full block moves the slots after the cut to a new block on its right:
//!
//! ```text
//!   1. the right block is filled, where nobody sees it       a reader stopped anywhere sees each hint in one block at least,
//!   2. it is put into the parent                             and a writer stopped anywhere leaves it so: it goes on only
//!      if the parent was not replaced before
//!   3. the left block's `next` leads to it
//!   4. the left block is cut
//! ```

use core::cmp::Ordering;

use super::block::{Block, Gaps, Locked, Rows, SlotContent, bias};
use super::hint::Hinted;
use super::path::{MAX_LEVELS, Path};
use super::prefix::{NewHint, Split};
use super::tree::Index;
use crate::key::{self, four_bytes};
use crate::mem::arena::{BlockSource, Pending};
use crate::node::Predecessor;
use crate::nodes::Schema;
use crate::tuning::SLOTS;

/// The result for a hint whose full block could not be split; `None` if the path is out of date.
type SplitError = Option<Hinted>;

impl<S: Schema, T: Pending> Index<S, T> {
    /// Splits the full, locked leaf at the end of `path`, in which `hint` belongs at `slot`. Returns, locked, the half in which it belongs.
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
        // The parent with room is last; the blocks to split come before it, the leaf first.
        let mut parent = full.pop().ok_or(None)?;
        while let Some(mut left) = full.pop() {
            let gaps = self.spread(&mut left);
            let cut = if full.is_empty() { cut_of_leaf(&left, gaps, slot, hint.split) } else { middle(&left, gaps) };
            let upper = path.upper(path.len - 1 - full.len());
            let Some(right) = self.divide(source, &mut parent, &mut left, (cut, gaps), upper) else {
                return Err(Some(Hinted::GivenUp));
            };
            let is_right = match full.last() {
                Some(child) => right.block().find_child(*right, child.block().id()).is_some(),
                None => self.nodes.compare(right.block().lower(), hint.target).order != Ordering::Greater,
            };
            parent = if is_right { right } else { left };
        }
        Ok(parent)
    }

    /// Locks the parents of a locked leaf up to the first one that has room; above a full root, makes a new one. Returns all locked blocks, the
    /// leaf first.
    fn lock_parents<'a>(
        &'a self,
        source: BlockSource,
        path: &Path,
        leaf: Locked<'a>,
    ) -> Result<Vec<Locked<'a>>, SplitError> {
        let mut locked = Vec::with_capacity(path.len + 1);
        let mut child = leaf;
        for depth in (0..path.len - 1).rev() {
            let Some(id) = path.get(depth) else { return Err(None) };
            let parent = self.block(id).try_lock().ok_or(Some(Hinted::Blocked))?;
            let has_child = parent.block().find_child(*parent, child.block().id()).is_some();
            if parent.level() != child.level() + 1 || !has_child {
                return Err(None);
            }
            locked.push(child);
            if !parent.is_full() {
                locked.push(parent);
                return Ok(locked);
            }
            child = parent;
        }
        let root = self.raise_root(source, path, &mut child)?;
        locked.push(child);
        locked.push(root);
        Ok(locked)
    }

    /// Puts a new root above the full, locked one.
    fn raise_root<'a>(
        &'a self,
        source: BlockSource,
        path: &Path,
        root: &mut Locked<'a>,
    ) -> Result<Locked<'a>, SplitError> {
        let was = root.block();
        if self.root() != Some(was.id()) || path.get(0) != Some(was.id()) {
            return Err(None);
        }
        if root.level() as usize + 2 > MAX_LEVELS {
            return Err(Some(Hinted::GivenUp));
        }
        let gaps = self.spread(root);
        let rows = self.rows_beside(root, gaps, root.level() + 1);
        let new = self.new_block(source, root.level() + 1, self.root_prefix(root), Predecessor::HEAD, rows);
        let mut new = new.ok_or(Some(Hinted::GivenUp))?;
        new.insert(0, bias(0), SlotContent::Child(was.id(), Predecessor::HEAD), None);
        if self.set_root(was.id(), new.block().id()) {
            return Ok(new);
        }
        self.waste_block(source.shard, *new);
        Err(None)
    }

    /// The number of bytes that all hinted keys share, which the first and the last one determine.
    fn root_prefix(&self, root: &Locked<'_>) -> u32 {
        match (self.nodes.after(Predecessor::HEAD), self.last_node(root)) {
            (Some(first), Some(last)) => key::compare(self.nodes.node(first).key(), self.nodes.node(last).key(), 0).1,
            _ => 0,
        }
    }

    /// Moves the slots of `left` from `cut` on to a new block in `parent`. The block after `parent` does not begin before `upper`. `None` if that
    /// is impossible, or there is no room.
    fn divide(
        &self,
        source: BlockSource,
        parent: &mut Locked<'_>,
        left: &mut Locked<'_>,
        (cut, gaps): (usize, Gaps),
        upper: Option<Predecessor>,
    ) -> Option<Locked<'_>> {
        let (block, level) = (left.block(), left.level());
        let lower = block.separator(**left, cut).unwrap_or(Predecessor::HEAD);
        let upper = self.separator_behind(parent, block).or(upper);
        if upper.is_some_and(|upper| !self.nodes.is_before(lower, upper)) {
            // These hints were added during the last split of the block, and belong to the next block.
            left.cut(cut);
            return None;
        }
        let mut right = self.new_block(source, level, left.prefix(), lower, self.rows_beside(left, gaps, level))?;
        if left.is_tied() && right.rows() > Rows::Two {
            right.set_tied();
        }
        right.fill(block, level, cut..left.count());
        right.set_bounds(lower, block.next());
        if gaps.are_narrow(cut + 1..left.count()) {
            self.lengthen_prefix(&mut right);
        }
        self.tie_if_needed(&mut right);
        self.insert_right(parent, block, right.block(), lower);
        if parent.is_retired() {
            // The parent was replaced meanwhile, and its copy may lack `right`, so `left` keeps its slots.
            self.waste_block(source.shard, *right);
            return None;
        }
        block.replace_next(block.next(), right.block().id());
        left.cut(cut);
        if gaps.are_narrow(1..cut) {
            self.lengthen_prefix(left);
        }
        Some(right)
    }

    /// The lower bound of the slot after a child of `parent`.
    fn separator_behind(&self, parent: &Locked<'_>, child: Block<'_>) -> Option<Predecessor> {
        let behind = parent.block().find_child(**parent, child.id())? + 1;
        if behind < parent.count() { parent.block().separator(**parent, behind) } else { None }
    }

    /// Puts `right` after `left` into their parent.
    fn insert_right(&self, parent: &mut Locked<'_>, left: Block<'_>, right: Block<'_>, lower: Predecessor) {
        let key = self.nodes.key_of(Some(lower));
        let shared = self.prefix_of_key(parent.block(), **parent, key, None);
        if shared < parent.prefix() {
            self.set_prefix(parent, shared);
        }
        let partial = bias(four_bytes(key, parent.prefix() as usize));
        let slot = parent.block().find_child(**parent, left.id()).map_or(parent.count(), |slot| slot + 1);
        self.insert_slot(parent, slot, partial, SlotContent::Child(right.id(), lower));
    }
}

/// The place to cut a full leaf in which a hint belongs at `slot`.
fn cut_of_leaf(leaf: &Locked<'_>, gaps: Gaps, slot: usize, split: Split) -> usize {
    match split {
        Split::Ascending if slot == leaf.count() => SLOTS - 1,
        Split::Descending if slot == 1 => 2.min(SLOTS - 1),
        _ => middle(leaf, gaps),
    }
}

/// The place near the middle where neighbours differ most: the new lower bound is then visible in the parent's partial key.
fn middle(block: &Locked<'_>, gaps: Gaps) -> usize {
    let count = block.count();
    let reach = if gaps.are_narrow(1..count) { count / 4 } else { count / 8 };
    let differ = |slot: usize| (block.block().partial(slot) ^ block.block().partial(slot - 1)).leading_zeros() / 4;
    let cuts = (count / 2 - reach).max(1)..=(count / 2 + reach).min(count - 1);
    cuts.min_by_key(|&slot| (differ(slot), slot.abs_diff(count / 2))).unwrap_or(count / 2)
}

#[cfg(test)]
mod tests {
    use crate::list::tests::{list_of, mix};

    /// Catches blocks that do not lead to the next of their level, so that readahead ends there.
    #[test]
    fn the_blocks_of_a_level_lead_to_each_other() {
        for key in [(|i| i) as fn(u64) -> u64, |i| u64::MAX - i, mix] {
            let list = list_of((0..6000).map(|i| key(i).to_be_bytes().to_vec()));
            let mut level = vec![list.index.root().unwrap()];
            while list.index.block(level[0]).header().level() > 0 {
                let children = |id| (0..list.index.block(id).header().count()).map(move |slot| (id, slot));
                let children = level.into_iter().flat_map(children);
                level = children.map(|(id, slot)| list.index.block(id).child(slot).unwrap()).collect();
                let next: Vec<_> = level.iter().map(|&id| list.index.block(id).next()).collect();
                let expected: Vec<_> = level[1..].iter().copied().map(Some).chain([None]).collect();
                assert!(next == expected, "{next:?}, expected {expected:?}");
            }
        }
    }
}
