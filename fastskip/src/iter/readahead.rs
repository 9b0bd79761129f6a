//! Fetches nodes ahead of a walk.
//!
//! In a list that was filled in random order, neighbours lie anywhere in memory: walking it costs a cache miss for each node, one after the other.
//! So after some steps, a walk lets the hints of the leaves run ahead of it and prefetches the nodes that they name. The walk itself only follows
//! links: hints only decide what is in the cache.

use crate::index::HintPlace;
use crate::list::List;
use crate::node::{Node, NodeId, Predecessor};
use crate::nodes::Schema;
use crate::tuning::{READAHEAD, READAHEAD_MISSES};

/// The next hints ahead of a walk, all prefetched.
#[derive(Debug, Clone)]
pub(super) struct Readahead {
    /// Whether the walk goes back.
    back: bool,
    /// The place of the hint after the last one in the ring.
    place: Option<HintPlace>,
    ring: [Option<NodeId>; READAHEAD],
    /// The next place of the walk in the ring, and the number of hints from there on that are ahead of it.
    first: usize,
    len: usize,
    /// Steps since the walk met a hint of the ring.
    misses: u32,
}

impl Readahead {
    pub(super) const fn new() -> Self {
        Self { back: false, place: None, ring: [None; READAHEAD], first: 0, len: 0, misses: READAHEAD_MISSES }
    }

    /// Forgets the prefetched hints, because the walk went elsewhere.
    pub(super) fn stop(&mut self) {
        (self.back, self.place, self.len, self.misses) = (false, None, 0, READAHEAD_MISSES);
    }

    /// The number of hints ahead of the walk that were prefetched.
    #[cfg(test)]
    pub(super) fn asked_for(&self) -> usize {
        self.len
    }

    /// Tells that the walk has reached `at` in forward direction.
    #[inline]
    pub(super) fn advance<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        if !self.back && self.len > 0 && self.ring[self.first] == Some(at) {
            self.drop_first(1);
            self.misses = 0;
            self.fill(list, 2);
            self.fetch_between(list);
        } else {
            self.misses += 1;
            if self.misses > READAHEAD_MISSES {
                let place = list.index.hint_behind(list.node(at).target());
                self.start(list, place, false);
            }
        }
    }

    /// Starts again at a place; `back` if the walk goes back from there.
    #[cold]
    pub(super) fn start<S: Schema>(&mut self, list: &List<S>, place: Option<HintPlace>, back: bool) {
        *self = Self { back, place, misses: 0, ..Self::new() };
        self.fill(list, READAHEAD);
    }

    /// For a backward walk: passes over some hints and returns the last of them. Most likely its node has arrived.
    pub(super) fn pass<S: Schema>(&mut self, list: &List<S>) -> Option<NodeId> {
        let passed = self.len.min(READAHEAD / 2);
        if !self.back || passed == 0 {
            return None;
        }
        let last = self.ring[(self.first + passed - 1) % READAHEAD];
        self.drop_first(passed);
        self.fill(list, 2);
        last
    }

    /// For a backward walk: tells that it has made a step.
    #[inline]
    pub(super) fn retreat<S: Schema>(&mut self, list: &List<S>) {
        if self.back {
            self.fill(list, 2);
            self.fetch_between(list);
        }
    }

    #[inline]
    fn drop_first(&mut self, hints: usize) {
        self.first = (self.first + hints) % READAHEAD;
        self.len -= hints;
    }

    /// Prefetches the node after one that has most likely arrived by now, if it has no hint.
    #[inline]
    fn fetch_between<S: Schema>(&self, list: &List<S>) {
        let half = self.len / 2;
        let at = |hint: usize| self.ring[(self.first + hint) % READAHEAD];
        let next = at(half).filter(|_| half > 0).and_then(|node| list.nodes().after(node));
        if let Some(next) = next.filter(|&next| Some(next) != at(if self.back { half - 1 } else { half + 1 })) {
            Node::new(list.nodes().storage(), next).prefetch_entry();
        }
    }

    /// Prefetches up to `most` more nodes.
    #[inline]
    fn fill<S: Schema>(&mut self, list: &List<S>, most: usize) {
        for _ in 0..most.min(READAHEAD - self.len) {
            let Some(place) = self.place else { return };
            let hint;
            (hint, self.place) = if self.back { list.index.hint_before(place) } else { list.index.hint_at(place) };
            if let Some(node) = hint.and_then(Predecessor::node) {
                Node::new(list.nodes().storage(), node).prefetch_entry();
                self.ring[(self.first + self.len) % READAHEAD] = Some(node);
                self.len += 1;
            }
        }
    }
}
