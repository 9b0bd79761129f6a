//! Positions in a list that move in both directions.
//!
//! A step leads along a link, or back to the node whose link leads to the current one. An order that breaks its promises misleads searches; so the
//! result of a search for the node before is checked by that link, and the searches by which a walk skips nodes are counted. So every walk ends,
//! whatever the order returns.

use alloc::vec::Vec;

use super::readahead::Readahead;
use crate::list::List;
use crate::node::{Link, NodeId, NodeRef, Predecessor, Schema, Target};
use crate::tuning::STEADY_WALK;

/// The number of searches after which they are compared with the number of entries, which is a sum over the shards.
const SKIPS_CHECKED: usize = 256;

/// A position: on a node, or on none. It may be used only with the list in which it was first moved.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    /// The node; the head if the position is on no node.
    at: Predecessor,
    /// The number of backward steps since the walk began that needed a search, counted up to [`STEADY_WALK`].
    searches: u32,
    ahead: Readahead,
    /// In a backward walk: known nodes before `at`, the nearest one last. Other nodes may have been inserted among them since.
    behind: Vec<NodeId>,
    /// The number of searches in a row that skipped nodes in one direction, and whether that is back.
    skips: usize,
    skips_back: bool,
    /// The number of steps and searches since the position was made.
    #[cfg(test)]
    pub(crate) moves: usize,
}

impl Position {
    pub(crate) const fn new() -> Self {
        Self {
            at: Predecessor::HEAD,
            searches: 0,
            ahead: Readahead::new(),
            behind: Vec::new(),
            skips: 0,
            skips_back: false,
            #[cfg(test)]
            moves: 0,
        }
    }

    /// The node that the position is on.
    #[inline(always)]
    pub(crate) fn node<'a, S: Schema>(&self, list: &'a List<S>) -> Option<NodeRef<'a, S>> {
        self.at.node().map(|at| list.node(at))
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
        self.skips = 0;
        self.ahead = Readahead::new();
        (self.at, self.searches) = (to.map_or(Predecessor::HEAD, Predecessor::from), 0);
    }

    pub(super) fn seek_to_first<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.nodes().after(Predecessor::HEAD));
    }

    pub(super) fn seek_to_last<S: Schema>(&mut self, list: &List<S>) {
        self.jump(list.index.last());
    }

    /// Moves to the first node that is not before `target`.
    pub(super) fn seek<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.index.lower_bound(target).first);
    }

    /// Moves to the last node before `target`.
    pub(super) fn seek_before<S: Schema>(&mut self, list: &List<S>, target: Target<'_>) {
        self.jump(list.index.before(target).map(|(node, _)| node));
    }

    /// Skips nodes in one direction of a walk: moves to the node that `search` finds. Returns false, and does not move, if the walk has searched more
    /// often than the list has entries: then the order misleads searches, because each should pass entries that no earlier one has passed.
    pub(super) fn skip<S: Schema, const BACK: bool>(
        &mut self,
        list: &List<S>,
        search: impl FnOnce() -> Option<NodeId>,
    ) -> bool {
        let skips = if self.skips_back == BACK { self.skips } else { 0 };
        if skips > 0 && skips % SKIPS_CHECKED == 0 && skips > list.entries() {
            return false;
        }
        self.jump(search());
        (self.skips, self.skips_back) = (skips + 1, BACK);
        true
    }

    /// Moves forward by one node; from no node, moves to the first one. After some steps it prefetches the next nodes. Returns the link that it
    /// followed.
    #[inline(always)]
    pub(super) fn next<S: Schema>(&mut self, list: &List<S>) -> Link {
        self.count();
        let link = list.nodes().link(self.at);
        match link.to {
            Some(next) => {
                self.at = next.into();
                self.ahead.advance(list, next);
            }
            None => self.at = Predecessor::HEAD,
        }
        link
    }

    /// Moves back by one node; from no node, stays there. Amortised O(1) in a list at rest. Returns whether the new node may have the same key as the
    /// one after it, judged by the link between the two.
    #[inline(always)]
    pub(super) fn prev<S: Schema>(&mut self, list: &List<S>) -> bool {
        self.count();
        let before = self.look_back(list);
        self.behind.pop();
        self.at = before.map_or(Predecessor::HEAD, |(node, _)| node.into());
        before.is_some_and(|(_, may_be_same_key)| may_be_same_key)
    }

    /// Finds the node that is now before the current one, and whether it may have the same key.
    #[inline(always)]
    pub(super) fn look_back<S: Schema>(&mut self, list: &List<S>) -> Option<(NodeId, bool)> {
        let at = self.at.node()?;
        if let Some(&prev) = self.behind.last() {
            let link = list.nodes().link(prev);
            if link.to == Some(at) {
                return Some((prev, link.partial.may_be_same_key()));
            }
        }
        self.search_back(list, at).map(|prev| (prev, true))
    }

    /// Finds the node that is now before `at`; it becomes the nearest of the known nodes behind.
    #[inline(never)]
    fn search_back<S: Schema>(&mut self, list: &List<S>, at: NodeId) -> Option<NodeId> {
        self.behind.clear();
        let hint = self.ahead.pass(list);
        if hint.is_some_and(|hint| list.nodes().walk_between(hint, at, &mut self.behind)) {
            return self.behind.last().copied();
        }
        let found = list.index.before(list.node(at).target());
        let from = found.as_ref().map_or(Predecessor::HEAD, |(prev, _)| (*prev).into());
        let prev = list.nodes().link_to(at, from).node()?;
        if self.searches < STEADY_WALK {
            self.searches += 1;
        } else if let Some((_, seek)) = found {
            self.ahead.start::<S, true>(list, list.index.place_of(&seek), at);
        }
        self.behind.clear();
        self.behind.push(prev);
        Some(prev)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::list::tests::{ascending, list_of, mix};

    /// Catches a walk that starts readahead at once, which makes short scans slower, or never starts it.
    #[test]
    fn walks_read_ahead_once_they_are_steady() {
        let list = ascending(1000);
        let mut position = Position::new();
        position.seek_to_first(&list);
        for step in 0..=STEADY_WALK {
            assert!(!position.ahead.has_fetched(), "{step}");
            position.next(&list);
        }
        assert!(position.ahead.has_fetched());
    }

    /// Catches readahead that loses track of the walk because it counts steps wrongly: it would search for its place again and again.
    #[test]
    fn readahead_keeps_its_place_in_a_list_at_rest() {
        let mut keys: Vec<_> = (0..2000).map(mix).collect();
        let list = list_of(keys.iter().map(|key| key.to_be_bytes().to_vec()));
        keys.sort_unstable();
        for first in &keys[..100] {
            let mut position = Position::new();
            position.seek(&list, Target { key: &first.to_be_bytes(), version: 0 });
            (0..1800).for_each(|_| _ = position.next(&list));
            assert_eq!(position.ahead.starts, 1, "from {first}");
        }
    }

    /// Catches a walk over nodes in the order of memory that reads hints all the way; one that reads memory although nodes are scattered; and one that
    /// searches again because of a single jump.
    #[test]
    fn walks_read_memory_ahead_only_while_nodes_follow_each_other_there() {
        // How many steps of a walk read memory, and how often it searched for its place.
        let walk = |keys: Vec<u64>| {
            let steps = keys.len() - 1;
            let list = list_of(keys.into_iter().map(|key| key.to_be_bytes().to_vec()));
            let mut position = Position::new();
            position.seek_to_first(&list);
            let mut step = || {
                position.next(&list);
                (position.ahead.reads_memory(), position.ahead.starts)
            };
            let steps: Vec<_> = (0..steps).map(|_| step()).collect();
            (steps.iter().filter(|step| step.0).count(), steps.last().map_or(0, |step| step.1))
        };
        let (sequential, starts) = walk((0..5000).collect());
        assert!(sequential > 4800 && starts == 1, "in order: {sequential}, {starts}");
        let (sequential, starts) = walk((0..5000).rev().collect());
        assert!(sequential > 4800 && starts == 1, "in descending order: {sequential}, {starts}");
        assert_eq!(walk((0..5000).map(mix).collect()), (0, 1), "unordered");
        let (sequential, starts) =
            walk((0..5000).map(|key| 100 * key).chain((0..50).map(|key| 10_000 * key + 7)).collect());
        assert!(sequential > 4500 && starts == 1, "few later ones: {sequential}, {starts}");
        let short_runs = (0..4000).map(|key| 1 << 40 | mix(key / 16) >> 30 << 4 | (key % 16));
        let (sequential, starts) = walk((0..300).chain(short_runs).collect());
        assert!(sequential < 600 && starts > 1, "runs of 16: {sequential}, {starts}");
        let unordered = (0..2000).map(|key| 1 << 32 | mix(key) >> 32);
        let (sequential, starts) = walk((0..2000).chain(unordered).chain((0..2000).map(|key| 1 << 40 | key)).collect());
        assert!((3600..4050).contains(&sequential) && starts == 2, "partly in order: {sequential}, {starts}");
    }

    /// The same for a backward walk; also catches a walk that searches for each node.
    #[test]
    fn walks_back_search_until_they_are_steady() {
        let list = ascending(1000);
        let mut position = Position::new();
        position.seek_to_last(&list);
        let mut searches = STEADY_WALK as usize;
        for step in 0..=STEADY_WALK {
            assert!(!position.ahead.has_fetched(), "{step}");
            position.prev(&list);
        }
        assert!(position.ahead.has_fetched());
        while position.node(&list).is_some() {
            let had = position.ahead.has_fetched() || !position.behind.is_empty();
            position.prev(&list);
            searches += usize::from(!had);
        }
        assert!(searches <= 40, "{searches}");
    }
}
