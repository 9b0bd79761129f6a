//! Positions in a list that move both ways.

use super::List;
use super::readahead::Readahead;
use super::schema::{NodeRef, Schema};
use crate::node::{NodeId, Predecessor, Target};
use crate::tuning::STEADY_WALK;

/// A position: on a node, or nowhere. Belongs to the list it was first moved in.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    at: Option<NodeId>,
    /// Steps in one direction since the walk began, as far as [`STEADY_WALK`].
    steps: u32,
    ahead: Readahead,
    /// If it goes back: the nodes right before `at`, the nearest one last.
    behind: Vec<NodeId>,
}

impl Position {
    pub(crate) const fn new() -> Self {
        Self { at: None, steps: 0, ahead: Readahead::new(), behind: Vec::new() }
    }

    /// The node it is on.
    #[inline]
    pub(crate) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.at.map(|at| list.node(at))
    }

    /// Whether both are on one node, or nowhere.
    #[inline]
    pub(super) fn is_at(&self, other: &Self) -> bool {
        self.at == other.at
    }

    fn jump(&mut self, to: Option<NodeId>) {
        self.behind.clear();
        self.ahead = Readahead::new();
        (self.at, self.steps) = (to, 0);
    }

    pub(crate) fn seek_to_first<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.after(Predecessor::HEAD));
    }

    pub(crate) fn seek_to_last<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.last());
    }

    /// To the first node not before `target`.
    pub(crate) fn seek<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.lower_bound(target).first);
    }

    /// To the last node not behind `target`.
    pub(crate) fn seek_for_prev<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        let found = list.lower_bound(target).with_key().filter(|id| list.node(*id).version() == target.version);
        match found {
            Some(_) => self.jump(found),
            None => self.seek_before(list, target),
        }
    }

    /// To the last node before `target`.
    pub(crate) fn seek_before<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.before(target, 1, &mut Vec::new()));
    }

    /// One node on; from nowhere to nowhere. After some steps it has what comes next fetched in advance.
    #[inline]
    pub(crate) fn next<S: Schema>(&mut self, list: &List<S>) {
        let Some(at) = self.at else { return };
        self.at = list.after(at);
        self.behind.clear();
        if self.steps < STEADY_WALK {
            self.steps += 1;
        } else if let Some(at) = self.at {
            self.ahead.advance(list, at);
        }
    }

    /// One node back; from nowhere to nowhere. Amortised O(1) in a list at rest.
    pub(crate) fn prev<S: Schema>(&mut self, list: &List<S>) {
        let Some(node) = self.node(list) else { return };
        if let Some(prev) = self.behind.pop() {
            self.at = Some(prev);
            return;
        }
        let target = Target { key: node.key(), version: node.version() };
        // The longer the walk, the more nodes are worth fetching at once.
        let hints = 1 + self.steps as usize;
        self.steps = (self.steps + 2).min(STEADY_WALK);
        self.at = list.before(target, hints, &mut self.behind);
    }
}
