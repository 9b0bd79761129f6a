//! The prefix that all keys of a block share: the partial keys of the block leave it out.
//!
//! It is the prefix of the present keys, not of the block's bounds, which share nothing along the edges of the tree. The prefix is lengthened only at
//! a split where partial keys hardly differ, and shortened when a new key shares fewer bytes. Both changes rewrite all partial keys of the block.

use super::block::{Locked, ReadBlock};
use super::descent::Path;
use super::ties::Gaps;
use super::tree::Index;
use crate::key;
use crate::node::{NodeId, Predecessor, Schema, Target};
use crate::order::Order;

/// A node that gets a hint.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewHint<'k> {
    pub(super) node: NodeId,
    pub(super) target: Target<'k>,
    pub(super) split: Split,
    /// Whether many nodes before this one have no hint: then the hint may take words of memory even where they are scarce.
    pub(super) is_due: bool,
}

/// The place where a full block is cut; it matters if the new hint goes to the end of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// In the middle: the order of future keys is unknown.
    Even,
    /// Keys ascend: the left block stays full.
    Ascending,
    /// Keys descend: the right block stays full.
    Descending,
}

impl<S: Schema, T> Index<S, T> {
    /// Shortens the prefixes of the blocks on the path, except the leaf, to the bytes that their keys share with the new one. Returns false if a lock
    /// is taken.
    pub(super) fn shorten_prefixes(&self, path: &Path, hint: NewHint<'_>) -> bool {
        let sort_key = S::Order::sort_key(hint.target.key);
        path.steps()[..path.steps().len() - 1].iter().all(|step| {
            let block = self.read(step.block);
            if block.header.prefix() <= self.prefix_with(block, sort_key.as_ref(), Some(hint.node)) {
                return true;
            }
            block
                .try_lock()
                .map(|mut locked| self.shorten_prefix(&mut locked, sort_key.as_ref(), Some(hint.node)))
                .is_some()
        })
    }

    /// Shortens the prefix of a block to the bytes that `sort_key` shares with the block's sort keys, not counting the key of the node `not`.
    pub(super) fn shorten_prefix(&self, block: &mut Locked<'_>, sort_key: &[u8], not: Option<NodeId>) {
        let shared = self.prefix_with(**block, sort_key, not);
        if shared < block.header.prefix() {
            self.set_prefix(block, shared);
        }
    }

    /// The number of bytes that `sort_key` shares with the block's sort keys, not counting the key of the node `not`; at most the block's prefix.
    pub(super) fn prefix_with(&self, block: ReadBlock<'_>, sort_key: &[u8], not: Option<NodeId>) -> u32 {
        if block.header.prefix() == 0 {
            return 0;
        }
        match self.reference(block, not) {
            Some(node) => {
                let shared = key::compare(self.nodes.node(node).sort_key().as_ref(), sort_key, 0).1;
                shared.min(block.header.prefix())
            }
            // The block has no other key.
            None => block.header.prefix(),
        }
    }

    /// A node whose key has the block's prefix: the block's first node other than `not`. The head, whose key is empty, does not count.
    fn reference(&self, block: ReadBlock<'_>, not: Option<NodeId>) -> Option<NodeId> {
        let is_other = |node: &NodeId| Some(*node) != not;
        let second = || (1..block.header.count()).find_map(|slot| block.separator(slot)?.node());
        let first = || self.nodes.after(Predecessor::HEAD);
        block.lower().node().filter(is_other).or_else(second).or_else(first).filter(is_other)
    }

    /// Rewrites all partial keys for a prefix of `prefix` bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn set_prefix(&self, block: &mut Locked<'_>, prefix: u32) {
        block.set_prefix(prefix);
        for slot in 0..block.header.count() {
            let partial = block.header.partial_of(self.slot_sort_key(block, slot).as_ref());
            block.set_partial(slot, partial);
        }
    }

    /// The gaps of a block. Before they are computed, the prefix is lengthened if partial keys hardly differ and the keys share more bytes.
    pub(super) fn spread(&self, block: &mut Locked<'_>) -> Gaps {
        let gaps = Gaps::between(**block);
        let hardly_differ = gaps.are_narrow(1..block.header.count()) || block.header.level() > 0 && gaps.none != 0;
        if hardly_differ && self.lengthen_prefix(block) { Gaps::between(**block) } else { gaps }
    }

    /// Lengthens the prefix of a block if its keys share more bytes.
    #[cold]
    pub(super) fn lengthen_prefix(&self, block: &mut Locked<'_>) -> bool {
        let shared = self.shared_by_all(block);
        let is_longer = shared > block.header.prefix();
        if is_longer {
            self.set_prefix(block, shared);
        }
        is_longer
    }

    /// The number of bytes that all keys hinted under a block share; 0 if there are fewer than two keys.
    pub(super) fn shared_by_all(&self, block: &Locked<'_>) -> u32 {
        let last = self.last_hint(**block).and_then(Predecessor::node);
        match (self.reference(**block, None), last) {
            (Some(first), Some(last)) if first != last => self.shared(first, last),
            _ => 0,
        }
    }

    /// The number of bytes that the sort keys of two nodes share.
    pub(super) fn shared(&self, a: NodeId, b: NodeId) -> u32 {
        let (a, b) = (self.nodes.node(a).sort_key(), self.nodes.node(b).sort_key());
        key::compare(a.as_ref(), b.as_ref(), 0).1
    }
}
