//! Prefetches nodes ahead of a walk.
//!
//! In a list that was filled in random order, neighbouring nodes are scattered in memory: a walk has a cache miss for each node, one after the other.
//! So after some steps, a walk reads the hints of the leaves ahead of it and prefetches the nodes that they name. The walk itself only follows links;
//! hints only decide which nodes are in the cache.
//!
//! Hints are read in chunks: when the walk reaches the next chunk, the chunk after that is prefetched. Nodes without hints are reached by the links
//! of the next chunk's nodes, which most likely are in the cache by then.

use crate::index::{HintPlace, Hints};
use crate::list::List;
use crate::node::{self, NodeId, Predecessor, Schema};
use crate::tuning::{READAHEAD, READAHEAD_MISSES, STEADY_WALK};

const _: () = assert!(READAHEAD >= 2, "leaves give hints in pairs");

/// The next hints ahead of a walk, all prefetched.
#[derive(Debug, Clone)]
pub(super) struct Readahead {
    /// Whether the walk goes back.
    back: bool,
    /// The number of forward steps after which the walk fetches more: until it is steady, or until it reaches the mark.
    left: u32,
    /// Steps since the walk should have reached the mark.
    misses: u32,
    /// The last hint, in the order of the walk, of the chunk that the walk is in.
    mark: Option<NodeId>,
    /// The last hint of the chunk after that, and the number of steps from the mark to it.
    last: Predecessor,
    steps: u32,
    /// The second chunk after that, and the place behind it.
    chunk: Option<Hints>,
    place: Option<HintPlace>,
    #[cfg(test)]
    pub(super) starts: usize,
}

impl Readahead {
    pub(super) const fn new() -> Self {
        let (last, left) = (Predecessor::HEAD, STEADY_WALK + 1);
        Self {
            back: false,
            left,
            misses: 0,
            mark: None,
            last,
            steps: 0,
            chunk: None,
            place: None,
            #[cfg(test)]
            starts: 0,
        }
    }

    /// Records that the walk has made a step forward, to `at`.
    #[inline(always)]
    pub(super) fn advance<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        self.left -= 1;
        if self.left == 0 {
            self.advance_chunk(list, at);
        }
    }

    /// Fetches another chunk if the walk has reached the mark.
    #[inline(never)]
    fn advance_chunk<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        self.left = 1;
        if !self.back && self.mark == Some(at) {
            self.misses = 0;
            self.load::<S, false>(list);
        } else if !self.back && self.mark.is_some() && self.misses < READAHEAD_MISSES {
            // The walk has passed more nodes than were counted before the mark.
            self.misses += 1;
        } else {
            let place = list.index.hint_behind(list.node(at).target());
            self.start::<S, false>(list, place, at);
        }
    }

    /// Restarts at a place that is ahead of `at`, the position of the walk.
    #[cold]
    pub(super) fn start<S: Schema, const BACK: bool>(&mut self, list: &List<S>, place: Option<HintPlace>, at: NodeId) {
        *self = Self {
            back: BACK,
            place,
            last: at.into(),
            #[cfg(test)]
            starts: self.starts + 1,
            ..Self::new()
        };
        self.chunk = self.fetch::<S, BACK>(list);
        self.load::<S, BACK>(list);
        self.load::<S, BACK>(list);
    }

    /// For a backward walk: skips a chunk and returns its last hint. Most likely the node of that hint is in the cache.
    pub(super) fn pass<S: Schema>(&mut self, list: &List<S>) -> Option<NodeId> {
        let passed = self.mark.filter(|_| self.back)?;
        self.load::<S, true>(list);
        Some(passed)
    }

    /// Moves on by a chunk: prefetches nodes without hints in the chunk that most likely is in the cache, and fetches another chunk.
    fn load<S: Schema, const BACK: bool>(&mut self, list: &List<S>) {
        self.mark = self.last.node();
        self.left = if BACK || self.mark.is_none() { READAHEAD_MISSES } else { self.steps };
        match self.chunk {
            Some(chunk) => self.fetch_between::<S, BACK>(list, chunk),
            None => self.last = Predecessor::HEAD,
        }
        self.chunk = self.fetch::<S, BACK>(list);
    }

    /// Prefetches the nodes without hints in a chunk: at most one behind each hint.
    #[inline(always)]
    fn fetch_between<S: Schema, const BACK: bool>(&mut self, list: &List<S>, chunk: Hints) {
        let (mut steps, mut last) = (0, self.last);
        let mut pass = |hint: Option<Predecessor>| {
            let Some(hint) = hint.filter(|&hint| !BACK || hint != Predecessor::HEAD) else { return };
            let (from, to) = if BACK { (hint, last) } else { (last, hint) };
            let next = list.nodes().after(from).map_or(0, NodeId::to_stored);
            if next != to.to_stored() {
                steps += 1;
                node::prefetch_entry(list.nodes().storage(), next);
            }
            last = hint;
        };
        let mut pairs = list.index.pairs(chunk);
        while let Some(pair) = if BACK { pairs.next_back() } else { pairs.next() } {
            pass(pair[usize::from(BACK)]);
            pass(pair[usize::from(!BACK)]);
        }
        (self.steps, self.last) = (steps + chunk.len(), last);
    }

    /// Prefetches the nodes of the next hints. Leaves without hints are skipped, but only a limited number: their `next` links may form a circle.
    #[inline(always)]
    fn fetch<S: Schema, const BACK: bool>(&mut self, list: &List<S>) -> Option<Hints> {
        for _ in 0..READAHEAD {
            let place = self.place?;
            let hints;
            (hints, self.place) =
                if BACK { list.index.hints_before(place, READAHEAD) } else { list.index.hints_at(place, READAHEAD) };
            if hints.len() > 0 {
                list.index.prefetch_entries(hints);
                return Some(hints);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Readahead {
        /// Whether hints ahead of the walk were prefetched.
        pub(in crate::iter) fn has_fetched(&self) -> bool {
            self.mark.is_some()
        }
    }
}
