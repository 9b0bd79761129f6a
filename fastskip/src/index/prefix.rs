//! The hints, and the bytes that the partial keys of a block leave out: the prefix that its keys share.
//!
//! The prefix is that of the present keys, not of the block's bounds, which share nothing along the edges of the tree. It is lengthened only at a
//! split where partial keys hardly differ, and shortened when a new key shares less. Both rewrite all partial keys of the block.

use super::block::{Block, Gaps, Header, Locked, bias};
use super::path::Path;
use super::tree::Index;
use crate::key::{self, four_bytes};
use crate::node::{NodeId, Predecessor, Target};
use crate::nodes::Schema;

/// A node that gets a hint.
#[derive(Debug, Clone, Copy)]
pub(super) struct NewHint<'k> {
    pub(super) node: NodeId,
    pub(super) target: Target<'k>,
    pub(super) split: Split,
    /// Whether many nodes before this one have no hint: then it may take words that are scarce.
    pub(super) is_due: bool,
}

/// The place where a full block is cut, if the new hint goes to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    /// In the middle: nothing is known of future keys.
    Even,
    /// Keys ascend: the left block stays full.
    Ascending,
    /// Keys descend: the right block stays full.
    Descending,
}

impl<S: Schema, T> Index<S, T> {
    /// Shortens the prefixes of the blocks on the path to the bytes that their keys share with the new one. False if a lock is taken.
    pub(super) fn shorten_prefixes(&self, path: &Path, hint: NewHint<'_>) -> bool {
        for depth in 0..path.len.saturating_sub(1) {
            let Some(id) = path.get(depth) else { break };
            let block = self.block(id);
            let header = block.header();
            if header.prefix() > self.prefix_with(block, header, hint) {
                let Some(mut locked) = block.try_lock() else { return false };
                self.shorten_prefix(&mut locked, hint);
            }
        }
        true
    }

    pub(super) fn shorten_prefix(&self, block: &mut Locked<'_>, hint: NewHint<'_>) {
        let shared = self.prefix_with(block.block(), **block, hint);
        if shared < block.prefix() {
            self.set_prefix(block, shared);
        }
    }

    /// The number of bytes that `hint` shares with a block's keys, at most the block's prefix.
    fn prefix_with(&self, block: Block<'_>, header: Header, hint: NewHint<'_>) -> u32 {
        self.prefix_of_key(block, header, hint.target.key, Some(hint.node))
    }

    /// The number of bytes that a key shares with a block's keys, except that of the node `not`; at most the block's prefix.
    pub(super) fn prefix_of_key(&self, block: Block<'_>, header: Header, key: &[u8], not: Option<NodeId>) -> u32 {
        if header.prefix() == 0 {
            return 0;
        }
        match self.reference(block, header, not) {
            Some(node) => key::compare(self.nodes.node(node).key(), key, 0).1.min(header.prefix()),
            // The block has no other key.
            None => header.prefix(),
        }
    }

    /// A node whose key has the block's prefix: its first one other than `not`. The head, whose key is empty, does not count.
    fn reference(&self, block: Block<'_>, header: Header, not: Option<NodeId>) -> Option<NodeId> {
        let lower = block.lower();
        let is_other = |node: &NodeId| Some(*node) != not;
        let second = || (1..header.count()).find_map(|slot| block.separator(header, slot)?.node());
        let first = || self.nodes.after(Predecessor::HEAD);
        lower.node().filter(is_other).or_else(second).or_else(first).filter(is_other)
    }

    /// Rewrites all partial keys, for a prefix of `prefix` bytes.
    #[cold]
    #[inline(never)]
    pub(super) fn set_prefix(&self, block: &mut Locked<'_>, prefix: u32) {
        let count = block.count();
        block.set_prefix(prefix);
        for slot in 0..count {
            let key = self.nodes.key_of(block.block().separator(**block, slot));
            block.set_partial(slot, bias(four_bytes(key, prefix as usize)));
        }
    }

    /// The gaps of a block, whose prefix is lengthened first if its partial keys hardly differ, and its keys share more.
    pub(super) fn spread(&self, block: &mut Locked<'_>) -> Gaps {
        let gaps = Gaps::of(block);
        let hardly_differ = gaps.are_narrow(1..block.count()) || block.level() > 0 && gaps.ties() != 0;
        if hardly_differ && self.lengthen_prefix(block) { Gaps::of(block) } else { gaps }
    }

    /// Lengthens the prefix of a block if its keys share more.
    #[cold]
    pub(super) fn lengthen_prefix(&self, block: &mut Locked<'_>) -> bool {
        let shared = self.shared_by_all(block);
        let is_longer = shared > block.prefix();
        if is_longer {
            self.set_prefix(block, shared);
        }
        is_longer
    }

    /// The last node that is hinted under a block.
    pub(super) fn last_node(&self, block: &Locked<'_>) -> Option<NodeId> {
        self.last_hint(block.block(), **block)?.node()
    }

    /// The number of bytes that all keys hinted under a block share; 0 if there are fewer than two.
    pub(super) fn shared_by_all(&self, block: &Locked<'_>) -> u32 {
        match (self.reference(block.block(), **block, None), self.last_node(block)) {
            (Some(first), Some(last)) if first != last => {
                key::compare(self.nodes.node(first).key(), self.nodes.node(last).key(), 0).1
            }
            _ => 0,
        }
    }
}
