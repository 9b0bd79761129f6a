//! What a shard remembers of the last node it linked, so that the next one, if it belongs right behind, needs no search.
//!
//! Only a writer that is alone in the shard (see `gate.rs`) reads or writes a trail, so it is never torn; its words are
//! atomics because the next such writer may be another thread. Relaxed throughout: the gate orders them.

use crate::node::{MAX_HEIGHT, NodeId, Predecessor};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// The last node, and while nodes come in order, the last one at each level.
#[derive(Debug, Default)]
pub(crate) struct Trail {
    last: AtomicU32,
    /// Whether `steps` tell anything: the last two nodes came in order.
    followed: AtomicBool,
    steps: [AtomicU64; MAX_HEIGHT],
}

/// The last node at a level, and how many there are since the last higher one, itself included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footprint {
    pub(crate) node: Predecessor,
    pub(crate) moves: u8,
}

impl Trail {
    /// The node that was linked last.
    #[inline]
    pub(crate) fn last(&self) -> Option<NodeId> {
        // SAFETY: 0 or from `set_last`, whose caller was alone in the shard before; the gate orders lone writers.
        unsafe { NodeId::from_stored(self.last.load(Ordering::Relaxed)) }
    }

    #[inline]
    pub(crate) fn set_last(&self, node: NodeId, followed: bool) {
        self.last.store(node.to_stored(), Ordering::Relaxed);
        self.followed.store(followed, Ordering::Relaxed);
    }

    /// Whether the last two nodes came in order, so that [`at`](Self::at) tells where the next one would follow them.
    #[inline]
    pub(crate) fn is_followed(&self) -> bool {
        self.followed.load(Ordering::Relaxed)
    }

    /// The last node at `level`, at or before [`last`](Self::last).
    #[inline]
    pub(crate) fn at(&self, level: usize) -> Footprint {
        let word = self.steps[level].load(Ordering::Relaxed);
        // SAFETY: 0 or from `set`; the rest is as in `last`.
        let node = unsafe { NodeId::from_stored((word >> 8) as u32) };
        // The head is stored as 0, like a node that is not known: it precedes every key.
        Footprint { node: node.map_or(Predecessor::HEAD, Predecessor::from), moves: word as u8 }
    }

    #[inline]
    pub(crate) fn set(&self, level: usize, footprint: Footprint) {
        let node = footprint.node.node().map_or(0, NodeId::to_stored);
        self.steps[level].store(u64::from(node) << 8 | u64::from(footprint.moves), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a trail that forgets, or mixes up, what the next writer needs to follow it.
    #[test]
    fn a_trail_says_what_was_remembered() {
        let trail = Trail::default();
        assert!(!trail.is_followed());
        // SAFETY: no node is read.
        let id = |stored| unsafe { NodeId::from_stored(stored) }.unwrap();
        trail.set_last(id(7), true);
        trail.set(2, Footprint { node: id(u32::MAX).into(), moves: 255 });
        trail.set(3, Footprint { node: id(5).into(), moves: 1 });
        trail.set(5, Footprint { node: Predecessor::HEAD, moves: 2 });
        assert!(trail.last() == Some(id(7)) && trail.is_followed());
        for (level, node, moves) in [(2, Some(id(u32::MAX)), 255), (3, Some(id(5)), 1), (4, None, 0), (5, None, 2)] {
            let footprint = trail.at(level);
            assert_eq!((footprint.node.node(), footprint.moves), (node, moves));
        }
        trail.set_last(id(9), false);
        assert!(trail.last() == Some(id(9)) && !trail.is_followed());
    }
}
