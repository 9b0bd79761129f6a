//! The way down to a leaf.

use super::block::BlockId;
use crate::node::Predecessor;

/// The maximum number of levels of blocks. Fifteen levels of two slots each would hold only thirty thousand hints, but splits leave two slots
/// behind only at one edge of a level; a root that would be higher is not split.
pub(super) const MAX_LEVELS: usize = 16;

/// The blocks on the way from the root to a leaf, with the upper bound of each.
#[derive(Debug, Clone)]
pub(super) struct Path {
    blocks: [Option<BlockId>; MAX_LEVELS],
    /// The lower bound of the next block in the tree; `None` at its right edge.
    uppers: [Option<Predecessor>; MAX_LEVELS],
    pub(super) len: usize,
    /// Slots in use in the leaf.
    pub(super) leaf_count: usize,
    /// The longest prefix that partial keys on the way leave out; longer than any if a lock on the way was taken.
    pub(super) prefix: u32,
}

impl Path {
    pub(super) const fn new() -> Self {
        Self { blocks: [None; MAX_LEVELS], uppers: [None; MAX_LEVELS], len: 0, leaf_count: 0, prefix: 0 }
    }

    /// Whether there was room.
    pub(super) fn push(&mut self, block: BlockId, upper: Option<Predecessor>) -> bool {
        let (Some(end), Some(bound)) = (self.blocks.get_mut(self.len), self.uppers.get_mut(self.len)) else {
            return false;
        };
        (*end, *bound) = (Some(block), upper);
        self.len += 1;
        true
    }

    /// The upper bound of the block at `depth`: the next block does not begin before it.
    pub(super) fn upper(&self, depth: usize) -> Option<Predecessor> {
        self.uppers[..self.len].get(depth).copied().flatten()
    }

    pub(super) fn get(&self, depth: usize) -> Option<BlockId> {
        self.blocks[..self.len].get(depth).copied().flatten()
    }

    pub(super) fn leaf(&self) -> Option<BlockId> {
        self.get(self.len.checked_sub(1)?)
    }
}
