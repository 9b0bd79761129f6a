//! Fetches nodes ahead of a walk.
//!
//! A list that was filled in random order has its neighbours anywhere in memory: walking it costs a cache miss for each
//! node, one after the other. So a walk that has gone some steps lets the hints of the leaves run ahead of it and asks for
//! the nodes they name. The walk itself only follows links: hints decide what is in the cache, and nothing else.

use super::List;
use super::index::BlockId;
use super::schema::Schema;
use crate::node::{Node, NodeId, Predecessor, Target};
use crate::tuning::{READAHEAD, READAHEAD_MISSES};

/// The hints next ahead of a walk, all asked for.
#[derive(Debug, Clone)]
pub(super) struct Readahead {
    /// Where the hint behind the last one in the ring stands.
    leaf: Option<BlockId>,
    slot: usize,
    ring: [Option<NodeId>; READAHEAD],
    /// Where in the ring the walk comes next, and how many hints from there on are ahead of it.
    first: usize,
    len: usize,
    /// Steps since the walk met a hint of the ring.
    misses: u32,
}

impl Readahead {
    pub(super) const fn new() -> Self {
        Self { leaf: None, slot: 0, ring: [None; READAHEAD], first: 0, len: 0, misses: READAHEAD_MISSES }
    }

    /// Tells that the walk has come to `at`.
    #[inline]
    pub(super) fn advance<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        if self.len > 0 && self.ring[self.first] == Some(at) {
            self.first = (self.first + 1) % READAHEAD;
            self.len -= 1;
            self.misses = 0;
            self.fill(list, 2);
        } else {
            self.misses += 1;
            if self.misses > READAHEAD_MISSES {
                self.start(list, at);
            }
        }
    }

    /// Begins anew behind `at`.
    #[cold]
    fn start<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        let node = list.node(at);
        (self.len, self.misses) = (0, 0);
        (self.leaf, self.slot) = match list.hint_behind(Target { key: node.key(), version: node.version() }) {
            Some((leaf, slot)) => (Some(leaf), slot),
            None => (None, 0),
        };
        self.fill(list, READAHEAD);
    }

    /// Asks for up to `most` more nodes.
    #[inline]
    fn fill<S: Schema>(&mut self, list: &List<S>, most: usize) {
        for _ in 0..most.min(READAHEAD - self.len) {
            let Some(leaf) = self.leaf else { return };
            match list.hint_at(leaf, self.slot) {
                Ok(hint) => {
                    self.slot += 1;
                    let Some(node) = hint.and_then(Predecessor::node) else { continue };
                    Node::new(list.storage(), node).prefetch_entry();
                    self.ring[(self.first + self.len) % READAHEAD] = Some(node);
                    self.len += 1;
                }
                Err(next) => {
                    (self.leaf, self.slot) = (next, 0);
                    next.into_iter().for_each(|next| list.prefetch_leaf(next));
                }
            }
        }
    }
}
