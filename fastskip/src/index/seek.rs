//! [`Seek`]: the result of a search, and its way through the index, as far as it is needed to add hints.

use super::block::BlockId;
use super::descent::Probe;
use crate::node::{NodeId, Predecessor};
use crate::nodes::Splice;

/// The result of a search.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seek {
    /// The target, if it is in the list.
    pub(crate) found: Option<NodeId>,
    /// Its place. If it was found at a hint, without a walk, this has no meaning.
    pub(crate) splice: Splice,
    /// The hinted node from which the walk began, and the length that its key shares with the target's.
    pub(crate) hint: Predecessor,
    pub(crate) hint_shared: u32,
    /// The leaf that has the hint, if it is known, the slot where it was last seen or may be, and the longest prefix that partial keys on the way to
    /// it leave out.
    pub(crate) leaf: Option<BlockId>,
    pub(crate) slot: u8,
    pub(crate) prefix: u32,
    /// Whether partial keys on the way do not fit the target: the index has to be searched more exactly.
    pub(crate) is_misled: bool,
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
    /// A search that will walk on from the hint of a probe. The hint precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(super) fn behind(hint: Predecessor, shared: u32, probe: &Probe) -> Self {
        Self { leaf: Some(probe.leaf), slot: probe.slot, prefix: probe.prefix, ..Self::at(hint, shared) }
    }

    /// The same if the leaf of the hint is not known.
    #[inline(always)]
    pub(super) fn at(hint: Predecessor, shared: u32) -> Self {
        let splice = Splice::behind(hint, shared);
        Self { found: None, splice, hint, hint_shared: shared, leaf: None, slot: 0, prefix: 0, is_misled: false }
    }

    #[inline(always)]
    pub(crate) fn lower_bound(&self) -> LowerBound {
        match self.found {
            Some(node) => LowerBound { first: Some(node), has_key: true },
            None => LowerBound { first: self.splice.next.to, has_key: self.splice.next_has_key },
        }
    }

    /// Whether the target lacks bytes that partial keys on the way left out, so that they say little about it.
    #[inline(always)]
    pub(super) fn is_misfit(&self) -> bool {
        self.hint_shared < self.prefix && self.hint != Predecessor::HEAD
    }
}
