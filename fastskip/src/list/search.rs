//! Finds where a target stands: a probe of the index, then a walk along the list that ends every search.
//!
//! I3 verification: a search answers only what a walk along level-0 links has shown, from the head or from a node that was itself
//! compared with the target and precedes it. So a hint decides where the walk begins, and never what it finds.

use core::cmp::Ordering;

use super::List;
use super::index::{Probe, Splice, Ties};
use super::order::{Side, Visits};
use super::schema::Schema;
use crate::key::{MAX_SHARED, PartialKey};
use crate::node::{Link, Node, NodeId, Predecessor, Target};
use crate::sync::thread_index;
use crate::tuning::{MISFIT_WALK, READ_WALK_LIMIT, WALK_LIMIT};

/// What a search found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seek {
    /// The target, if it is in the list.
    pub(crate) found: Option<NodeId>,
    /// Its place. If it was found at a hint, without a walk, only `hint` and `leaf` say anything.
    pub(crate) splice: Splice,
}

/// The first node that is not before a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowerBound {
    pub(crate) first: Option<NodeId>,
    pub(crate) has_key: bool,
}

impl LowerBound {
    /// The node, if it has the target's key.
    #[inline]
    pub(crate) fn with_key(self) -> Option<NodeId> {
        self.first.filter(|_| self.has_key)
    }
}

impl Seek {
    #[inline(always)]
    pub(crate) fn lower_bound(&self) -> LowerBound {
        match self.found {
            Some(node) => LowerBound { first: Some(node), has_key: true },
            None => LowerBound { first: self.splice.next.to, has_key: self.splice.next_has_key },
        }
    }
}

/// How a walk ended.
enum Walked {
    /// At the target.
    Found(NodeId),
    /// Where the target belongs.
    Between,
    /// Nowhere yet, after as many nodes as it may take.
    TooFar,
}

impl<S: Schema> List<S> {
    /// The first node not before the target. A search that had to walk leaves hints for the next one.
    #[inline]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> LowerBound {
        let seek = self.seek(target, &mut ());
        self.mend_after_read(&seek);
        seek.lower_bound()
    }

    #[inline(always)]
    pub(crate) fn mend_after_read(&self, seek: &Seek) {
        // Ties of partial keys mislead too, and cannot be mended.
        let Splice { walked, is_misled, .. } = seek.splice;
        if walked > READ_WALK_LIMIT || is_misled && seek.splice.is_misfit() {
            self.mend_for_next(seek);
        }
    }

    /// Leaves hints where a search walked far, and mends what misled it, if there is a node that others will search for.
    #[cold]
    #[inline(never)]
    fn mend_for_next(&self, seek: &Seek) {
        let shard = thread_index();
        if seek.splice.walked > READ_WALK_LIMIT {
            self.mend(shard, seek.splice.hint, seek.splice.walked);
        } else if let Some(node) = seek.lower_bound().with_key() {
            self.mend_at(shard, node);
        }
    }

    /// Searches the target.
    #[inline(always)]
    pub(crate) fn seek(&self, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        let probe = self.probe(target, Ties::Guess, visits);
        if let Some(probe) = probe {
            self.prefetch_probe(&probe);
        }
        self.seek_from(probe, target, visits)
    }

    /// Asks for the node that a probe found.
    #[inline(always)]
    pub(crate) fn prefetch_probe(&self, probe: &Probe) {
        self.prefetch_node(probe.hint);
        if S::HAS_VERSIONS {
            // A hint that ties is the target's key, most likely in an older version, which stands behind the target.
            self.prefetch_node(probe.before);
        }
    }

    /// Asks for the node that the walk on from a splice will look at, if there is one.
    #[inline(always)]
    pub(crate) fn prefetch_next(&self, splice: &Splice, target: Target<'_>) {
        // SAFETY: the head, or a node that an acquired hint led to.
        let link = unsafe { Node::new(self.storage(), splice.prev).next() };
        let is_before = |link: &Link| link.partial <= PartialKey::of(target.key, splice.shared);
        self.prefetch_node(Some(link).filter(is_before).and_then(|link| link.to).map(Predecessor::from));
    }

    /// Searches the target from where a probe says.
    #[inline(always)]
    fn seek_from(&self, probe: Option<Probe>, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        self.finish(probe.and_then(|probe| self.verify(probe, target, visits)), target, visits)
    }

    /// Compares what a probe found: the target itself, or where to walk on from; `None` where the probe is no good.
    #[inline(always)]
    pub(crate) fn verify(&self, probe: Probe, target: Target<'_>, visits: &mut impl Visits) -> Option<Seek> {
        let mut hint = probe.hint?;
        let mut bound = None;
        visits.node();
        let mut compared = self.compare(hint, target);
        if compared.order == Ordering::Greater {
            bound = hint.node().filter(|_| compared.has_key);
            hint = probe.before?;
            visits.node();
            compared = self.compare(hint, target);
        }
        let splice = Splice { bound, ..Splice::behind(hint, compared.shared, &probe) };
        match compared.order {
            Ordering::Greater => None,
            Ordering::Less => Some(Seek { found: None, splice }),
            Ordering::Equal => Some(Seek { found: hint.node(), splice }),
        }
    }

    /// Walks on from what [`verify`](Self::verify) found, or begins anew.
    #[inline(always)]
    pub(crate) fn finish(&self, verified: Option<Seek>, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        match verified.and_then(|seek| self.walk_from(seek, target, visits)) {
            Some(seek) => seek,
            None => self.seek_again(target, visits),
        }
    }

    /// `None` where the walk would be long.
    #[inline(always)]
    fn walk_from(&self, mut seek: Seek, target: Target<'_>, visits: &mut impl Visits) -> Option<Seek> {
        let splice = &mut seek.splice;
        if seek.found.is_none() {
            let limit = if splice.is_misfit() { MISFIT_WALK } else { WALK_LIMIT };
            match self.walk(target, splice, limit, visits) {
                Walked::Found(node) => seek.found = Some(node),
                Walked::Between => {}
                Walked::TooFar => return None,
            }
        }
        if splice.hint == Predecessor::HEAD && splice.prefix > 0 {
            splice.is_misled = self.shared_with_neighbour(splice, target) < splice.prefix;
        }
        Some(seek)
    }

    /// How many bytes a target shares with the nodes around its place: the head shares none.
    #[cold]
    fn shared_with_neighbour(&self, splice: &Splice, target: Target<'_>) -> u32 {
        let next = splice.next.to.map_or(0, |next| self.compare(next.into(), target).shared);
        if splice.prev.node().is_some() { splice.shared.max(next) } else { next }
    }

    /// A tie misled the search, most likely, or the target does not have the prefix that partial keys left out.
    #[cold]
    #[inline(never)]
    fn seek_again(&self, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        let probe = self.probe(target, Ties::Settle, visits);
        let seek = probe.and_then(|probe| self.verify(probe, target, visits));
        match seek.and_then(|seek| self.walk_from(seek, target, visits)) {
            Some(seek) => seek,
            None => self.seek_by_keys(target, Side::AtOrBefore, visits),
        }
    }

    /// Searches by keys alone: whatever the partial keys say, only missing hints make the walk long.
    #[cold]
    #[inline(never)]
    fn seek_by_keys(&self, target: Target<'_>, side: Side, visits: &mut impl Visits) -> Seek {
        let probe = self.probe_by_keys(target, side, visits);
        let mut splice = Splice::at(Predecessor::HEAD, self.compare(Predecessor::HEAD, target).shared);
        splice.is_misled = true;
        for hint in probe.iter().flat_map(|probe| [probe.hint, probe.before]).flatten() {
            visits.node();
            let compared = self.compare(hint, target);
            splice = match (&probe, compared.order) {
                (Some(probe), order) if !side.is_behind(order) => Splice::behind(hint, compared.shared, probe),
                _ => continue,
            };
            splice.is_misled = true;
            if compared.order == Ordering::Equal {
                return Seek { found: hint.node(), splice };
            }
            break;
        }
        match self.walk(target, &mut splice, u32::MAX, visits) {
            Walked::Found(node) => Seek { found: Some(node), splice },
            Walked::Between | Walked::TooFar => Seek { found: None, splice },
        }
    }

    /// As [`seek`](Self::seek), but never answers with the hint of the target itself: the splice is found in any case.
    #[cold]
    pub(super) fn seek_strictly_before(&self, target: Target<'_>) -> Seek {
        Seek { found: None, ..self.seek_by_keys(target, Side::Before, &mut ()) }
    }

    /// Walks on from a splice that was right once, because the link that it names has changed. What precedes the target keeps
    /// preceding it.
    #[inline]
    pub(crate) fn walk_on(&self, target: Target<'_>, splice: &mut Splice) -> Result<(), NodeId> {
        match self.walk(target, splice, u32::MAX, &mut ()) {
            Walked::Found(node) => Err(node),
            Walked::Between | Walked::TooFar => Ok(()),
        }
    }

    /// Goes right while nodes precede the target, at most `limit` nodes. Most steps look at no key: the partial key in a link
    /// settles them (`key.rs`).
    #[inline(always)]
    fn walk(&self, target: Target<'_>, splice: &mut Splice, limit: u32, visits: &mut impl Visits) -> Walked {
        let mut partial = PartialKey::of(target.key, splice.shared);
        let mut steps = 0;
        loop {
            // SAFETY: the head, or a node that a walk or an acquired hint led to: it is linked.
            let link = unsafe { Node::new(self.storage(), splice.prev).next() };
            splice.next = link;
            splice.next_has_key = false;
            let Some(next) = link.to.filter(|_| link.partial <= partial) else { return Walked::Between };
            let shared = if link.partial < partial {
                match link.partial.shared() == splice.shared {
                    true => (splice.shared + link.partial.more_shared(partial)).min(MAX_SHARED),
                    false => splice.shared,
                }
            } else if splice.bound == Some(next) {
                splice.next_has_key = true;
                return Walked::Between;
            } else {
                visits.node();
                let compared = self.compare_from(self.node(next), target, splice.shared);
                match compared.order {
                    Ordering::Less => compared.shared,
                    Ordering::Equal => return Walked::Found(next),
                    Ordering::Greater => {
                        splice.next_has_key = compared.has_key;
                        return Walked::Between;
                    }
                }
            };
            splice.prev = next.into();
            if shared != splice.shared {
                splice.shared = shared;
                partial = PartialKey::of(target.key, shared);
            }
            splice.walked = splice.walked.saturating_add(1);
            visits.node();
            steps += 1;
            if steps == limit {
                return Walked::TooFar;
            }
        }
    }
}
