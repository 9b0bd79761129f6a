//! Walks all nodes and checks their order and partial keys.

use core::cmp::Ordering;

use super::schema::{NodeRef, Schema};
use super::store::Nodes;
use crate::key::PartialKey;
use crate::node::{NewNode, NodeId, Predecessor, Record};

impl<S: Schema, T> Nodes<S, T> {
    /// Every node, in order. Checks I1 (order) and I9 (partial keys).
    pub(crate) fn validate(&self) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut at = Predecessor::HEAD;
        loop {
            let link = self.link(at);
            let Some(id) = link.to else {
                assert_eq!(link.partial, PartialKey::END, "I9 broken: the end of the list");
                return nodes;
            };
            let (here, next) = (at.node().map(|at| self.node(at)), self.node(id));
            let key = here.map_or(&[][..], NodeRef::key);
            assert_eq!(link.partial, PartialKey::between(key, next.key()), "I9 broken");
            if let Some(here) = here {
                let order = key.cmp(next.key()).then_with(|| next.version().cmp(&here.version()));
                assert_eq!(order, Ordering::Less, "I1 broken");
            }
            nodes.push(id);
            at = id.into();
        }
    }

    /// The words that a node takes.
    pub(crate) fn words_of(&self, id: NodeId) -> u32 {
        let Record { key, value, kind, tag } = self.node(id).record();
        NewNode::new(key, &[value], kind, tag, 0).words(S::META_WORDS)
    }
}
