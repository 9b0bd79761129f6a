//! Backward searches: links only lead forward, so the node before a place is found by walking from a hint towards the place.

use super::neighbours::HintPlace;
use super::seek::Seek;
use super::tree::Index;
use crate::mem::arena::Pending;
use crate::node::{NodeId, Predecessor, Target};
use crate::nodes::Schema;

impl<S: Schema, T: Pending> Index<S, T> {
    /// The last node before `target`, and the place of the hint that led to it. Expected O(log n).
    pub(crate) fn before(&self, target: Target<'_>) -> Option<(NodeId, Option<HintPlace>)> {
        let seek = match target.version.checked_add(1) {
            // The node there is a newer version, and comes before the target.
            Some(version) => self.seek(Target { version, ..target }, &mut ()),
            None => self.seek_strictly_before(target),
        };
        self.mend_after_read(&seek);
        Some((seek.found.or(seek.splice.prev.node())?, self.place_of(&seek)))
    }

    /// The last node.
    pub(crate) fn last(&self) -> Option<NodeId> {
        let mut seek = Seek::at(self.final_hint().unwrap_or(Predecessor::HEAD), 0);
        while let Some(next) = self.nodes.after(seek.splice.prev) {
            seek.splice.prev = next.into();
            seek.splice.walked = seek.splice.walked.saturating_add(1);
        }
        self.mend_after_read(&seek);
        seek.splice.prev.node()
    }
}
