//! Positions in a list that move in both directions.

use super::readahead::Readahead;
use crate::list::List;
use crate::node::{NodeId, Predecessor, Target};
use crate::nodes::{NodeRef, Schema};
use crate::tuning::STEADY_WALK;

/// A position: on a node, or nowhere. Belongs to the list in which it was first moved.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    at: Option<NodeId>,
    /// Steps in one direction since the walk began, counted up to [`STEADY_WALK`].
    steps: u32,
    ahead: Readahead,
    /// In a backward walk: nodes before `at`, the nearest one last. Others may have been inserted among them since.
    behind: Vec<NodeId>,
    /// Steps and searches since it was made.
    #[cfg(test)]
    pub(crate) moves: usize,
}

impl Position {
    pub(crate) const fn new() -> Self {
        Self {
            at: None,
            steps: 0,
            ahead: Readahead::new(),
            behind: Vec::new(),
            #[cfg(test)]
            moves: 0,
        }
    }

    /// The node it is on.
    #[inline]
    pub(crate) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.at.map(|at| list.node(at))
    }

    #[inline]
    fn count(&mut self) {
        #[cfg(test)]
        {
            self.moves += 1;
        }
    }

    fn jump(&mut self, to: Option<NodeId>) {
        self.count();
        self.behind.clear();
        self.ahead.stop();
        (self.at, self.steps) = (to, 0);
    }

    pub(super) fn seek_to_first<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.nodes().after(Predecessor::HEAD));
    }

    pub(super) fn seek_to_last<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.index.last());
    }

    /// To the first node not before `target`.
    pub(super) fn seek<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.lower_bound(target).first);
    }

    /// To the last node before `target`.
    pub(super) fn seek_before<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.index.before(target).map(|(node, _)| node));
    }

    /// Moves forward by one node; from nowhere to nowhere. After some steps it fetches the next nodes in advance.
    #[inline]
    pub(super) fn next<S: Schema>(&mut self, list: &List<S>) {
        let Some(at) = self.at else { return };
        self.count();
        self.at = list.nodes().after(at);
        self.behind.clear();
        if self.steps < STEADY_WALK {
            self.steps += 1;
        } else if let Some(at) = self.at {
            self.ahead.advance(list, at);
        }
    }

    /// Moves back by one node; from nowhere to nowhere. Amortised O(1) in a list at rest.
    #[inline]
    pub(super) fn prev<S: Schema>(&mut self, list: &List<S>) {
        self.count();
        self.at = self.look_back(list);
        self.behind.pop();
    }

    /// The node that is now before the current one.
    pub(super) fn look_back<S: Schema>(&mut self, list: &List<S>) -> Option<NodeId> {
        let at = self.at?;
        let known = self.behind.last().copied().filter(|&prev| list.nodes().after(prev) == Some(at));
        if known.is_some() {
            self.ahead.retreat(list);
            return known;
        }
        self.behind.clear();
        if let Some(hint) = self.ahead.pass(list)
            && list.nodes().walk_between(hint, at, &mut self.behind)
        {
            return self.behind.last().copied();
        }
        let (prev, place) = list.index.before(list.node(at).target())?;
        if self.steps < STEADY_WALK {
            self.steps += 1;
        } else {
            self.ahead.start(list, place, true);
        }
        self.behind.clear();
        self.behind.push(prev);
        Some(prev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::tests::ascending;

    /// Catches a walk that reads ahead at once, at the cost of short scans, or never.
    #[test]
    fn walks_read_ahead_once_they_are_steady() {
        let list = ascending(1000);
        let mut position = Position::new();
        position.seek_to_first(&list);
        for step in 0..=STEADY_WALK {
            assert_eq!(position.ahead.asked_for(), 0, "{step}");
            position.next(&list);
        }
        assert!(position.ahead.asked_for() > 0);
    }

    /// The same for a walk back, also catches one that searches for each node.
    #[test]
    fn walks_back_search_until_they_are_steady() {
        let list = ascending(1000);
        let mut position = Position::new();
        position.seek_to_last(&list);
        let mut searches = STEADY_WALK as usize;
        for step in 0..=STEADY_WALK {
            assert_eq!(position.ahead.asked_for(), 0, "{step}");
            position.prev(&list);
        }
        assert!(position.ahead.asked_for() > 0);
        while position.node(&list).is_some() {
            let had = position.ahead.asked_for();
            position.prev(&list);
            searches += usize::from(had == 0);
        }
        assert!(searches <= 40, "{searches}");
    }
}
