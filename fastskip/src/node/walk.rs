//! Walks along the list, which end every search.

use core::cmp::Ordering;

use super::id::{Link, NodeId, Predecessor};
use super::read::Schema;
use super::store::{Cost, Nodes};
use super::write::Target;
use crate::key::{MAX_SHARED, PartialKey};
use crate::tuning::BACKWARD_WALK;

/// Where a target belongs: between two neighbours of the list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Splice {
    /// The last node found before the target, and what its key shares with the target's.
    pub(crate) prev: Predecessor,
    pub(crate) shared: u32,
    /// The link from there to the target's successor.
    pub(crate) next: Link,
    /// Whether the successor has the target's key.
    pub(crate) next_has_key: bool,
    /// A node of the target's key that is known to come behind it, if any.
    pub(crate) bound: Option<NodeId>,
    /// How many nodes lie between where the walk began and the target.
    pub(crate) walked: u32,
}

impl Splice {
    /// A splice to walk on from: what precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn behind(prev: Predecessor, shared: u32) -> Self {
        Self { prev, shared, next: Link::END, next_has_key: false, bound: None, walked: 0 }
    }
}

impl<S: Schema, T> Nodes<S, T> {
    /// Goes right while nodes precede the target, at most `limit` nodes. False if that many do. `Err` is the target's node. Most steps look at no
    /// key: the partial key in a link settles them (`key.rs`).
    ///
    /// Also goes on from a splice that was right once, when the link that it names has changed: a node that precedes the target keeps preceding it.
    #[inline(always)]
    pub(crate) fn walk(
        &self,
        target: Target<'_>,
        splice: &mut Splice,
        limit: u32,
        cost: &mut impl Cost,
    ) -> Result<bool, NodeId> {
        let mut partial = PartialKey::new(target.key, splice.shared);
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
                partial = PartialKey::new(target.key, shared);
            }
            splice.walked = splice.walked.saturating_add(1);
            cost.node();
            steps += 1;
            if steps == limit {
                return Ok(false);
            }
        }
    }

    /// Walks without a limit. `Err` is the target's node. Apart from [`walk`](Self::walk), so that a commit that needs no second try stays short.
    #[inline]
    pub(crate) fn walk_on(&self, target: Target<'_>, splice: &mut Splice, cost: &mut impl Cost) -> Result<(), NodeId> {
        self.walk(target, splice, u32::MAX, cost).map(|_| ())
    }

    /// Prefetches the node that the walk on from a splice will look at, if there is one.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, splice: &Splice, target: Target<'_>) {
        let link = self.link(splice.prev);
        let is_before = |link: &Link| link.partial <= PartialKey::new(target.key, splice.shared);
        self.prefetch(Some(link).filter(is_before).and_then(|link| link.to).map(Predecessor::from));
    }

    /// Walks from `hint` to the node before `at`, and puts what comes by into `nodes`. False if that is too far, or if the hint
    /// was false.
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
