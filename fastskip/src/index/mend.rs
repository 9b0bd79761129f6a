//! Adds hints where a search had to walk far, and where a writer repeatedly found locks taken.
//!
//! Hints are left out while locks are taken. So threads that append at the same time, or a thread that is stopped while it holds a lock, leave runs
//! of nodes without hints. A search that walks such a run cuts it into short ones, so each further search in it is shorter. If it finds a lock
//! taken it leaves the rest to later searches, unless the holder is stopped (`replace.rs`).

use super::hint::Hinted;
use super::prefix::{NewHint, Split};
use super::tree::Index;
use crate::mem::arena::Pending;
use crate::node::{NodeId, Predecessor};
use crate::nodes::Schema;
use crate::tuning::{MEND_HINTS, MEND_STEP, WALK_LIMIT};

impl<S: Schema, T: Pending> Index<S, T> {
    /// Adds hints for the nodes after `from`, up to the `walked`-th: evenly spread, at most [`MEND_HINTS`]. Ends where it cannot add one, and
    /// returns why.
    #[cold]
    #[inline(never)]
    pub(crate) fn mend(&self, shard: usize, from: Predecessor, walked: u32) -> Hinted {
        let step = (walked / MEND_HINTS).max(MEND_STEP);
        let is_due = walked > WALK_LIMIT;
        let mut at = from;
        for passed in 1..=walked {
            let Some(node) = self.nodes.after(at) else { break };
            at = node.into();
            let hinted = if passed % step == 0 { self.mend_at(shard, node, is_due) } else { Hinted::Added };
            if hinted != Hinted::Added {
                return hinted;
            }
        }
        Hinted::Added
    }

    /// Adds a hint for a linked node, and shortens prefixes that do not fit it. Blocks in the way are looked at once, and replaced if their holder
    /// is stopped.
    #[cold]
    #[inline(never)]
    pub(crate) fn mend_at(&self, shard: usize, node: NodeId, is_due: bool) -> Hinted {
        let mut hinted = self.hint_node(shard, node, is_due);
        if hinted == Hinted::Blocked && self.unblock(shard, node) {
            hinted = self.hint_node(shard, node, is_due);
        }
        hinted
    }

    /// Adds a hint for a linked node.
    fn hint_node(&self, shard: usize, node: NodeId, is_due: bool) -> Hinted {
        let hint = NewHint { node, target: self.nodes.node(node).target(), split: Split::Even, is_due };
        self.add_hint_slowly(shard, hint, true)
    }
}
