//! What a shard remembers of the last node it linked, so that the next one, if it belongs right behind, needs no search.
//!
//! Only a writer that is alone in the shard (see `gate.rs`) reads or writes a trail, so it is never torn; its words are
//! atomics because the next such writer may be another thread. Relaxed throughout: the gate orders them.

use crate::height::MAX_HEIGHT;
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
    pub(crate) node: u32,
    pub(crate) moves: u8,
}

impl Trail {
    /// The node that was linked last, or NIL.
    #[inline]
    pub(crate) fn last(&self) -> u32 {
        self.last.load(Ordering::Relaxed)
    }

    #[inline]
    pub(crate) fn set_last(&self, off: u32, followed: bool) {
        self.last.store(off, Ordering::Relaxed);
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
        Footprint { node: (word >> 8) as u32, moves: word as u8 }
    }

    #[inline]
    pub(crate) fn set(&self, level: usize, footprint: Footprint) {
        self.steps[level].store(u64::from(footprint.node) << 8 | u64::from(footprint.moves), Ordering::Relaxed);
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
        trail.set_last(7, true);
        trail.set(2, Footprint { node: u32::MAX, moves: 255 });
        trail.set(3, Footprint { node: 5, moves: 1 });
        assert!(trail.last() == 7 && trail.is_followed());
        for (level, node, moves) in [(2, u32::MAX, 255), (3, 5, 1), (4, 0, 0)] {
            let footprint = trail.at(level);
            assert_eq!((footprint.node, footprint.moves), (node, moves));
        }
        trail.set_last(9, false);
        assert!(trail.last() == 9 && !trail.is_followed());
    }
}
