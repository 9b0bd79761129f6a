//! Puts a copy in the place of a block whose lock stays with a thread that is stopped.
//!
//! Such a thread would keep hints out of that block for as long. So the block is retired and its parent's slot given to a copy.
//! If the holder has the parent's lock too, the parent is replaced first, up to the root, whose place is a word of its own.
//!
//! A lock that is seen taken says little: a thread that runs lets go of it soon, and would have made a block useless for
//! nothing. So the header counts the looks of mends at one hold, each mend of another operation:
//!
//! ```text
//!   mend     header {locked, version v, n looks} -> {.., n + 1}        by CAS from what it has read
//!   holder   changes the header, or unlocks: {version v + 1}           each store has no looks
//! ```
//!
//! A mend whose look is the [`STUCK_LOOKS`](crate::tuning::STUCK_LOOKS)-th begins the count anew and alone replaces the block. A mend ends at a lock that is
//! not ripe, so it looks at each hold once. All locks on its way are looked at together: those of one thread ripen together.
//!
//! Blocks that were replaced lie idle until the table is dropped, because readers may still be in them, and their holder will be.
//! I6 bound: they take no more than one part in [`REPLACED_PART`] of the limit, whatever the schedule: room for the copy is taken
//! from that part first. When it is used up, locks that stay taken are put up with. A holder whose block was replaced may find one new block
//! useless when it goes on (`split.rs`): one for each that was replaced, at most.
//!
//! The stopped thread may go on at any time. It then changes a block that no search comes to any more, or one that only the
//! last readers of the old blocks see: a hint of its own is lost. What it could put into the tree goes through blocks that it
//! has locked, which are retired, or through a compare-and-swap of the root, which fails.
//!
//! The copy is made of what can be seen, in whatever step the holder was stopped: slots that are empty, doubled, or not within
//! the block's range are left out, and partial keys are made anew.

use super::block::{Block, BlockId, bias};
use super::descent::By;
use super::path::Path;
use super::tree::Index;
use crate::node::{NodeId, Predecessor};
use crate::nodes::{Schema, Side};
use crate::sync::Ordering;
use crate::tuning::{REPLACED_PART, SLOTS};

impl<S: Schema, T> Index<S, T> {
    /// Looks at the locks on the way to `node`, and replaces the blocks whose holder is stopped. Whether there were any.
    #[cold]
    #[inline(never)]
    pub(crate) fn unblock(&self, shard: usize, node: NodeId) -> bool {
        let path = || self.path_to(self.nodes.node(node).target(), By::Keys(Side::AtOrBefore), &mut ());
        let Some(seen) = path() else { return false };
        let blocks = (0..seen.len).filter_map(|depth| seen.get(depth));
        let stuck: Vec<_> = blocks.filter(|&id| self.block(id).look()).collect();
        // From the top down, each time on a path with the copy of the one above.
        stuck.iter().for_each(|&id| path().iter().for_each(|path| self.replace(shard, path, id)));
        !stuck.is_empty()
    }

    /// Replaces the block `id` on `path`, unless the path is out of date, the parent's lock is taken or there is no room.
    fn replace(&self, shard: usize, path: &Path, id: BlockId) {
        let Some(depth) = (0..path.len).find(|&depth| path.get(depth) == Some(id)) else { return };
        let block = self.block(id);
        let Some(above) = depth.checked_sub(1) else { return self.replace_root(shard, block) };
        let Some(parent) = path.get(above) else { return };
        let Some(mut parent) = self.block(parent).try_lock() else { return };
        let Some(slot) = parent.block().find_child(*parent, id) else { return };
        let behind = slot + 1;
        let next = if behind < parent.count() { parent.block().child(behind) } else { None };
        let Some(copy) = self.copy_of(shard, block, next) else { return };
        parent.set_child(slot, copy);
        if let Some(left) = slot.checked_sub(1).and_then(|left| parent.block().child(left)) {
            self.block(left).replace_next(Some(id), copy);
        }
    }

    fn replace_root(&self, shard: usize, root: Block<'_>) {
        if let Some(copy) = self.copy_of(shard, root, None) {
            self.set_root(root.id(), copy);
        }
    }

    /// Takes `words` from what replaced blocks may take.
    fn take_replaced(&self, words: u64) -> bool {
        let most = self.most_replaced();
        let more = |replaced: u64| Some(replaced + words).filter(|replaced| *replaced <= most);
        // Relaxed: a read-modify-write sees the latest count, which publishes nothing.
        self.replaced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Words that replaced blocks may take.
    pub(super) fn most_replaced(&self) -> u64 {
        self.nodes.arena.limit() / REPLACED_PART
    }

    /// Retires a block and copies what comes before `next`, the block behind it in their parent. The copy's lock is free before
    /// anybody sees it. `None` if there is no room.
    fn copy_of(&self, shard: usize, block: Block<'_>, next: Option<BlockId>) -> Option<BlockId> {
        let upper = next.map(|next| self.block(next).lower());
        let (header, lower) = (block.header(), block.lower());
        let (level, words) = (header.level(), header.rows().words().into());
        if !self.take_replaced(words) {
            return None;
        }
        let Some(mut copy) = self.new_block(shard, level, 0, lower, header.rows()) else {
            self.replaced.fetch_sub(words, Ordering::Relaxed);
            return None;
        };
        self.waste_block(shard, header);
        let next = block.retire().or(next);
        let mut last: Option<Predecessor> = None;
        // Slots move on while the holder goes on, after it has counted one more: so the count is looked at each time.
        for slot in (0..SLOTS).take_while(|&slot| slot < block.header().count()) {
            // Read once: a second look could find there what the slot before held, and this one's would be lost.
            let Some(held) = block.held(level, slot) else { continue };
            let separator = held.separator();
            // The first one is there in any case: a block is never empty.
            let follows = |last| {
                self.nodes.is_before(last, separator) && upper.is_none_or(|end| self.nodes.is_before(separator, end))
            };
            if last.is_none_or(follows) {
                last = Some(separator);
                copy.insert(copy.count(), bias(0), held, None);
            }
        }
        copy.set_bounds(lower, next);
        // Which also makes the partial keys.
        let shared = self.shared_by_all(&copy);
        self.set_prefix(&mut copy, block.header().prefix().min(shared));
        self.tie_if_needed(&mut copy);
        Some(copy.block().id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hint::Hinted;
    use crate::list::tests::{ascending, small};
    use crate::tuning::STUCK_LOOKS;

    /// Catches a block that is replaced though its lock goes from hand to hand, or its holder goes on: each mend would leave a useless
    /// block behind where threads that write meet.
    #[test]
    fn a_holder_that_runs_is_no_reason_to_replace_its_block() {
        let list = ascending(1000);
        let root = list.index.root().unwrap();
        let last = list.index.last().unwrap();
        let look = || (1..STUCK_LOOKS).for_each(|_| assert_eq!(list.index.mend_at(0, last), Hinted::Blocked));
        for _ in 0..10 {
            let _holder = list.index.block(root).try_lock().unwrap();
            look();
        }
        let mut holder = list.index.block(root).try_lock().unwrap();
        for _ in 0..10 {
            look();
            holder.set_prefix(holder.prefix());
        }
        assert_eq!(list.index.root(), Some(root));
        drop(holder);
        list.validate(true);
    }

    /// Catches locks of one stopped thread that are given up one after the other, each after as many walks.
    #[test]
    fn the_blocks_that_a_stopped_thread_holds_are_replaced_together() {
        let list = ascending(2000);
        let last = list.index.last().unwrap();
        let path = list.index.path_to(list.node(last).target(), By::Keys(Side::AtOrBefore), &mut ()).unwrap();
        assert!(path.len > 2);
        let held: Vec<_> =
            (0..path.len).map(|depth| list.index.block(path.get(depth).unwrap()).try_lock().unwrap()).collect();
        (1..STUCK_LOOKS).for_each(|_| assert_eq!(list.index.mend_at(0, last), Hinted::Blocked));
        assert_eq!(list.index.mend_at(0, last), Hinted::Added);
        assert!(held.iter().all(|block| block.is_retired()));
        drop(held);
        list.validate(true);
    }

    /// I6: catches a table that threads fill with useless blocks by being stopped again and again.
    #[test]
    fn replaced_blocks_take_a_part_of_the_limit_and_no_more() {
        let list = small(64 << 10);
        let last = list.index.last().unwrap();
        let mut replaced = 0;
        loop {
            let root = list.index.root().unwrap();
            let words = u64::from(list.index.block(root).header().rows().words());
            let _holder = list.index.block(root).try_lock().unwrap();
            (0..STUCK_LOOKS).for_each(|_| _ = list.index.mend_at(0, last));
            if list.index.root() == Some(root) {
                assert!(replaced + words > list.index.most_replaced(), "{replaced} words of replaced blocks");
                break;
            }
            replaced += words;
            assert!(replaced <= list.index.most_replaced(), "{replaced} words of replaced blocks");
        }
        assert_eq!(list.index.most_replaced(), (64 << 10) / 8 / REPLACED_PART);
        list.validate(true);
    }
}
