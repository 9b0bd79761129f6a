//! Walks all nodes and checks their order and partial keys.

use core::cmp::Ordering;

use super::schema::{NodeRef, Schema};
use super::store::Nodes;
use crate::key::PartialKey;
use crate::node::{Kind, NewNode, NodeId, Predecessor, Record};

impl<S: Schema, T> Nodes<S, T> {
    /// Every node, in order. Checks I1 (order), I9 (partial keys) and I10 (replacements).
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
            if let Some(latest) = next.latest().map(|latest| self.node(latest)) {
                let is_same = latest.key() == next.key() && latest.version() == next.version();
                assert!(is_same && latest.latest().is_none(), "I10 broken");
            }
            nodes.push(id);
            at = id.into();
        }
    }

    /// The words that a node takes.
    pub(crate) fn words_of(&self, id: NodeId) -> u32 {
        let (Record { key, value, kind, tag }, is_replaceable) = self.node(id).own_record();
        let value = [value];
        let new = NewNode::new(key, &value, kind, tag, 0);
        if is_replaceable { 1 + new.replaceable().words(S::META_WORDS) } else { new.words(S::META_WORDS) }
    }

    /// The words of a node that are of use once another one shows instead of it.
    pub(crate) fn words_of_replaced(&self, id: NodeId) -> u32 {
        let key = self.node(id).key();
        1 + NewNode::new(key, &[], Kind::Value, 0, 0).replaceable().words(S::META_WORDS)
    }
}
