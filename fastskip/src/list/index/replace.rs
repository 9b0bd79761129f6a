//! Puts a copy in the place of a block whose lock stays taken.
//!
//! A thread that is stopped while it holds a lock would keep hints out of that block for as long. So a block that is in the
//! way is retired and its parent's slot given to a copy. If the parent's lock is taken too, the parent is replaced first, up to
//! the root, whose place is a word of its own.
//!
//! The stopped thread may go on at any time. It then changes a block that no search comes to any more, or one that only the
//! last readers of the old blocks see: a hint of its own is lost. What it could put into the tree goes through blocks that it
//! has locked, which are retired, or through a compare-and-swap of the root, which fails.
//!
//! The copy is made of what can be seen, in whatever step the holder was stopped: slots that are empty, doubled, or not within
//! the block's range are left out, and partial keys are made anew.

use super::Path;
use super::block::{Block, BlockId, Locked, bias};
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::Predecessor;
use crate::tuning::SLOTS;

impl<S: Schema> List<S> {
    /// Replaces the block `id` on `path`, unless the path is out of date or the arena has no room.
    #[cold]
    #[inline(never)]
    pub(super) fn replace(&self, shard: usize, path: &Path, id: BlockId) {
        let Some(depth) = (0..path.len).find(|&depth| path.get(depth) == Some(id)) else { return };
        let block = self.block(id);
        let Some(above) = depth.checked_sub(1) else { return self.replace_root(shard, block) };
        let Some(parent) = path.get(above) else { return };
        let Some(mut parent) = self.block(parent).try_lock() else {
            // The next to try finds a parent whose lock is free.
            return self.replace(shard, path, parent);
        };
        let Some(slot) = parent.block().find_child(*parent, id) else { return };
        let behind = slot + 1;
        let next = if behind < parent.count() { parent.block().child(behind) } else { None };
        let Some(copy) = self.copy_of(shard, block, next) else { return };
        parent.set_child(slot, copy.block().id());
        if let Some(left) = slot.checked_sub(1).and_then(|left| parent.block().child(left)) {
            self.block(left).replace_next(Some(id), copy.block().id());
        }
    }

    fn replace_root(&self, shard: usize, root: Block<'_>) {
        if let Some(copy) = self.copy_of(shard, root, None) {
            self.index.set_root(root.id(), copy.block().id());
        }
    }

    /// Retires a block and copies what comes before `next`, the block behind it in their parent. `None` if the arena has no room.
    fn copy_of(&self, shard: usize, block: Block<'_>, next: Option<BlockId>) -> Option<Locked<'_>> {
        let upper = next.map(|next| self.block(next).lower());
        let (header, lower) = (block.header(), block.lower());
        let level = header.level();
        let mut copy = self.new_block(shard, level, 0, lower, header.rows())?;
        self.waste_block(shard, header);
        let next = block.retire().or(next);
        let mut last: Option<Predecessor> = None;
        // Slots move on while the holder goes on, after it has counted one more: so the count is looked at each time.
        for slot in (0..SLOTS).take_while(|&slot| slot < block.header().count()) {
            // Read once: a second look could find there what the slot before held, and this one's would be lost.
            let Some(held) = block.held(level, slot) else { continue };
            let separator = held.separator();
            // The first one is there in any case: a block is never empty.
            let follows =
                |last| self.is_before(last, separator) && upper.is_none_or(|end| self.is_before(separator, end));
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
        Some(copy)
    }
}
