//! The order of nodes and targets, and a count of what a search looks at.

use core::cmp::Ordering;

use super::schema::{NodeRef, Schema};
use super::store::Nodes;
use crate::key;
use crate::node::{Predecessor, Target};

/// How a node and a target compare.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Compared {
    pub(crate) order: Ordering,
    pub(crate) has_key: bool,
    /// The length of the zero-padded prefix that the keys share.
    pub(crate) shared: u32,
}

/// Which of the hints around a target a descent by keys looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    /// The target's own, or else the last one before it.
    AtOrBefore,
    /// The last one before it.
    Before,
}

impl Side {
    /// Whether a node is too far behind, given how it compares with the target.
    #[inline(always)]
    pub(crate) fn is_behind(self, order: Ordering) -> bool {
        match self {
            Self::AtOrBefore => order == Ordering::Greater,
            Self::Before => order != Ordering::Less,
        }
    }
}

/// Counts what a search looks at. The unit type counts nothing and costs nothing.
pub(crate) trait Visits {
    /// A node.
    fn node(&mut self);

    /// A block of the index.
    fn block(&mut self);
}

impl Visits for () {
    #[inline(always)]
    fn node(&mut self) {}

    #[inline(always)]
    fn block(&mut self) {}
}

impl<S: Schema, T> Nodes<S, T> {
    /// Compares a node with a target. The head precedes all.
    #[inline(always)]
    pub(crate) fn compare(&self, at: Predecessor, target: Target<'_>) -> Compared {
        match at.node() {
            Some(node) => self.compare_from(self.node(node), target, 0),
            None => Compared { order: Ordering::Less, has_key: false, shared: key::compare(&[], target.key, 0).1 },
        }
    }

    /// The same where `known` bytes of the keys are known to be equal.
    #[inline(always)]
    pub(super) fn compare_from(&self, node: NodeRef<'_, S>, target: Target<'_>, known: u32) -> Compared {
        let (by_key, shared) = key::compare(node.key(), target.key, known);
        let order = by_key.then_with(|| target.version.cmp(&node.version()));
        Compared { order, has_key: by_key == Ordering::Equal, shared }
    }

    /// Whether a node, or the head, precedes another.
    pub(crate) fn is_before(&self, a: Predecessor, b: Predecessor) -> bool {
        match b.node() {
            Some(b) => self.compare(a, self.node(b).target()).order == Ordering::Less,
            None => false,
        }
    }
}
