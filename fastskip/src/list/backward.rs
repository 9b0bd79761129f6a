//! Goes back: links only lead forward, so what comes before a place is found through hints and walked towards it.

use super::List;
use super::index::{HintPlace, Splice};
use super::schema::Schema;
use super::search::Seek;
use crate::node::{NodeId, Predecessor, Target};
use crate::tuning::BACKWARD_WALK;

impl<S: Schema> List<S> {
    /// The last node before `target`, and where the hint stands that led to it. Expected O(log n).
    pub(super) fn before(&self, target: Target<'_>) -> Option<(NodeId, Option<HintPlace>)> {
        let splice = self.splice_before(target);
        Some((splice.prev.node()?, self.place_of(&splice)))
    }

    /// Walks from `hint` to the node before `at`, and puts what comes by into `nodes`. False if that is too far, or if the hint
    /// was false.
    pub(super) fn walk_between(&self, hint: NodeId, at: NodeId, nodes: &mut Vec<NodeId>) -> bool {
        if !self.is_before(hint.into(), at.into()) {
            return false;
        }
        let mut from = hint;
        for _ in 0..BACKWARD_WALK {
            nodes.push(from);
            match self.after(from) {
                Some(next) if next == at => return true,
                Some(next) => from = next,
                None => break,
            }
        }
        false
    }

    /// The place right before `target`, whether that is in the list or not.
    fn splice_before(&self, target: Target<'_>) -> Splice {
        let seek = match target.version.checked_add(1) {
            // What stands there is a newer version, and comes before the target.
            Some(version) => self.seek(Target { version, ..target }, &mut ()),
            None => self.seek_strictly_before(target),
        };
        self.mend_after_read(&seek);
        let Seek { found, splice } = seek;
        Splice { prev: found.map_or(splice.prev, Predecessor::from), ..splice }
    }

    /// The last node.
    pub(super) fn last(&self) -> Option<NodeId> {
        let mut splice = Splice::at(self.final_hint().unwrap_or(Predecessor::HEAD), 0);
        while let Some(next) = self.after(splice.prev) {
            splice.prev = next.into();
            splice.walked = splice.walked.saturating_add(1);
        }
        self.mend_after_read(&Seek { found: None, splice });
        splice.prev.node()
    }
}
