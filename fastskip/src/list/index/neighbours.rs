//! The hints around a place: ahead of a walk, and before it.

use super::block::BlockId;
use super::descent::Ties;
use super::splice::Splice;
use crate::list::List;
use crate::list::schema::Schema;
use crate::node::{Node, Predecessor, Target};

impl<S: Schema> List<S> {
    /// The slot of a leaf that follows the target's.
    pub(crate) fn hint_behind(&self, target: Target<'_>) -> Option<(BlockId, usize)> {
        let probe = self.probe(target, Ties::Settle, &mut ())?;
        let leaf = self.block(probe.leaf);
        Some((probe.leaf, leaf.find(leaf.header(), probe.hint?)? + 1))
    }

    /// What a slot of a leaf names; behind the last slot the next leaf.
    #[inline]
    pub(crate) fn hint_at(&self, leaf: BlockId, slot: usize) -> Result<Option<Predecessor>, Option<BlockId>> {
        let block = self.block(leaf);
        if slot < block.header().count() { Ok(block.hint(slot)) } else { Err(block.next()) }
    }

    /// Asks for the next leaf.
    pub(crate) fn prefetch_leaf(&self, leaf: BlockId) {
        self.block(leaf).prefetch();
    }

    /// A hint up to `hints` slots before that of `splice`, in the same leaf. All between are asked for, and as many before them,
    /// which the next call will want.
    pub(crate) fn hint_before(&self, splice: &Splice, hints: usize) -> Predecessor {
        let Some(leaf) = splice.leaf.map(|leaf| self.block(leaf)) else { return splice.hint };
        let Some(slot) = leaf.find(leaf.header(), splice.hint) else { return splice.hint };
        let first = slot.saturating_sub(hints);
        for hint in (first.saturating_sub(hints)..slot).rev().filter_map(|slot| leaf.hint(slot)) {
            Node::new(self.storage(), hint).prefetch_entry();
        }
        let before = (first..slot).find_map(|slot| leaf.hint(slot));
        // A false hint could stand behind the place.
        before.filter(|&hint| hint == splice.prev || self.is_before(hint, splice.prev)).unwrap_or(splice.hint)
    }

    /// The last hint of the list.
    pub(crate) fn final_hint(&self) -> Option<Predecessor> {
        let root = self.block(self.index.root()?);
        self.last_hint(root, root.header())
    }
}
