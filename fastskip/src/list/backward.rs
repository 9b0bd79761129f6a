//! Goes back: links only lead forward, so what comes before a place is found through hints and walked towards it.

use super::List;
use super::index::Splice;
use super::schema::Schema;
use super::search::Seek;
use crate::node::{NodeId, Predecessor, Target};

impl<S: Schema> List<S> {
    /// The last node before `target`. What lies before it, from the hint of up to `hints` slots further back on, is put behind the
    /// last of `behind`, in order. Expected O(log n), and O(1) for each of them.
    pub(super) fn before(&self, target: Target<'_>, hints: usize, behind: &mut Vec<NodeId>) -> Option<NodeId> {
        let splice = self.splice_before(target);
        let last = splice.prev.node()?;
        let mut at = self.hint_before(&splice, hints.saturating_sub(1));
        while at != splice.prev {
            behind.extend(at.node());
            // Both are in the list, the hint first, so the walk comes by.
            at = self.after(at)?.into();
        }
        Some(last)
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
