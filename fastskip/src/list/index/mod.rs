//! The index: a tree of blocks of hints above the list, which alone is the truth.
//!
//! A hint is a partial key (Bohannon, McIlroy and Rastogi, "Main-memory index structures with fixed-size partial keys", 2001)
//! and a node. The hints of a block stand side by side, so a few vector comparisons find a place among thirty. Blocks make a
//! skip list whose levels are wide (Munro, Papadakis and Sedgewick, "Deterministic skip lists", 1992; blocked for the cache: Luo
//! et al., "B-skiplist", 2025). A search misses the cache on one leaf, whose lines arrive together, and on the node that its
//! hint names.
//!
//! Nothing here is needed for a right answer. A hint may be missing, stale or false: the search compares the node that it names,
//! and a wrong one costs a second, more exact descent. So the upkeep is skipped whenever a lock bit is taken, and nobody waits.
//! What keeps the cost low all the same:
//!
//! * `hint.rs` adds a hint for four of five nodes when they are linked;
//! * `split.rs` divides full blocks, the parents locked before anything changes;
//! * `mend.rs` adds hints where a search had to walk, and `replace.rs` puts copies in the place of blocks whose lock stays with a
//!   thread that is stopped.

mod block;
mod descent;
mod hint;
mod mend;
mod neighbours;
mod prefix;
mod relative;
mod replace;
#[cfg(feature = "scramble")]
mod scramble;
mod splice;
mod split;
mod steps;
mod validate;

use crate::node::{Node, Predecessor};
use crate::sync::{AtomicU32, AtomicU64, Ordering, ord};

pub(crate) use block::{BLOCK_WORDS, BlockId};
pub(crate) use descent::{Descent, Probe, Ties};
pub(crate) use hint::Hinted;
pub(crate) use neighbours::HintPlace;
pub(crate) use prefix::Split;
pub(crate) use splice::Splice;
#[cfg(test)]
pub(crate) use steps::{Stopper, counted};

use super::List;
use super::schema::Schema;
use block::{Block, Header, Held, Locked, Rows};

/// The offset of the first leaf: it lies before the first node, so that a small table needs no other.
pub(crate) const FIRST_BLOCK: u32 = 8;

/// Levels of blocks at most. Fifteen of two slots each would hold no more than thirty thousand hints, but splits that leave
/// two behind happen at one edge of a level only; a root that would be higher is not split.
const MAX_LEVELS: usize = 16;

/// The root of the tree, and what was replaced in it.
#[derive(Debug)]
pub(crate) struct Index {
    root: AtomicU32,
    /// Words of blocks that were replaced: see `replace.rs`.
    replaced: AtomicU64,
}

impl Index {
    /// The index of an empty table; [`List::write_first_block`] makes the block.
    pub(crate) fn new() -> Self {
        Self { root: AtomicU32::new(FIRST_BLOCK), replaced: AtomicU64::new(0) }
    }

    fn root(&self) -> Option<BlockId> {
        // ORDERING(index.root.read): Acquire; pairs with `index.root`. Weaker: the root's words could be read before they are
        // written (loom `hints_lead_to_written_nodes`).
        let stored = self.root.load(ord("index.root.read", Ordering::Acquire));
        // SAFETY: the first block, which is written before the table is shared, or a block stored by `set_root`, acquired.
        unsafe { BlockId::from_stored(stored) }
    }

    /// Makes `root` the root if `was` still is.
    fn set_root(&self, was: BlockId, root: BlockId) -> bool {
        steps::step();
        // ORDERING(index.root): Release; pairs with `index.root.read`, see there.
        let order = ord("index.root", Ordering::Release);
        self.root.compare_exchange(was.to_stored(), root.to_stored(), order, Ordering::Relaxed).is_ok()
    }
}

/// The blocks on the way from the root to a leaf, and what bounds each of them from above.
#[derive(Debug, Clone)]
struct Path {
    blocks: [Option<BlockId>; MAX_LEVELS],
    /// The lower bound of what follows a block in the tree: `None` at its right edge.
    uppers: [Option<Predecessor>; MAX_LEVELS],
    len: usize,
    /// Slots in use in the leaf.
    leaf_count: usize,
    /// The longest prefix that partial keys on the way leave out; longer than any if a lock on the way was taken.
    prefix: u32,
}

impl Path {
    const fn new() -> Self {
        Self { blocks: [None; MAX_LEVELS], uppers: [None; MAX_LEVELS], len: 0, leaf_count: 0, prefix: 0 }
    }

    /// Whether there was room.
    fn push(&mut self, block: BlockId, upper: Option<Predecessor>) -> bool {
        let (Some(end), Some(bound)) = (self.blocks.get_mut(self.len), self.uppers.get_mut(self.len)) else {
            return false;
        };
        (*end, *bound) = (Some(block), upper);
        self.len += 1;
        true
    }

    /// What follows the block at `depth` is not before this.
    fn upper(&self, depth: usize) -> Option<Predecessor> {
        self.uppers[..self.len].get(depth).copied().flatten()
    }

    fn get(&self, depth: usize) -> Option<BlockId> {
        self.blocks[..self.len].get(depth).copied().flatten()
    }

    fn leaf(&self) -> Option<BlockId> {
        self.get(self.len.checked_sub(1)?)
    }
}

impl<S: Schema> List<S> {
    /// Makes the first leaf of an empty table, with one hint: the head.
    pub(super) fn write_first_block(&mut self) {
        self.index = Index::new();
        // SAFETY: the words before the first node that the arena leaves to the list, which nobody shares yet.
        let mut leaf = unsafe { Locked::make(self.storage(), FIRST_BLOCK, 0, 0, Predecessor::HEAD, Rows::Two) };
        leaf.insert(0, block::bias(0), Held::Hint(Predecessor::HEAD), None);
    }

    #[inline(always)]
    fn block(&self, id: BlockId) -> Block<'_> {
        Block::new(self.storage(), id)
    }

    /// The key of a node; none of its bytes for the head.
    fn key_of(&self, node: Option<Predecessor>) -> &[u8] {
        node.and_then(Predecessor::node).map_or(&[], |node| self.node(node).key())
    }

    /// Asks the processor for what a search reads of a node.
    #[inline(always)]
    pub(super) fn prefetch_node(&self, node: Option<Predecessor>) {
        if let Some(node) = node {
            Node::new(self.storage(), node).prefetch_search();
        }
    }

    /// Asks the processor for a block that a search goes down to, with the rows that it has most likely, as its parent is.
    #[inline(always)]
    fn prefetch_child(&self, child: BlockId, parent: Header) {
        let child = self.block(child);
        child.prefetch();
        if parent.is_tied() {
            child.prefetch_rest(parent.level() - 1);
        }
    }

    /// An empty block of the level, locked and not published, or `None` if the arena has no room within its limit.
    fn new_block(&self, shard: usize, level: u32, prefix: u32, lower: Predecessor, rows: Rows) -> Option<Locked<'_>> {
        let off = self.arena.alloc_block(shard, rows.words())?;
        // SAFETY: just allocated, aligned to 8 words and behind the head.
        Some(unsafe { Locked::make(self.storage(), off, level, prefix, lower, rows) })
    }

    /// Counts a block as waste that was replaced or never used.
    fn waste_block(&self, shard: usize, block: Header) {
        self.arena.waste_block(shard, block.rows().words());
    }
}
