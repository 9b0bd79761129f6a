//! Prefetches nodes ahead of a walk.
//!
//! In a list that was filled in random order, neighbouring nodes are scattered in memory: a walk has a cache miss for each node, one after the other.
//! So after some steps, a walk reads the hints of the leaves ahead of it and prefetches the nodes that they name. The walk itself only follows links;
//! hints only decide which nodes are in the cache.
//!
//! Hints are read in chunks: when the walk reaches the next chunk, the chunk after that is prefetched. Nodes without hints are reached by the links
//! of the next chunk's nodes, which most likely are in the cache by then.
//!
//! If the keys were inserted in order, neighbouring nodes lie one behind the other in memory. A walk then needs no hints: it is *sequential*, and
//! prefetches memory at the distance that it will probably walk over in the next steps. This distance is far greater than that of the hints, because
//! such a walk is so fast that only many cache misses at once hide the latency of memory. Prefetching reads nothing, so a wrong guess costs only time.

use crate::index::{HintPlace, Hints};
use crate::list::List;
use crate::node::{self, NodeId, Predecessor, Schema};
use crate::tuning::{
    READAHEAD, READAHEAD_MISSES, SEQUENTIAL_AHEAD, SEQUENTIAL_CHUNKS, SEQUENTIAL_MISSES, SEQUENTIAL_STEPS,
    SEQUENTIAL_WORDS, STEADY_WALK,
};

const _: () = assert!(READAHEAD >= 2, "leaves give hints in pairs");

/// The number of words of a cache line.
const LINE_WORDS: usize = 8;

/// The next hints ahead of a walk, all prefetched.
#[derive(Debug, Clone)]
pub(super) struct Readahead {
    /// Whether the walk goes back.
    back: bool,
    /// The number of forward steps after which the walk fetches more: until it is steady, or until it reaches the mark.
    left: u32,
    /// Steps since the walk should have reached the mark; in a sequential walk, a measure of the jumps in memory.
    misses: u32,
    /// The last hint, in the order of the walk, of the chunk that the walk is in.
    mark: Option<NodeId>,
    /// The last hint of the chunk after that, and the number of steps from the mark to it. In a sequential walk, the node at which it last fetched.
    last: Predecessor,
    steps: u32,
    /// The second chunk after that, and the place behind it.
    chunk: Option<Hints>,
    place: Option<HintPlace>,
    /// The number of chunks in a row whose nodes lie close together in memory. After enough of them, the walk is sequential, and there is no mark.
    close: u32,
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
            close: 0,
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
            if self.is_sequential() {
                (self.mark, self.last, self.left) = (None, at.into(), SEQUENTIAL_STEPS);
            }
        } else if !self.back && self.mark.is_some() && self.misses < READAHEAD_MISSES {
            // The walk has passed more nodes than were counted before the mark.
            self.misses += 1;
        } else if self.is_sequential() {
            self.advance_sequential(list, at);
        } else {
            let place = list.index.hint_behind(list.node(at).target());
            self.start::<S, false>(list, place, at);
        }
    }

    fn is_sequential(&self) -> bool {
        self.close >= SEQUENTIAL_CHUNKS
    }

    /// Prefetches as much memory as the walk has passed since the last call, at a distance ahead of it. After repeated jumps in memory, the walk reads
    /// hints again.
    fn advance_sequential<S: Schema>(&mut self, list: &List<S>, at: NodeId) {
        let words = words_between(self.last.node(), Some(at));
        (self.left, self.last) = (SEQUENTIAL_STEPS, at.into());
        if is_close(words, SEQUENTIAL_STEPS) {
            self.misses = self.misses.saturating_sub(1);
            let ahead = at.to_stored().wrapping_add_signed(SEQUENTIAL_AHEAD * words);
            let storage = list.nodes().storage();
            (0..words.abs()).step_by(LINE_WORDS).for_each(|at| {
                storage.prefetch::<0>(ahead.wrapping_add_signed(if words < 0 { -at } else { at }));
            });
        } else if self.misses < SEQUENTIAL_MISSES {
            // One jump is no reason to search: every chunk of the arena ends with one. A node that was inserted later causes two. After each, the
            // memory that was prefetched is not that of the next nodes.
            self.misses += SEQUENTIAL_AHEAD.unsigned_abs();
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
        if !BACK {
            let (from, to) = (self.mark, self.last.node());
            let is_near = from.is_some() && to.is_some() && is_close(words_between(from, to), self.steps);
            self.close = if is_near { self.close + 1 } else { 0 };
        }
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

/// The number of words from one node to another in memory; negative if the other one lies before it.
#[inline]
fn words_between(from: Option<NodeId>, to: Option<NodeId>) -> i32 {
    let [from, to] = [from, to].map(|node| node.map_or(0, NodeId::to_stored));
    to.wrapping_sub(from) as i32
}

/// Whether nodes that are `steps` apart in the list, and `words` in memory, lie close together.
#[inline]
fn is_close(words: i32, steps: u32) -> bool {
    words.unsigned_abs() <= SEQUENTIAL_WORDS * steps
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Readahead {
        /// Whether the walk prefetches memory instead of hints.
        pub(in crate::iter) fn reads_memory(&self) -> bool {
            self.is_sequential()
        }

        /// Whether hints ahead of the walk were prefetched.
        pub(in crate::iter) fn has_fetched(&self) -> bool {
            self.mark.is_some()
        }
    }
}
