//! Adds hints where a search had to walk far, and where a writer found locks taken again and again.
//!
//! Hints are left out while locks are taken, so threads that append side by side, or one that is stopped while it holds a
//! lock, leave runs of nodes without. A search that walks such a run cuts it into short ones: each further search in it is
//! shorter.

use super::MAX_LEVELS;
use super::block::BlockId;
use super::descent::By;
use super::hint::Hinted;
use super::prefix::{NewHint, Split};
use crate::list::List;
use crate::list::order::Side;
use crate::list::schema::Schema;
use crate::node::{NodeId, Predecessor};
use crate::tuning::{MEND_HINTS, MEND_STEP};

impl<S: Schema> List<S> {
    /// Adds hints for the nodes behind `from`, as far as the `walked`-th: evenly spread, no more than [`MEND_HINTS`].
    #[cold]
    #[inline(never)]
    pub(crate) fn mend(&self, shard: usize, from: Predecessor, walked: u32) {
        let step = (walked / MEND_HINTS).max(MEND_STEP);
        let mut at = from;
        for passed in 1..=walked {
            let Some(node) = self.after(at) else { return };
            at = node.into();
            if passed % step == 0 && !self.mend_at(shard, node) {
                return;
            }
        }
    }

    /// Adds a hint for a linked node and shortens what prefixes do not fit it; whether it could. A block that is in the way with
    /// its lock taken is replaced, and so are those above it: a path's worth at most.
    #[cold]
    #[inline(never)]
    pub(crate) fn mend_at(&self, shard: usize, node: NodeId) -> bool {
        for _ in 0..MAX_LEVELS {
            match self.hint_node(shard, node) {
                Hinted::Added => return true,
                Hinted::Blocked(block) => self.unblock(shard, node, block),
                Hinted::GivenUp => return false,
            }
        }
        false
    }

    /// Adds a hint for a linked node.
    fn hint_node(&self, shard: usize, node: NodeId) -> Hinted {
        let hint = NewHint { node, target: self.node(node).target(), split: Split::Even };
        self.add_hint_slowly(shard, hint, true)
    }

    /// Replaces `block`, on the way to `node`, by a copy.
    #[cold]
    pub(crate) fn unblock(&self, shard: usize, node: NodeId, block: BlockId) {
        if let Some(path) = self.path_to(self.node(node).target(), By::Keys(Side::AtOrBefore), &mut ()) {
            self.replace(shard, &path, block);
        }
    }
}
