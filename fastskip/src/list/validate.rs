//! Walks a list and checks what must hold of it whenever no writer is inside.

use core::cmp::Ordering;

use super::List;
use super::schema::{NodeRef, Schema};
use crate::key::PartialKey;
use crate::mem::storage::WORD;
use crate::node::{NewNode, Node, NodeId, Predecessor, Record};

impl<S: Schema> List<S> {
    /// Panics with the invariant's number if one does not hold: order (1), hints (2), accounting (6), partial key (9).
    /// With `tidy`, what keeps searches quick is checked too; wrong hints may break that, and nothing else.
    pub(crate) fn validate(&self, tidy: bool) {
        let nodes = self.nodes();
        let words: u64 = nodes.iter().map(|&id| u64::from(self.words_of(id))).sum();
        let stats = self.stats();
        let used = (stats.memory_usage - stats.memory_wasted - stats.memory_index) / WORD;
        assert_eq!(words, used as u64, "I6 broken: words of nodes, and words used less waste and index");
        assert_eq!(nodes.len(), stats.entries, "I6 broken: nodes linked, and entries counted");
        self.validate_index(&nodes, tidy);
    }

    /// Every node, in order. Order and partial keys are checked.
    fn nodes(&self) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut at = Predecessor::HEAD;
        loop {
            // SAFETY: the head, or a node that the list led to.
            let link = unsafe { Node::new(self.storage(), at).next() };
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

    fn words_of(&self, id: NodeId) -> u32 {
        let Record { key, value, kind, tag } = self.node(id).record();
        NewNode::new(key, &[value], kind, tag, 0).words(S::META_WORDS)
    }
}
