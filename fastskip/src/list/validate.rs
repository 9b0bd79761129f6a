//! Walks a list and checks what must hold of it whenever no writer is inside.

use core::cmp::Ordering;

use super::List;
use super::schema::{NodeRef, Schema};
use crate::key::PartialKey;
use crate::mem::storage::WORD;
use crate::node::{Kind, MAX_HEIGHT, NewNode, Node, NodeId, Predecessor};

impl<S: Schema> List<S> {
    /// Panics with the invariant's number if one does not hold: order (1), ladder (2), accounting (6), partial key (9).
    pub(crate) fn validate(&self) {
        let heights = self.heights();
        let words: u64 = heights.iter().map(|&(id, height)| u64::from(self.words_of(id, height))).sum();
        let stats = self.stats();
        let used = (stats.memory_usage - stats.memory_wasted) / WORD;
        assert_eq!(words, used as u64, "I6 broken: words of nodes, and words used less waste");
        assert_eq!(heights.len(), stats.entries, "I6 broken: nodes linked, and entries counted");
    }

    /// Every node with the number of levels it is reachable at, in order.
    fn heights(&self) -> Vec<(NodeId, usize)> {
        let mut heights: Vec<_> = self.level(0).into_iter().map(|id| (id, 1)).collect();
        for level in 1..MAX_HEIGHT {
            let mut below = heights.iter_mut();
            for id in self.level(level) {
                let node = below.find(|(at, _)| *at == id);
                let height = &mut node.expect("I2 broken: a node is not on the level below").1;
                assert_eq!(*height, level, "I2 broken: a node skips a level");
                *height += 1;
            }
        }
        heights
    }

    /// The nodes of one level, whose order and partial keys are checked.
    fn level(&self, level: usize) -> Vec<NodeId> {
        let mut nodes = Vec::new();
        let mut at = Predecessor::HEAD;
        loop {
            // SAFETY: the head, or a node that this level led to.
            let link = unsafe { Node::new(self.storage(), at).next(level) };
            let Some(id) = link.to else {
                assert_eq!(link.partial, PartialKey::END, "I9 broken: the end of level {level}");
                return nodes;
            };
            let (here, next) = (at.node().map(|at| self.node(at)), self.node(id));
            let key = here.map_or(&[][..], NodeRef::key);
            assert_eq!(link.partial, PartialKey::between(key, next.key()), "I9 broken: on level {level}");
            if let Some(here) = here {
                let order = key.cmp(next.key()).then_with(|| next.version().cmp(&here.version()));
                assert_eq!(order, Ordering::Less, "I1 broken: on level {level}");
            }
            nodes.push(id);
            at = id.into();
        }
    }

    fn words_of(&self, id: NodeId, height: usize) -> u32 {
        let (key, value, kind): (_, _, Kind) = self.node(id).entry();
        NewNode { key, value, kind, version: 0 }.words(height, S::META_WORDS)
    }
}
