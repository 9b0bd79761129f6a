//! If a stopped thread holds the lock of a block, replaces the block by a copy.
//!
//! Such a thread would keep hints out of that block for as long as it is stopped. So the block is retired, and the parent's slot is made to name a
//! copy. If the stopped thread holds the parent's lock too, the parent is replaced first, and so on up to the root, which a separate word names.
//!
//! A lock that is found taken once is no evidence of a stopped thread: a running thread soon releases it, and a replacement would only waste a block.
//! So the block's header counts how often mends find it locked by the same holder without a change; each mend belongs to another operation:
//!
//! ```text
//!   mend     header {locked, version v, n looks} -> {.., n + 1}        by CAS from what it has read
//!   holder   changes the header, or unlocks: {version v + 1}           each store has no looks
//! ```
//!
//! The mend that makes look number [`STUCK_LOOKS`](crate::tuning::STUCK_LOOKS) resets the count, and it alone replaces the block. A mend ends at a
//! lock that has too few looks, so it counts a holder only once. A mend looks once at all locks on its way, so the counts of all locks of one thread
//! reach the limit at the same time.
//!
//! Replaced blocks stay unused until the table is dropped, because readers may still be in them and their holder may still write to them. I6 bound:
//! replaced blocks take at most one part in [`REPLACED_PART`] of the limit, in every schedule, because room for a copy is first taken from that part.
//! When the part is used up, no further block is replaced. When the holder of a replaced block continues, it may have made one new block that is now
//! useless (`split.rs`): at most one for each replaced block.
//!
//! The stopped thread may continue at any time. It then changes a block that no search visits any more, or that only the last readers of the old
//! blocks see, so the thread only loses its own hint. Any change that the thread could make to the tree goes through blocks that it has locked, which
//! are retired, or through a compare-and-swap of the root, which fails.
//!
//! The copy is made from the visible contents, and is right at whatever step the holder was stopped: slots that are empty, doubled or outside the
//! block's range are left out, and partial keys are computed again.

use alloc::vec::Vec;

use super::block::{Block, BlockId, Header, bias};
use super::descent::{By, Path};
use super::tree::Index;
use crate::mem::arena::{BlockSource, Pending};
use crate::node::{NodeId, Predecessor, Schema, Side};
use crate::sync::Ordering;
use crate::tuning::{REPLACED_PART, SLOTS};

impl<S: Schema, T: Pending> Index<S, T> {
    /// Looks at the locks on the way to `node`, and replaces the blocks whose holder is stopped. Returns whether any holder was stopped.
    #[cold]
    #[inline(never)]
    pub(crate) fn unblock(&self, shard: usize, node: NodeId) -> bool {
        let path = || self.path_to(self.nodes.node(node).target(), By::Keys(Side::AtOrBefore), &mut ());
        let Some(seen) = path() else { return false };
        let blocks = seen.steps().iter().map(|step| step.block);
        let stuck: Vec<_> = blocks.filter(|&id| self.block(id).look()).collect();
        // The blocks are replaced from the top down. Each time a new path is searched, which contains the copy of the block above.
        stuck.iter().for_each(|&id| path().iter().for_each(|path| self.replace(shard, path, id)));
        !stuck.is_empty()
    }

    /// Replaces the block `id` on `path`, unless the path is out of date, the parent's lock is taken or there is no room for a copy.
    fn replace(&self, shard: usize, path: &Path, id: BlockId) {
        let Some(depth) = path.steps().iter().position(|step| step.block == id) else { return };
        let Some(above) = depth.checked_sub(1) else {
            return self.copy_of(shard, self.block(id), None).into_iter().for_each(|copy| _ = self.set_root(id, copy));
        };
        let Some(mut parent) = self.block(path.steps()[above].block).try_lock() else { return };
        let Some(slot) = parent.find_child(id) else { return };
        let next = if slot + 1 < parent.header.count() { parent.child(slot + 1) } else { None };
        let Some(copy) = self.copy_of(shard, self.block(id), next) else { return };
        parent.set_child(slot, copy);
        if let Some(left) = slot.checked_sub(1).and_then(|left| parent.child(left)) {
            self.block(left).replace_next(Some(id), copy);
        }
    }

    /// The maximum number of words of replaced blocks.
    pub(super) fn most_replaced(&self) -> u64 {
        self.nodes.arena.most_words() / REPLACED_PART
    }

    /// Retires a block and makes a copy of it. The copy's next block is `next`, which follows the block in the parent. The copy is unlocked before
    /// any other thread can see it. Returns `None` if there is no room.
    fn copy_of(&self, shard: usize, block: Block<'_>, next: Option<BlockId>) -> Option<BlockId> {
        let upper = next.map(|next| self.block(next).lower());
        let (read, lower) = (block.read(), block.lower());
        let (words, most) = (u64::from(read.header.rows().words()), self.most_replaced());
        let more = |replaced: u64| Some(replaced + words).filter(|replaced| *replaced <= most);
        // Relaxed: a read-modify-write sees the latest count, which publishes nothing.
        self.replaced.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        // The part of the limit for replaced blocks bounds this allocation.
        let source = BlockSource { shard, is_due: true };
        let header = Header::new(read.header.level(), 0, read.header.rows());
        let Some(mut copy) = self.new_block(source, header, lower) else {
            self.replaced.fetch_sub(words, Ordering::Relaxed);
            return None;
        };
        self.waste_block(shard, header);
        let next = block.retire().or(next);
        let mut last: Option<Predecessor> = None;
        // If the holder continues, it counts one more slot and then moves slots; so the count is read again for each slot.
        for slot in (0..SLOTS).take_while(|&slot| slot < block.load_header().count()) {
            // The slot is read only once: a second read could return the content of the slot before it, and this slot's content would be lost.
            let Some(content) = read.content(slot) else { continue };
            let separator = content.separator();
            // The first slot is always copied, because a block is never empty.
            let follows = |last| {
                self.nodes.is_before(last, separator) && upper.is_none_or(|end| self.nodes.is_before(separator, end))
            };
            if last.is_none_or(follows) {
                last = Some(separator);
                copy.insert(copy.header.count(), bias(0), content, None);
            }
        }
        copy.set_bounds(lower, next);
        // This call also computes the partial keys.
        let shared = self.shared_by_all(&copy);
        self.set_prefix(&mut copy, block.load_header().prefix().min(shared));
        self.tie_if_needed(&mut copy);
        Some(copy.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::hint::Hinted;
    use crate::list::tests::{ascending, small};
    use crate::tuning::STUCK_LOOKS;

    /// Catches a block that is replaced although its lock changes hands or its holder continues: mends would leave useless blocks wherever threads
    /// write.
    #[test]
    fn a_holder_that_runs_is_no_reason_to_replace_its_block() {
        let list = ascending(1000);
        let root = list.index.root().unwrap();
        let last = list.index.last().unwrap();
        let look = || (1..STUCK_LOOKS).for_each(|_| assert_eq!(list.index.mend_at(0, last, false), Hinted::Blocked));
        for _ in 0..10 {
            let _holder = list.index.block(root).try_lock().unwrap();
            look();
        }
        let mut holder = list.index.block(root).try_lock().unwrap();
        for _ in 0..10 {
            look();
            {
                let prefix = holder.header.prefix();
                holder.set_prefix(prefix);
            }
        }
        assert_eq!(list.index.root(), Some(root));
        drop(holder);
        list.validate(true);
    }

    /// Catches locks of one stopped thread that are replaced one after the other: each would take as many walks as the first.
    #[test]
    fn the_blocks_that_a_stopped_thread_holds_are_replaced_together() {
        let list = ascending(2000);
        let last = list.index.last().unwrap();
        let path = list.index.path_to(list.node(last).target(), By::Keys(Side::AtOrBefore), &mut ()).unwrap();
        assert!(path.steps().len() > 2);
        let held: Vec<_> = path.steps().iter().map(|step| list.index.block(step.block).try_lock().unwrap()).collect();
        (1..STUCK_LOOKS).for_each(|_| assert_eq!(list.index.mend_at(0, last, false), Hinted::Blocked));
        assert_eq!(list.index.mend_at(0, last, false), Hinted::Added);
        assert!(held.iter().all(|block| block.is_retired()));
        drop(held);
        list.validate(true);
    }

    /// I6: catches a table that fills with useless blocks because threads are stopped again and again.
    #[test]
    fn replaced_blocks_take_a_part_of_the_limit_and_no_more() {
        let list = small(64 << 10);
        let last = list.index.last().unwrap();
        let mut replaced = 0;
        loop {
            let root = list.index.root().unwrap();
            let words = u64::from(list.index.block(root).load_header().rows().words());
            let _holder = list.index.block(root).try_lock().unwrap();
            (0..STUCK_LOOKS).for_each(|_| _ = list.index.mend_at(0, last, false));
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
