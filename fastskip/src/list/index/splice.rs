//! Where a search through the index ended, as far as the index needs it to add hints.

use super::block::BlockId;
use super::descent::Probe;
use crate::node::{Link, NodeId, Predecessor};

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
    /// The hinted node that the walk began at, what its key shares with the target's, and how many nodes lie between it and
    /// the target.
    pub(crate) hint: Predecessor,
    pub(crate) hint_shared: u32,
    pub(crate) walked: u32,
    /// The leaf that has the hint, if it is known, and the longest prefix that partial keys on the way to it leave out.
    pub(crate) leaf: Option<BlockId>,
    pub(crate) prefix: u32,
    /// Whether partial keys on the way do not fit the target: the index has to be looked at more closely.
    pub(crate) is_misled: bool,
}

impl Splice {
    /// A splice to walk on from: the hint of a probe, which precedes the target and shares `shared` bytes with it.
    #[inline(always)]
    pub(crate) fn behind(hint: Predecessor, shared: u32, probe: &Probe) -> Self {
        Self { leaf: Some(probe.leaf), prefix: probe.prefix, ..Self::at(hint, shared) }
    }

    /// The same where no leaf is known that has the hint.
    #[inline(always)]
    pub(crate) fn at(hint: Predecessor, shared: u32) -> Self {
        Self {
            prev: hint,
            shared,
            next: Link::END,
            next_has_key: false,
            bound: None,
            hint,
            hint_shared: shared,
            walked: 0,
            leaf: None,
            prefix: 0,
            is_misled: false,
        }
    }

    /// Whether the target lacks bytes that partial keys on the way left out, so that they say little about it.
    #[inline(always)]
    pub(crate) fn is_misfit(&self) -> bool {
        self.hint_shared < self.prefix && self.hint != Predecessor::HEAD
    }
}
