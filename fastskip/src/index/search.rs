//! Finds the place of a target: first a probe of the index, then a walk along the list, with which every search ends.
//!
//! I3 verification: a search takes its answer only from a walk along links. The walk starts at the head or at a node that precedes the target: the
//! node was compared with the target, or a link's partial key shows that its key is less. So a hint decides where the walk begins, never the result.

use core::cmp::Ordering;

use super::block::BlockId;
use super::descent::{By, Probe, Ties};
use super::tree::Index;
use crate::mem::arena::Pending;
use crate::node::{Compared, Cost, NodeId, Predecessor, Schema, Side, Splice, Target};
use crate::sync::thread_index;
use crate::tuning::{MISFIT_WALK, READ_WALK_LIMIT, WALK_LIMIT};

/// The result of a search, and the part of its path through the index that is needed to add hints.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seek {
    /// The target, if it is in the list.
    pub(crate) found: Option<NodeId>,
    /// The place of the target. Meaningless if the target was found at a hint, without a walk.
    pub(crate) splice: Splice,
    /// The hinted node from which the walk began, and the length of the prefix that its key shares with the target.
    pub(crate) hint: Predecessor,
    pub(crate) hint_shared: u32,
    /// The leaf of the hint, if known; the slot where the hint was last seen or may be; and the longest prefix that partial keys on the way leave
    /// out.
    pub(crate) leaf: Option<BlockId>,
    pub(crate) slot: u8,
    pub(crate) prefix: u32,
    /// Whether partial keys on the way do not fit the target: then a more exact search of the index is necessary.
    pub(crate) is_misled: bool,
}

/// The first node that is not before a target.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LowerBound {
    pub(crate) first: Option<NodeId>,
    pub(crate) has_key: bool,
}

impl LowerBound {
    /// The bound if the hint of a probe is the answer.
    #[inline(always)]
    fn at(probe: &Probe) -> Self {
        Self { first: probe.hint.and_then(Predecessor::node), has_key: true }
    }

    /// The node, if it has the target's key.
    #[inline]
    pub(crate) fn with_key(self) -> Option<NodeId> {
        self.first.filter(|_| self.has_key)
    }
}

impl Seek {
    /// The start of a search that will walk from the hint of a probe, if there was one. The hint precedes the target; they share `shared` bytes.
    #[inline(always)]
    fn behind(hint: Predecessor, shared: u32, probe: Option<&Probe>) -> Self {
        let (leaf, slot, prefix) = probe.map_or((None, 0, 0), |probe| (Some(probe.leaf), probe.slot, probe.prefix));
        let splice = Splice::behind(hint, shared);
        Self { found: None, splice, hint, hint_shared: shared, leaf, slot, prefix, is_misled: false }
    }

    #[inline(always)]
    fn lower_bound(&self) -> LowerBound {
        match self.found {
            Some(node) => LowerBound { first: Some(node), has_key: true },
            None => LowerBound { first: self.splice.next.to, has_key: self.splice.next_has_key },
        }
    }

    /// Whether the target lacks bytes that partial keys on the way left out: then comparisons with those partial keys mean little.
    #[inline(always)]
    pub(super) fn is_misfit(&self) -> bool {
        self.hint_shared < self.prefix && self.hint != Predecessor::HEAD
    }
}

/// A probe, and how its hint compares with the target.
type Checked<'p> = (&'p Probe, Compared);

/// The steps of a search: probe, compare, verify, walk. A group of searches makes each step side by side (`list/group.rs`).
impl<S: Schema, T: Pending> Index<S, T> {
    /// The first node not before the target. A search that had to walk leaves hints for the next one.
    #[inline(always)]
    pub(crate) fn lower_bound(&self, target: Target<'_>) -> LowerBound {
        let probe = self.probe(target, Ties::Guess(None), &mut ());
        self.prefetch_probe(probe.as_ref());
        self.lower_bound_of(probe.as_ref(), &target)
    }

    /// [`lower_bound`](Self::lower_bound), after the probe.
    #[inline(always)]
    pub(crate) fn lower_bound_of(&self, probe: Option<&Probe>, target: &Target<'_>) -> LowerBound {
        match self.compare_hint(probe, *target, &mut ()) {
            Some(compared) if self.is_hit(compared) => LowerBound::at(compared.0),
            compared => self.lower_bound_by_walk(compared, target),
        }
    }

    /// Like [`lower_bound_of`](Self::lower_bound_of), but returns a result only if the probe's hint is the answer. Otherwise prefetches the node
    /// after the hint, which most likely is the answer.
    #[inline(always)]
    pub(crate) fn hit_of(&self, probe: Option<&Probe>, target: &Target<'_>) -> Option<LowerBound> {
        let compared = self.compare_hint(probe, *target, &mut ())?;
        if self.is_hit(compared) {
            return Some(LowerBound::at(compared.0));
        }
        self.nodes.prefetch(self.nodes.after(compared.0.hint?).map(Predecessor::from));
        None
    }

    /// Whether a probe's hint is the answer: the target itself, or a later node of the target's key whose predecessor has another key. The partial
    /// key in the link between the two nodes decides this, so the key of the predecessor is not read. Such a predecessor precedes the target.
    #[inline(always)]
    fn is_hit(&self, (probe, compared): Checked<'_>) -> bool {
        if compared.order == Ordering::Equal {
            return true;
        }
        let is_behind = compared.has_key && compared.order == Ordering::Greater;
        let Some(before) = probe.before.filter(|_| S::HAS_VERSIONS && is_behind) else { return false };
        let link = self.nodes.link(before);
        link.to == probe.hint.and_then(Predecessor::node) && !link.partial.may_be_same_key()
    }

    /// [`lower_bound`](Self::lower_bound) from a probe whose hint was compared and is not the answer.
    #[inline(never)]
    fn lower_bound_by_walk(&self, probe: Option<Checked<'_>>, target: &Target<'_>) -> LowerBound {
        let seek = self.seek_from(probe, *target, &mut ()).unwrap_or_else(|| self.seek_again(*target, &mut ()));
        self.mend_after_read(&seek);
        seek.lower_bound()
    }

    /// Adds hints where a search walked far, and mends prefixes that misled it. Ties of partial keys mislead searches too, and cannot be mended.
    #[inline(always)]
    pub(crate) fn mend_after_read(&self, seek: &Seek) {
        if seek.splice.walked > READ_WALK_LIMIT || seek.is_misled && seek.is_misfit() {
            self.mend_for_next(seek);
        }
    }

    /// Like `mend_after_read`, but only if there is a node for which other threads will search.
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
    pub(crate) fn seek(&self, target: Target<'_>, cost: &mut impl Cost) -> Seek {
        let probe = self.probe(target, Ties::Guess(None), cost);
        self.prefetch_probe(probe.as_ref());
        let compared = self.compare_hint(probe.as_ref(), target, cost);
        self.seek_from(compared, target, cost).unwrap_or_else(|| self.seek_again(target, cost))
    }

    /// Prefetches the node that a probe found.
    #[inline(always)]
    pub(crate) fn prefetch_probe(&self, probe: Option<&Probe>) {
        let Some(probe) = probe else { return };
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
        probe: Option<&'p Probe>,
        target: Target<'_>,
        cost: &mut impl Cost,
    ) -> Option<Checked<'p>> {
        let probe = probe?;
        cost.node();
        Some((probe, self.nodes.compare(probe.hint?, target)))
    }

    /// Searches for the target from a probe that was compared; `None` if the probe does not help, or the walk would be long.
    #[inline(always)]
    fn seek_from(&self, probe: Option<Checked<'_>>, target: Target<'_>, cost: &mut impl Cost) -> Option<Seek> {
        let mut seek = self.verify(probe?, target, cost)?;
        self.walk_from(&mut seek, target, cost).then_some(seek)
    }

    /// Decides from the compared node of a probe where the walk starts: this node is the target itself, or the walk starts there or at the node
    /// before. `None` if the probe does not help.
    #[inline(always)]
    pub(crate) fn verify(
        &self,
        (probe, mut compared): Checked<'_>,
        target: Target<'_>,
        cost: &mut impl Cost,
    ) -> Option<Seek> {
        let mut hint = probe.hint?;
        let mut bound = None;
        if compared.order == Ordering::Greater {
            bound = hint.node().filter(|_| compared.has_key);
            hint = probe.before?;
            cost.node();
            compared = self.nodes.compare(hint, target);
        }
        let mut seek = Seek::behind(hint, compared.shared, Some(probe));
        seek.splice.bound = bound;
        match compared.order {
            Ordering::Greater => None,
            Ordering::Less => Some(seek),
            Ordering::Equal => Some(Seek { found: hint.node(), ..seek }),
        }
    }

    /// Walks on from the result of [`verify`](Self::verify). Returns false if the walk would be long.
    #[inline(always)]
    pub(crate) fn walk_from(&self, seek: &mut Seek, target: Target<'_>, cost: &mut impl Cost) -> bool {
        if seek.found.is_none() {
            let limit = if seek.is_misfit() { MISFIT_WALK } else { WALK_LIMIT };
            match self.nodes.walk(target, &mut seek.splice, limit, cost) {
                Err(node) => seek.found = Some(node),
                Ok(true) => {}
                Ok(false) => return false,
            }
        }
        if seek.hint == Predecessor::HEAD && seek.prefix > 0 {
            seek.is_misled = self.shared_with_neighbour(seek.splice, target) < seek.prefix;
        }
        true
    }

    /// The number of bytes that a target shares with the nodes next to its place; the head shares none.
    #[cold]
    fn shared_with_neighbour(&self, splice: Splice, target: Target<'_>) -> u32 {
        let next = splice.next.to.map_or(0, |next| self.nodes.compare(next.into(), target).shared);
        if splice.prev.node().is_some() { splice.shared.max(next) } else { next }
    }

    /// Handles a search that was most likely misled by a tie, or whose target does not have the prefix that partial keys left out.
    #[cold]
    #[inline(never)]
    pub(crate) fn seek_again(&self, target: Target<'_>, cost: &mut impl Cost) -> Seek {
        let probe = self.probe(target, Ties::Settle, cost);
        let compared = self.compare_hint(probe.as_ref(), target, cost);
        let seek = self.seek_from(compared, target, cost);
        seek.unwrap_or_else(|| self.seek_by_keys(target, Side::AtOrBefore, cost))
    }

    /// Searches by keys alone, which no partial key can mislead: only missing hints can make the walk long. The prefix of the probe is greater than
    /// any length if a block on the way is locked.
    #[cold]
    #[inline(never)]
    fn seek_by_keys(&self, target: Target<'_>, side: Side, cost: &mut impl Cost) -> Seek {
        let probe = self.path_to(target, By::Keys(side), cost).map(|path| {
            let leaf = self.read(path.leaf());
            let slot = self.last_slot(leaf, target, side, 1..leaf.header.count(), cost);
            let before = slot.checked_sub(1).and_then(|slot| leaf.hint(slot));
            Probe { leaf: leaf.id(), hint: leaf.hint(slot), slot: slot as u8, before, prefix: path.prefix }
        });
        let mut seek = Seek::behind(Predecessor::HEAD, self.nodes.compare(Predecessor::HEAD, target).shared, None);
        for hint in probe.iter().flat_map(|probe| [probe.hint, probe.before]).flatten() {
            cost.node();
            let compared = self.nodes.compare(hint, target);
            if side.is_behind(compared.order) {
                continue;
            }
            seek = Seek::behind(hint, compared.shared, probe.as_ref());
            if compared.order == Ordering::Equal {
                return Seek { found: hint.node(), is_misled: true, ..seek };
            }
            break;
        }
        seek.is_misled = true;
        seek.found = self.nodes.walk_on(target, &mut seek.splice, cost).err();
        seek
    }

    // Backward search: links only lead forward, so the node before a place is found by walking from a hint towards that place.

    /// The last node before `target`, and the search that led to it. Expected O(log n).
    pub(crate) fn before(&self, target: Target<'_>) -> Option<(NodeId, Seek)> {
        let seek = match target.version.checked_add(1) {
            // The node found is a newer version of the key, and comes before the target.
            Some(version) => self.seek(Target { version, ..target }, &mut ()),
            // This search never ends at the hint of the target itself, so it always finds the splice.
            None => Seek { found: None, ..self.seek_by_keys(target, Side::Before, &mut ()) },
        };
        self.mend_after_read(&seek);
        Some((seek.found.or(seek.splice.prev.node())?, seek))
    }

    /// The last node.
    pub(crate) fn last(&self) -> Option<NodeId> {
        let hint = self.root().and_then(|root| self.last_hint(self.read(root)));
        let mut seek = Seek::behind(hint.unwrap_or(Predecessor::HEAD), 0, None);
        while let Some(next) = self.nodes.after(seek.splice.prev) {
            seek.splice.prev = next.into();
            seek.splice.walked = seek.splice.walked.saturating_add(1);
        }
        self.mend_after_read(&seek);
        seek.splice.prev.node()
    }
}
