//! [`Run`]: the last node that a shard linked. If the next node is a neighbour of that node, it needs no search: an insert hint (RocksDB's term), for
//! keys that ascend or descend.
//!
//! Only a writer that is alone in the shard (see `gate.rs`) reads or writes the run, so it is never torn. Its words are atomics because the next lone
//! writer may be on another thread. All accesses are Relaxed: the gate orders them.

use core::cmp::Ordering as KeyOrder;

use crate::index::{BlockId, Hinted, Index, Seek, Split};
use crate::key::PartialKey;
use crate::node::{Link, NodeId, Predecessor, Schema, Splice, Target};
use crate::sync::{AtomicU32, Ordering};

/// The last node of the run and its neighbourhood.
#[derive(Debug, Default)]
pub(crate) struct Run {
    /// The node that was linked last; 0 while nothing is remembered.
    last: AtomicU32,
    /// The predecessor behind which that node was linked.
    prev: AtomicU32,
    /// The last hinted node at or before that node; its leaf is in `leaf`.
    hint: AtomicU32,
    leaf: AtomicU32,
    /// The direction of the run: a [`Split`].
    direction: AtomicU32,
    /// The number of bytes that the keys of the last node and of the hint share.
    hint_shared: AtomicU32,
    /// The number of nodes from the hint, exclusive, to the last node, inclusive.
    walked: AtomicU32,
    /// The longest prefix that partial keys on the way to the leaf leave out.
    prefix: AtomicU32,
    /// The number of nodes in a row that should have got a hint but did not.
    blocked: AtomicU32,
}

impl Run {
    #[inline]
    fn stored(word: &AtomicU32) -> Option<Predecessor> {
        // SAFETY: `remember` stored it, called by a writer that left the gate before this one entered it, or by this writer.
        unsafe { Predecessor::from_stored(word.load(Ordering::Relaxed)) }
    }

    /// The place of `target`, if the last nodes came in order and the target continues the run. Reads two nodes at most.
    #[inline]
    pub(super) fn follow<S: Schema, T>(&self, index: &Index<S, T>, target: Target<'_>) -> Option<(Seek, Split)> {
        let direction = self.direction.load(Ordering::Relaxed);
        if direction == Split::Even as u32 {
            return None;
        }
        let last = Self::stored(&self.last)?;
        let compared = index.nodes.compare(last, target);
        match compared.order {
            KeyOrder::Less => {
                let next = index.nodes.link(last);
                let is_next =
                    next.to.is_none() || next.partial > PartialKey::of::<S::Order>(target.key, compared.shared);
                let seek = || self.seek_behind(last, next, compared.shared, compared.shared);
                Some((is_next.then(seek)??, Split::Ascending))
            }
            KeyOrder::Greater if direction == Split::Descending as u32 => {
                let prev = Self::stored(&self.prev)?;
                let behind = compared.shared;
                let compared = index.nodes.compare(prev, target);
                let before = if prev.node().is_some() { compared.shared } else { 0 };
                let next = index.nodes.link(prev);
                let is_next = compared.order == KeyOrder::Less && next.to.map(Predecessor::from) == Some(last);
                let seek = || self.seek_behind(prev, next, compared.shared, behind.max(before));
                Some((is_next.then(seek)??, Split::Descending))
            }
            _ => None,
        }
    }

    /// The place behind `prev`, whose link is `next`; `prev` shares `shared` bytes with the target, the nearer neighbour shares `most`.
    #[inline]
    fn seek_behind(&self, prev: Predecessor, next: Link, shared: u32, most: u32) -> Option<Seek> {
        let prefix = self.prefix.load(Ordering::Relaxed);
        // SAFETY: `remember` stored it, as in `stored`.
        let leaf = unsafe { BlockId::from_stored(self.leaf.load(Ordering::Relaxed)) };
        let walked = self.walked.load(Ordering::Relaxed);
        Some(Seek {
            found: None,
            splice: Splice { next, walked, ..Splice::behind(prev, shared) },
            hint: Self::stored(&self.hint)?,
            hint_shared: self.hint_shared.load(Ordering::Relaxed).min(shared),
            leaf,
            // In an ascending run the hint is in the last slot of its leaf.
            slot: u8::MAX,
            prefix,
            is_misled: most < prefix,
        })
    }

    /// The direction in which `splice` continues the run.
    #[inline]
    pub(super) fn direction(&self, splice: &Splice) -> Split {
        let last = self.last.load(Ordering::Relaxed);
        if last == 0 {
            Split::Even
        } else if splice.prev.to_stored() == last {
            Split::Ascending
        } else if splice.next.to.is_some_and(|next| next.to_stored() == last) {
            Split::Descending
        } else {
            Split::Even
        }
    }

    /// Remembers that `node` was linked at the place of `seek`, that the run goes on in `direction`, and the result for its hint (`None` if the node
    /// was to have none). Returns the number of nodes in a row for which a hint was refused.
    #[inline]
    pub(super) fn remember(&self, seek: &Seek, node: NodeId, direction: Split, hinted: Option<Hinted>) -> u32 {
        let walked = seek.splice.walked;
        let (hint, hint_shared, walked) = match (direction, hinted) {
            (Split::Descending, _) => (seek.hint, seek.hint_shared, walked),
            (_, Some(Hinted::Added)) => (node.into(), u32::MAX, 0),
            _ => (seek.hint, seek.hint_shared, walked + 1),
        };
        let blocked = match hinted {
            Some(Hinted::Added) => 0,
            Some(_) => self.blocked.load(Ordering::Relaxed) + 1,
            None => self.blocked.load(Ordering::Relaxed),
        };
        let words = [
            (&self.last, node.to_stored()),
            (&self.prev, seek.splice.prev.to_stored()),
            (&self.hint, hint.to_stored()),
            (&self.leaf, seek.leaf.map_or(0, BlockId::to_stored)),
            (&self.direction, direction as u32),
            (&self.hint_shared, hint_shared),
            (&self.walked, walked),
            (&self.prefix, seek.prefix),
            (&self.blocked, blocked),
        ];
        words.into_iter().for_each(|(word, value)| word.store(value, Ordering::Relaxed));
        blocked
    }

    /// Forgets the run, because the index around it has changed.
    #[cold]
    pub(super) fn forget(&self) {
        self.last.store(0, Ordering::Relaxed);
        self.direction.store(Split::Even as u32, Ordering::Relaxed);
        self.blocked.store(0, Ordering::Relaxed);
    }
}
