//! Going back: nodes link only forward, so one descent fetches a stretch of predecessors.

use crate::node::NIL;

/// The most recent nodes of a walk along level 0, for going back: one descent serves a stretch of steps.
#[derive(Debug, Clone)]
pub(crate) struct Stretch {
    nodes: [u32; Self::LEN],
    pushed: usize,
    left: usize,
}

impl Stretch {
    /// A walk from this level is 16 nodes long in the mean.
    pub(super) const LEVEL: usize = 4;
    const LEN: usize = 32;

    pub(crate) fn new() -> Self {
        Self { nodes: [NIL; Self::LEN], pushed: 0, left: 0 }
    }

    pub(crate) fn clear(&mut self) {
        (self.pushed, self.left) = (0, 0);
    }

    pub(super) fn push(&mut self, off: u32) {
        self.nodes[self.pushed % Self::LEN] = off;
        self.pushed += 1;
        self.left = (self.left + 1).min(Self::LEN);
    }

    /// The last node, taken off.
    pub(crate) fn pop(&mut self) -> Option<u32> {
        self.left = self.left.checked_sub(1)?;
        self.pushed -= 1;
        Some(self.nodes[self.pushed % Self::LEN])
    }
}
