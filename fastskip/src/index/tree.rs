//! The index itself: its root, the allocation of blocks, and the check that it agrees with the list.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use super::block::{BLOCK_WORDS, Block, BlockId, Header, Locked, ReadBlock, Rows, SlotContent, bias};
use super::steps;
use crate::error::Refusal;
use crate::mem::arena::{BlockSource, Layout, Pending};
use crate::mem::storage::TablePool;
use crate::node::{FIRST_NODE, NodeId, Nodes, Predecessor, Schema};
use crate::sync::{AtomicU32, AtomicU64, Ordering, ord};

/// The offset of the first leaf: it lies before the first node, so a small table needs no other block.
const FIRST_BLOCK: u32 = 8;

const _: () = assert!(FIRST_BLOCK >= FIRST_NODE, "the first block lies behind the head");

/// The nodes, the root of the tree above them, and the number of words of its replaced blocks.
#[derive(Debug)]
pub(crate) struct Index<S, T> {
    pub(crate) nodes: Nodes<S, T>,
    root: AtomicU32,
    /// Words of replaced blocks: see `replace.rs`.
    pub(super) replaced: AtomicU64,
}

impl<S: Schema, T: Default> Index<S, T> {
    /// The index of an empty list; `layout` is the layout of its arena, except for the head.
    ///
    /// # Errors
    /// Returns an error if the system refuses the address range.
    pub(crate) fn new(layout: Layout, pool: Option<&TablePool>) -> Result<Self, Refusal> {
        let layout = Layout { head_words: FIRST_BLOCK + BLOCK_WORDS, ..layout };
        let mut index = Self { nodes: Nodes::new(layout, pool)?, root: AtomicU32::new(0), replaced: AtomicU64::new(0) };
        index.make_empty();
        Ok(index)
    }

    /// Removes every node and block.
    pub(crate) fn reset(&mut self) {
        self.nodes.reset();
        self.make_empty();
    }

    /// Makes the first leaf of an empty list the root, with one hint: the head.
    fn make_empty(&mut self) {
        (self.root, self.replaced) = (AtomicU32::new(FIRST_BLOCK), AtomicU64::new(0));
        // SAFETY: these words lie before the first node, where the arena leaves room to the list, and are not shared yet.
        let mut leaf =
            unsafe { Locked::make(self.nodes.storage(), FIRST_BLOCK, Header::new(0, 0, Rows::Two), Predecessor::HEAD) };
        leaf.insert(0, bias(0), SlotContent::Hint(Predecessor::HEAD), None);
    }
}

impl<S: Schema, T> Index<S, T> {
    pub(super) fn root(&self) -> Option<BlockId> {
        // ORDERING(index.root.read): Acquire; pairs with `index.root`. Weaker: a thread could read the root's words before they are written
        // (loom `hints_lead_to_written_nodes`).
        let stored = self.root.load(ord("index.root.read", Ordering::Acquire));
        // SAFETY: either the first block, which is written before the table is shared, or a block that `set_root` stored and this load acquired.
        unsafe { BlockId::from_stored(stored) }
    }

    /// Replaces the root `was` by `root`, if `was` is still the root.
    pub(super) fn set_root(&self, was: BlockId, root: BlockId) -> bool {
        steps::step();
        // ORDERING(index.root): Release; pairs with `index.root.read`, see there.
        let order = ord("index.root", Ordering::Release);
        self.root.compare_exchange(was.to_stored(), root.to_stored(), order, Ordering::Relaxed).is_ok()
    }

    #[inline(always)]
    pub(super) fn block(&self, id: BlockId) -> Block<'_> {
        Block::new(self.nodes.storage(), id)
    }

    #[inline(always)]
    pub(super) fn read(&self, id: BlockId) -> ReadBlock<'_> {
        self.block(id).read()
    }

    /// Prefetches a block to which a search descends. The number of its rows is guessed from its parent's header.
    #[inline(always)]
    pub(super) fn prefetch_child(&self, child: BlockId, parent: Header) {
        let child = self.block(child);
        child.prefetch(0..2);
        if parent.is_tied() {
            child.prefetch(2..if parent.level() > 1 { 4 } else { 3 });
        }
    }
}

impl<S: Schema, T: Pending> Index<S, T> {
    /// An empty block with this header, locked and unpublished; `None` if the arena has no room for it within its limit.
    pub(super) fn new_block(&self, source: BlockSource, header: Header, lower: Predecessor) -> Option<Locked<'_>> {
        let off = self.nodes.arena.alloc_block(source, header.rows().words())?;
        // SAFETY: just allocated, aligned to 8 words and behind the head.
        Some(unsafe { Locked::make(self.nodes.storage(), off, header, lower) })
    }

    /// Counts as waste a block that was replaced or never used.
    pub(super) fn waste_block(&self, shard: usize, block: Header) {
        self.nodes.arena.waste_block(shard, block.rows().words());
    }

    /// Checks I2 (hints): every slot under the root names a node of the list, or a block of the level below. Also checks the bound on replaced blocks
    /// (I6). If `tidy`, also checks the index of a list at rest: no lock is taken, slots are sorted, and partial keys are those of the slots' keys.
    pub(crate) fn validate(&self, nodes: &[NodeId], tidy: bool) {
        let replaced = self.replaced.load(Ordering::Relaxed);
        let most = self.most_replaced();
        assert!(replaced <= most, "I6 broken: {replaced} words of replaced blocks, {most} allowed");
        let places: BTreeMap<u32, usize> =
            nodes.iter().enumerate().map(|(place, id)| (id.to_stored(), place + 1)).collect();
        let root = self.root().expect("I2 broken: no root");
        self.validate_block(root, self.block(root).load_header().level(), &places, tidy);
    }

    fn validate_block(&self, id: BlockId, level: u32, places: &BTreeMap<u32, usize>, tidy: bool) {
        let block = self.read(id);
        let header = block.header;
        let place = |at: Predecessor| {
            at.node()
                .map_or(0, |node| *places.get(&node.to_stored()).expect("I2 broken: a hint is no node of the list"))
        };
        assert_eq!(header.level(), level, "I2 broken: a block of another level");
        assert!(header.count() > 0, "I2 broken: an empty block");
        assert!(!tidy || !header.is_locked() || block.is_retired(), "a block stays locked");
        let slots = 0..header.count();
        let separators = slots.map(|slot| block.separator(slot).expect("I2 broken: an empty slot"));
        let separators: Vec<_> = separators.collect();
        assert!(!tidy || place(block.lower()) <= place(separators[0]), "a slot lies before its block");
        assert!(!tidy || separators.is_sorted_by_key(|&separator| place(separator)), "slots are out of order");
        for (slot, separator) in separators.into_iter().enumerate() {
            let key = self.nodes.sort_key_of(Some(separator));
            assert!(
                !tidy || block.partial(slot) == header.partial_of(key.as_ref()),
                "a partial key is not that of its key"
            );
            let is_right = !header.is_tied() || slot == 0 || block.relative(slot) == self.relative(&block, slot);
            assert!(!tidy || is_right, "a slot does not differ from the one before as its block says");
            if level > 0 {
                let child = block.child(slot).expect("I2 broken: an empty slot");
                assert!(!tidy || self.block(child).lower() == separator, "a slot does not begin where its block does");
                self.validate_block(child, level - 1, places, tidy);
            }
        }
    }
}
