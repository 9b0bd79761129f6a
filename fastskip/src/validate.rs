//! Walks a list and checks what must hold of it whenever no writer is inside.

use core::cmp::Ordering;

use crate::height::MAX_HEIGHT;
use crate::key::Piece;
use crate::list::List;
use crate::node::{Draft, HEAD, Kind, NIL, Node};
use crate::search::Schema;
use crate::storage::WORD;

impl<S: Schema> List<S> {
    /// Panics with the invariant's number if one does not hold: order (1), ladder (2), accounting (6), piece (9).
    pub(crate) fn validate(&self) {
        let heights = self.heights();
        let words: u64 = heights.iter().map(|&(off, height)| u64::from(self.words_of(off, height))).sum();
        let stats = self.stats();
        let used = (stats.memory_usage - stats.memory_wasted) / WORD;
        assert_eq!(words, used as u64, "I6 broken: words of nodes, and words used less waste");
        assert_eq!(heights.len(), stats.entries, "I6 broken: nodes linked, and entries counted");
    }

    /// Every node with the number of levels it is reachable at, in order.
    fn heights(&self) -> Vec<(u32, usize)> {
        let mut heights: Vec<_> = self.level(0).into_iter().map(|off| (off, 1)).collect();
        for level in 1..MAX_HEIGHT {
            let mut below = heights.iter_mut();
            for off in self.level(level) {
                let node = below.find(|(at, _)| *at == off);
                let height = &mut node.expect("I2 broken: a node is not on the level below").1;
                assert_eq!(*height, level, "I2 broken: a node skips a level");
                *height += 1;
            }
        }
        heights
    }

    /// The nodes of one level, whose order and pieces are checked.
    fn level(&self, level: usize) -> Vec<u32> {
        let mut nodes = Vec::new();
        let mut at = HEAD;
        loop {
            // SAFETY: the head, or a node that this level led to.
            let link = unsafe { Node { storage: self.storage(), off: at }.next(level) };
            if link.to == NIL {
                assert_eq!(link.piece, Piece::END, "I9 broken: the end of level {level}");
                return nodes;
            }
            let next = self.node(link.to);
            let key = if at == HEAD { &[][..] } else { self.node(at).key() };
            assert_eq!(link.piece, Piece::between(key, next.key()), "I9 broken: on level {level}");
            if at != HEAD {
                let order = key.cmp(next.key()).then_with(|| next.version().cmp(&self.node(at).version()));
                assert_eq!(order, Ordering::Less, "I1 broken: on level {level}");
            }
            nodes.push(link.to);
            at = link.to;
        }
    }

    fn words_of(&self, off: u32, height: usize) -> u32 {
        let (key, value, kind): (_, _, Kind) = self.node(off).entry();
        Draft { key, value, kind, version: 0 }.words(height, S::META_WORDS)
    }
}
