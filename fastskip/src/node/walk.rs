//! Walks along the list; every search ends with such a walk.

use alloc::vec::Vec;
use core::cmp::Ordering;

use super::id::{Link, NodeId, Predecessor};
use super::read::Schema;
use super::store::{Cost, Nodes};
use super::write::Target;
use crate::key::{MAX_SHARED, PartialKey};
use crate::tuning::BACKWARD_WALK;

/// The place of a target: between two neighbours of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Splice {
    /// The last node found before the target; `shared` is the length of the prefix that its key shares with the target's.
    pub(crate) prev: Predecessor,
    pub(crate) shared: u32,
    /// The link from that node to the target's successor.
    pub(crate) next: Link,
    /// Whether the successor has the target's key.
    pub(crate) next_has_key: bool,
    /// A node of the target's key that is known to come after the target, if any.
    pub(crate) bound: Option<NodeId>,
    /// The number of nodes between the start of the walk and the target.
    pub(crate) walked: u32,
}

impl Splice {
    /// A splice from which to walk on: `prev` precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn behind(prev: Predecessor, shared: u32) -> Self {
        Self { prev, shared, next: Link::END, next_has_key: false, bound: None, walked: 0 }
    }
}

impl<S: Schema, T> Nodes<S, T> {
    /// Moves forward while nodes precede the target, over at most `limit` nodes. Returns false if more nodes precede it. `Err` holds the target's
    /// node. Most steps read no key: the partial key in a link is enough (`key.rs`).
    ///
    /// The walk can also start from an outdated splice whose link has changed: a node that precedes the target keeps preceding it.
    #[inline(always)]
    pub(crate) fn walk(
        &self,
        target: Target<'_>,
        splice: &mut Splice,
        limit: u32,
        cost: &mut impl Cost,
    ) -> Result<bool, NodeId> {
        let mut partial = PartialKey::of::<S::Order>(target.key, splice.shared);
        let mut steps = 0;
        loop {
            let link = self.link(splice.prev);
            splice.next = link;
            splice.next_has_key = false;
            let Some(next) = link.to.filter(|_| link.partial <= partial) else { return Ok(true) };
            let shared = if link.partial < partial {
                match link.partial.shared() == splice.shared {
                    true => (splice.shared + link.partial.more_shared(partial)).min(MAX_SHARED),
                    false => splice.shared,
                }
            } else if splice.bound == Some(next) {
                splice.next_has_key = true;
                return Ok(true);
            } else {
                cost.node();
                let compared = self.compare_from(self.node(next), target, splice.shared);
                match compared.order {
                    Ordering::Less => compared.shared,
                    Ordering::Equal => return Err(next),
                    Ordering::Greater => {
                        splice.next_has_key = compared.has_key;
                        return Ok(true);
                    }
                }
            };
            splice.prev = next.into();
            if shared != splice.shared {
                splice.shared = shared;
                partial = PartialKey::of::<S::Order>(target.key, shared);
            }
            splice.walked = splice.walked.saturating_add(1);
            cost.node();
            steps += 1;
            if steps == limit {
                return Ok(false);
            }
        }
    }

    /// Walks without a limit. `Err` holds the target's node. Separate from [`walk`](Self::walk), so that a commit without a second try stays short.
    #[inline]
    pub(crate) fn walk_on(&self, target: Target<'_>, splice: &mut Splice, cost: &mut impl Cost) -> Result<(), NodeId> {
        self.walk(target, splice, u32::MAX, cost).map(|_| ())
    }

    /// Prefetches the node that a walk from this splice will read next, if there is one.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, splice: &Splice, target: Target<'_>) {
        let link = self.link(splice.prev);
        let is_before = |link: &Link| link.partial <= PartialKey::of::<S::Order>(target.key, splice.shared);
        self.prefetch(Some(link).filter(is_before).and_then(|link| link.to).map(Predecessor::from));
    }

    /// The node or head whose link leads to the linked node `at`: `from`, unless another thread has just linked a node between the two, or the order
    /// has misled the search for `from`.
    #[inline]
    pub(crate) fn link_to(&self, at: NodeId, from: Predecessor) -> Predecessor {
        if self.after(from) == Some(at) { from } else { self.walk_to(at, from) }
    }

    #[cold]
    fn walk_to(&self, at: NodeId, from: Predecessor) -> Predecessor {
        let walk = |mut from: Predecessor| {
            while let Some(next) = self.after(from) {
                if next == at {
                    return Some(from);
                }
                from = next.into();
            }
            None
        };
        walk(from).or_else(|| walk(Predecessor::HEAD)).unwrap_or(Predecessor::HEAD)
    }

    /// Walks from `hint` to the node before `at`, and adds the visited nodes to `nodes`. Returns false if that is too far, or if the hint was wrong.
    pub(crate) fn walk_between(&self, hint: NodeId, at: NodeId, nodes: &mut Vec<NodeId>) -> bool {
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
}
