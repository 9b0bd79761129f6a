//! Finds the place of a target: a probe of the index, then a walk along the list, which ends every search.
//!
//! I3 verification: a search answers only from a walk along links, from the head or from a node that precedes the target: it was itself compared with
//! the target, or its link says that its key is less. So a hint decides where the walk begins, and never its result.

use core::cmp::Ordering;

use super::descent::{Probe, Ties};
use super::seek::{LowerBound, Seek};
use super::tree::Index;
use crate::mem::arena::Pending;
use crate::node::{Predecessor, Target};
use crate::nodes::{Compared, Schema, Side, Splice, Visits, Walked};
use crate::sync::thread_index;
use crate::tuning::{MISFIT_WALK, READ_WALK_LIMIT, WALK_LIMIT};

impl<S: Schema, T: Pending> Index<S, T> {
    /// The first node not before the target. A search that had to walk leaves hints for the next one.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> LowerBound {
        let probe = self.probe(target, Ties::Guess, &mut ());
        if let Some(probe) = &probe {
            self.prefetch_probe(probe);
        }
        self.lower_bound_of(probe.as_ref(), &target)
    }

    /// [`lower_bound`](Self::lower_bound), after the probe.
    #[inline(always)]
    pub(crate) fn lower_bound_of(&self, probe: Option<&Probe>, target: &Target<'_>) -> LowerBound {
        let compared = probe.and_then(|probe| self.compare_hint(probe, *target, &mut ()));
        let hit = compared.and_then(|compared| self.hit(compared));
        hit.unwrap_or_else(|| self.lower_bound_by(compared, target))
    }

    /// Like [`lower_bound_of`](Self::lower_bound_of), if the probe's hint is the answer. Otherwise asks for the node behind it, which most likely is.
    #[inline(always)]
    pub(crate) fn hit_of(&self, probe: Option<&Probe>, target: &Target<'_>) -> Option<LowerBound> {
        let compared = self.compare_hint(probe?, *target, &mut ())?;
        let hit = self.hit(compared);
        if hit.is_none() {
            self.nodes.prefetch(self.nodes.after(compared.0.hint?).map(Predecessor::from));
        }
        hit
    }

    /// The result of a search whose probe's hint, which was compared, is the answer.
    #[inline(always)]
    fn hit(&self, (probe, compared): (&Probe, Compared)) -> Option<LowerBound> {
        let is_hit = compared.order == Ordering::Equal || self.begins_key(probe, compared);
        is_hit.then_some(LowerBound { first: probe.hint?.node(), has_key: true })
    }

    /// Whether the hint of a probe, which has the target's key and comes after the target, is the first node that does: so it is if the node before it
    /// has another key, and then precedes the target. The link between them tells both, without a look at that key.
    #[inline(always)]
    fn begins_key(&self, probe: &Probe, compared: Compared) -> bool {
        let is_behind = compared.has_key && compared.order == Ordering::Greater;
        let Some(before) = probe.before.filter(|_| S::HAS_VERSIONS && is_behind) else { return false };
        let link = self.nodes.link(before);
        link.to == probe.hint.and_then(Predecessor::node) && !link.partial.may_be_same_key()
    }

    /// [`lower_bound`](Self::lower_bound) from a probe whose hint is not the answer, and was compared.
    #[inline(never)]
    fn lower_bound_by(&self, probe: Option<(&Probe, Compared)>, target: &Target<'_>) -> LowerBound {
        let seek = self.seek_from(probe, *target, &mut ()).unwrap_or_else(|| self.seek_again(*target, &mut ()));
        self.mend_after_read(&seek);
        seek.lower_bound()
    }

    #[inline(always)]
    pub(crate) fn mend_after_read(&self, seek: &Seek) {
        // Ties of partial keys mislead too, and cannot be mended.
        if seek.splice.walked > READ_WALK_LIMIT || seek.is_misled && seek.is_misfit() {
            self.mend_for_next(seek);
        }
    }

    /// Adds hints where a search walked far, and mends prefixes that misled it, if there is a node that others will search for.
    #[cold]
    #[inline(never)]
    fn mend_for_next(&self, seek: &Seek) {
        let shard = thread_index();
        if seek.splice.walked > READ_WALK_LIMIT {
            self.mend(shard, seek.hint, seek.splice.walked);
        } else if let Some(node) = seek.lower_bound().with_key() {
            self.mend_at(shard, node, false);
        }
    }

    /// Searches for the target.
    #[inline(always)]
    pub(crate) fn seek(&self, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        let probe = self.probe(target, Ties::Guess, visits);
        if let Some(probe) = &probe {
            self.prefetch_probe(probe);
        }
        let probe = probe.as_ref().and_then(|probe| self.compare_hint(probe, target, visits));
        self.seek_from(probe, target, visits).unwrap_or_else(|| self.seek_again(target, visits))
    }

    /// Prefetches the node that a probe found.
    #[inline(always)]
    pub(crate) fn prefetch_probe(&self, probe: &Probe) {
        self.nodes.prefetch(probe.hint);
        if S::HAS_VERSIONS {
            // A hint that ties is most likely an older version of the target's key, which comes after the target.
            self.nodes.prefetch(probe.before);
        }
    }

    /// Compares the node of a probe.
    #[inline(always)]
    pub(crate) fn compare_hint<'p>(
        &self,
        probe: &'p Probe,
        target: Target<'_>,
        visits: &mut impl Visits,
    ) -> Option<(&'p Probe, Compared)> {
        visits.node();
        Some((probe, self.nodes.compare(probe.hint?, target)))
    }

    /// Searches for the target from a probe that was compared; `None` if the probe does not help, or the walk would be long.
    #[inline(always)]
    fn seek_from(
        &self,
        probe: Option<(&Probe, Compared)>,
        target: Target<'_>,
        visits: &mut impl Visits,
    ) -> Option<Seek> {
        let mut seek = self.verify(probe?, target, visits)?;
        self.walk_from(&mut seek, target, visits).then_some(seek)
    }

    /// The compared node of a probe is the target itself, or the start of the walk, or the node before it is; `None` if the probe does not help.
    #[inline(always)]
    pub(crate) fn verify(
        &self,
        (probe, mut compared): (&Probe, Compared),
        target: Target<'_>,
        visits: &mut impl Visits,
    ) -> Option<Seek> {
        let mut hint = probe.hint?;
        let mut bound = None;
        if compared.order == Ordering::Greater {
            bound = hint.node().filter(|_| compared.has_key);
            hint = probe.before?;
            visits.node();
            compared = self.nodes.compare(hint, target);
        }
        let mut seek = Seek::behind(hint, compared.shared, probe);
        seek.splice.bound = bound;
        match compared.order {
            Ordering::Greater => None,
            Ordering::Less => Some(seek),
            Ordering::Equal => Some(Seek { found: hint.node(), ..seek }),
        }
    }

    /// Walks on from the result of [`verify`](Self::verify). False if the walk would be long.
    #[inline(always)]
    pub(crate) fn walk_from(&self, seek: &mut Seek, target: Target<'_>, visits: &mut impl Visits) -> bool {
        if seek.found.is_none() {
            let limit = if seek.is_misfit() { MISFIT_WALK } else { WALK_LIMIT };
            match self.nodes.walk(target, &mut seek.splice, limit, visits) {
                Walked::Found(node) => seek.found = Some(node),
                Walked::Between => {}
                Walked::TooFar => return false,
            }
        }
        if seek.hint == Predecessor::HEAD && seek.prefix > 0 {
            seek.is_misled = self.shared_with_neighbour(seek.splice, target) < seek.prefix;
        }
        true
    }

    /// The number of bytes that a target shares with the nodes around its place; the head shares none.
    #[cold]
    fn shared_with_neighbour(&self, splice: Splice, target: Target<'_>) -> u32 {
        let next = splice.next.to.map_or(0, |next| self.nodes.compare(next.into(), target).shared);
        if splice.prev.node().is_some() { splice.shared.max(next) } else { next }
    }

    /// Handles a search that was most likely misled by a tie, or where the target does not have the prefix that partial keys left out.
    #[cold]
    #[inline(never)]
    pub(crate) fn seek_again(&self, target: Target<'_>, visits: &mut impl Visits) -> Seek {
        let probe = self.probe(target, Ties::Settle, visits);
        let probe = probe.as_ref().and_then(|probe| self.compare_hint(probe, target, visits));
        let seek = self.seek_from(probe, target, visits);
        seek.unwrap_or_else(|| self.seek_by_keys(target, Side::AtOrBefore, visits))
    }

    /// Searches by keys alone: whatever the partial keys say, only missing hints make the walk long.
    #[cold]
    #[inline(never)]
    fn seek_by_keys(&self, target: Target<'_>, side: Side, visits: &mut impl Visits) -> Seek {
        let probe = self.probe_by_keys(target, side, visits);
        let mut seek = Seek::at(Predecessor::HEAD, self.nodes.compare(Predecessor::HEAD, target).shared);
        for hint in probe.iter().flat_map(|probe| [probe.hint, probe.before]).flatten() {
            visits.node();
            let compared = self.nodes.compare(hint, target);
            seek = match (&probe, compared.order) {
                (Some(probe), order) if !side.is_behind(order) => Seek::behind(hint, compared.shared, probe),
                _ => continue,
            };
            if compared.order == Ordering::Equal {
                return Seek { found: hint.node(), is_misled: true, ..seek };
            }
            break;
        }
        seek.is_misled = true;
        seek.found = self.nodes.walk_on(target, &mut seek.splice, visits).err();
        seek
    }

    /// Like [`seek`](Self::seek), but never ends at the hint of the target itself, so it always finds the splice.
    #[cold]
    pub(super) fn seek_strictly_before(&self, target: Target<'_>) -> Seek {
        Seek { found: None, ..self.seek_by_keys(target, Side::Before, &mut ()) }
    }
}
