//! [`RangeTombstones`]: any number of range tombstones, and which of them cover a key.
//!
//! The places where ranges begin and end cut all keys into *spans*: the keys of a span are covered by the same tombstones. RocksDB and
//! Pebble list these for each span. Ranges within each other would take the square of their number so; here a range is noted at the
//! O(log n) nodes of a segment tree whose leaves together are its spans, and what covers a span is noted on the way from its leaf to the
//! root.
//!
//! F1 places ascend, none twice. Only the last one may be no end, which comes behind all places.
//! F2 ranges ascend by start, then end; of equal ones the newest comes first, none comes twice. Each begins with a key and has one.
//! F3 node 1 is the root, nodes `2 * n` and `2 * n + 1` are below node `n`, and the leaf of span `i` is node `spans + i`. A node has
//!    its numbers newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use super::range_tombstone::{RangeTombstone, is_before_end};
use crate::types::{SeqNo, Slice};

/// The removal of the keys between two places, which are given by their positions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    from: usize,
    to: usize,
    seqno: Reverse<SeqNo>,
}

/// Range tombstones, sorted. Takes O(n log n) memory for n of them, and O(n) if none overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    places: Vec<Slice>,
    ranges: Vec<Range>,
    /// Where in `seqnos` those of each node begin, and at last where they all end.
    nodes: Vec<usize>,
    /// Of each node, the first that has a number on the way from it to the root; 0 if there is none.
    up: Vec<usize>,
    seqnos: Vec<SeqNo>,
}

/// Keys that the same tombstones cover, and the newest of those that a reader sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Slice,
    /// Empty if it has no end.
    pub(crate) end: Slice,
    pub(crate) newest: Option<SeqNo>,
}

impl Span {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && is_before_end(key, &self.end)
    }

    /// Leaves the keys of both, and the newer of their tombstones.
    pub(crate) fn narrow(&mut self, other: &Span) {
        if other.start > self.start {
            self.start = other.start.clone();
        }
        if !other.end.is_empty() && is_before_end(&other.end, &self.end) {
            self.end = other.end.clone();
        }
        self.newest = self.newest.max(other.newest);
    }
}

pub(crate) struct EqualRanges<'a> {
    pub(crate) start: &'a Slice,
    pub(crate) end: &'a Slice,
    same: &'a [Range],
}

impl EqualRanges<'_> {
    /// Their numbers, the newest first.
    pub(crate) fn seqnos(&self) -> impl ExactSizeIterator<Item = SeqNo> {
        self.same.iter().map(|range| range.seqno.0)
    }
}

impl RangeTombstones {
    /// Of `tombstones`, those that have a key. O(n log n).
    pub(crate) fn new(tombstones: impl IntoIterator<Item = RangeTombstone>) -> Self {
        let all: Vec<_> = tombstones.into_iter().filter_map(RangeTombstone::begin_at_key).collect();
        // Starts and ends apart, since each mostly come in order: so they are merged rather than sorted.
        let starts = all.iter().enumerate().map(|(at, range)| ((false, &range.start), 2 * at));
        let ends = all.iter().enumerate().map(|(at, range)| ((range.end.is_empty(), &range.end), 2 * at + 1));
        let mut sorted: Vec<_> = starts.chain(ends).collect();
        sorted.sort_by_key(|&(place, _)| place);
        let (mut places, mut positions, mut last) = (Vec::new(), vec![0; sorted.len()], None);
        for (place, which) in sorted {
            if last.replace(place) != Some(place) {
                places.push(place.1.clone());
            }
            positions[which] = places.len() - 1;
        }
        let range =
            |(range, at): (&RangeTombstone, &[usize])| Range { from: at[0], to: at[1], seqno: Reverse(range.seqno) };
        let mut ranges: Vec<Range> = all.iter().zip(positions.chunks_exact(2)).map(range).collect();
        ranges.sort();
        ranges.dedup();
        Self::planted(places, ranges)
    }

    /// With the tree that is to stand over `places`.
    fn planted(places: Vec<Slice>, ranges: Vec<Range>) -> Self {
        let spans = places.len().saturating_sub(1);
        let mut nodes = vec![0; 2 * spans + 1];
        ranges.iter().for_each(|range| nodes_of(range, spans, |node| nodes[node + 1] += 1));
        let mut total = 0;
        for count in &mut nodes {
            total += *count;
            *count = total;
        }
        let (mut next, mut seqnos) = (nodes.clone(), vec![0; total]);
        for range in &ranges {
            nodes_of(range, spans, |node| {
                seqnos[next[node]] = range.seqno.0;
                next[node] += 1;
            });
        }
        let mut up = vec![0; 2 * spans];
        for node in 1..up.len() {
            let own = &mut seqnos[nodes[node]..nodes[node + 1]];
            own.sort_unstable_by_key(|&seqno| Reverse(seqno));
            up[node] = if own.is_empty() { up[node / 2] } else { node };
        }
        Self { places, ranges, nodes, up, seqnos }
    }

    /// All of several. O(n log n).
    pub(crate) fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(sets.into_iter().flat_map(Self::iter))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// By start, then end, then number, the newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RangeTombstone> {
        self.ranges.iter().map(|range| self.tombstone(range))
    }

    /// In the same order, those with equal bounds together.
    pub(crate) fn parts(&self) -> impl Iterator<Item = EqualRanges<'_>> {
        let same_bounds = self.ranges.chunk_by(|a, b| (a.from, a.to) == (b.from, b.to));
        same_bounds.filter_map(|same| {
            let first = same.first()?;
            Some(EqualRanges { start: &self.places[first.from], end: &self.places[first.to], same })
        })
    }

    /// The first key that is covered.
    pub(crate) fn first_key(&self) -> Option<&Slice> {
        self.places.first()
    }

    /// The last key that can be covered, or the end of all ranges where that is not known: the key before a place right after a key is
    /// that key; before any other there are endlessly many.
    pub(crate) fn largest(&self) -> Option<&[u8]> {
        self.places.last().map(|end| end.strip_suffix(&[0]).unwrap_or(end))
    }

    /// The newest tombstone that covers `key` and is not newer than `seqno`. O(log² n).
    pub(crate) fn covering(&self, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        self.newest(self.span_of(key, self.places_upto(key))?, seqno)
    }

    /// The same where the key is near that of the last call, which has left its place in `near`.
    pub(crate) fn covering_near(&self, near: &mut usize, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        *near = self.places_upto_from(*near, key);
        self.newest(self.span_of(key, *near)?, seqno)
    }

    /// The span of `key`, and the newest that covers it and is not newer than `seqno`. As [`covering_near`](Self::covering_near).
    pub(crate) fn span_near(&self, near: &mut usize, key: &[u8], seqno: SeqNo) -> Span {
        let upto = self.places_upto_from(*near, key);
        *near = upto;
        let place = |at: Option<&Slice>| at.cloned().unwrap_or_default();
        match self.span_of(key, upto) {
            Some(span) => {
                let [start, end] = [span, span + 1].map(|at| self.places[at].clone());
                Span { start, end, newest: self.newest(span, seqno) }
            }
            None if upto == 0 => Span { end: place(self.places.first()), ..Span::default() },
            None => Span { start: place(self.places.last()), ..Span::default() },
        }
    }

    /// Whether every key from `smallest` to `largest` is covered by a tombstone that is newer than `older` and not newer than `seqno`.
    pub(crate) fn cover_all(&self, smallest: &[u8], largest: &[u8], (older, seqno): (SeqNo, SeqNo)) -> bool {
        let span = |key| self.span_of(key, self.places_upto(key));
        let (Some(first), Some(last)) = (span(smallest), span(largest)) else { return false };
        (first..=last).all(|span| self.newest(span, seqno) > Some(older))
    }

    /// What lies from `from` on and before `end`, an empty one of which is no end. O(n), and O(n log n) of the outcome.
    pub(crate) fn within(&self, from: &Slice, end: &Slice) -> Self {
        let begins = |range: &&Range| is_before_end(&self.places[range.from], end);
        let reaches = |range: &&Range| is_before_end(from, &self.places[range.to]);
        let ranges = self.ranges.iter().take_while(begins).filter(reaches);
        Self::new(ranges.filter_map(|range| self.tombstone(range).within(from, end)))
    }

    /// Those that `kept` wants.
    pub(crate) fn retain(&self, mut kept: impl FnMut(&RangeTombstone) -> bool) -> Self {
        Self::new(self.iter().filter(|range| kept(range)))
    }

    /// Of those that cover the same keys, the newest of each stripe of history; `stripe` says which numbers are in that of a number.
    /// Those of one stripe are cut at each other's ends for it: they become twice as many at most. O(n log n).
    pub(crate) fn reduced(&self, stripe: impl Fn(SeqNo) -> RangeInclusive<SeqNo>) -> Self {
        let mut by_end: Vec<&Range> = self.ranges.iter().collect();
        by_end.sort_by_key(|range| range.to);
        let (mut begins, mut ends) = (self.ranges.iter().peekable(), by_end.into_iter().peekable());
        // How many parts of each tombstone cover what follows: of two inputs that both have it there are two.
        let mut open: BTreeMap<SeqNo, usize> = BTreeMap::new();
        // Of each stripe, by its first number: the newest, and from where on it is.
        let mut newest: BTreeMap<SeqNo, (usize, SeqNo)> = BTreeMap::new();
        let (mut changed, mut reduced) = (Vec::new(), Vec::new());
        for at in 0..self.places.len() {
            while let Some(range) = ends.next_if(|range| range.to == at) {
                let count = open.entry(range.seqno.0).or_default();
                *count = count.saturating_sub(1);
                if *count == 0 {
                    open.remove(&range.seqno.0);
                }
                changed.push(range.seqno.0);
            }
            while let Some(range) = begins.next_if(|range| range.from == at) {
                *open.entry(range.seqno.0).or_default() += 1;
                changed.push(range.seqno.0);
            }
            for stripe in changed.drain(..).map(&stripe) {
                let now = open.range(stripe.clone()).next_back().map(|(&seqno, _)| seqno);
                let before = newest.get(stripe.start()).copied();
                if before.map(|(_, seqno)| seqno) == now {
                    continue;
                }
                reduced.extend(before.map(|(from, seqno)| Range { from, to: at, seqno: Reverse(seqno) }));
                match now {
                    Some(seqno) => newest.insert(*stripe.start(), (at, seqno)),
                    None => newest.remove(stripe.start()),
                };
            }
        }
        Self::new(reduced.iter().map(|range| self.tombstone(range)))
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn memory_len(&self) -> usize {
        let Self { places, ranges, nodes, up, seqnos } = self;
        let tree = size_of_val(&nodes[..]) + size_of_val(&up[..]) + size_of_val(&seqnos[..]);
        tree + size_of_val(&ranges[..])
            + size_of_val(&places[..])
            + places.iter().map(|place| place.len()).sum::<usize>()
    }

    fn tombstone(&self, range: &Range) -> RangeTombstone {
        let [start, end] = [range.from, range.to].map(|at| self.places[at].clone());
        RangeTombstone { start, end, seqno: range.seqno.0 }
    }

    fn spans(&self) -> usize {
        self.places.len().saturating_sub(1)
    }

    /// How many spans begin at `key` or before it. The last place begins none.
    fn places_upto(&self, key: &[u8]) -> usize {
        self.places[..self.spans()].partition_point(|place| **place <= *key)
    }

    /// The same if it is about `near`: O(log distance).
    fn places_upto_from(&self, near: usize, key: &[u8]) -> usize {
        let starts = &self.places[..self.spans()];
        let is_upto = |at: usize| starts.get(at).is_some_and(|place| **place <= *key);
        // Up to `low` they are, from `high` on they are not.
        let (mut low, mut high, mut step) = (near.min(starts.len()), near.min(starts.len()), 1);
        while is_upto(high) {
            (low, high, step) = (high + 1, (high + step).min(starts.len()), 2 * step);
        }
        while low > 0 && !is_upto(low - 1) {
            (low, high, step) = (low.saturating_sub(step), low - 1, 2 * step);
        }
        low + starts[low..high].partition_point(|place| **place <= *key)
    }

    /// The span of `key`, before which so many spans begin; `None` if it lies outside of all ranges.
    fn span_of(&self, key: &[u8], upto: usize) -> Option<usize> {
        let span = upto.checked_sub(1)?;
        is_before_end(key, &self.places[upto]).then_some(span)
    }

    /// The newest number of a span that is not newer than `seqno`. O(log² n).
    fn newest(&self, span: usize, seqno: SeqNo) -> Option<SeqNo> {
        let (mut node, mut newest) = (self.up[self.spans() + span], None);
        while node > 0 {
            let own = &self.seqnos[self.nodes[node]..self.nodes[node + 1]];
            newest = newest.max(own.get(own.partition_point(|&newer| newer > seqno)).copied());
            node = self.up[node / 2];
        }
        newest
    }
}

/// Visits the highest nodes of a tree over so many spans that stand over spans of `range` alone: they have all of them.
fn nodes_of(range: &Range, spans: usize, mut visit: impl FnMut(usize)) {
    let (mut from, mut to) = (spans + range.from, spans + range.to);
    while from < to {
        if from % 2 == 1 {
            visit(from);
            from += 1;
        }
        if to % 2 == 1 {
            to -= 1;
            visit(to);
        }
        (from, to) = (from / 2, to / 2);
    }
}

#[cfg(test)]
mod tests;
