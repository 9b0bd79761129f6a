//! [`RangeTombstones`]: a set of range tombstones, searched for those that cover a key.
//!
//! The starts and ends of all ranges divide the keys into *spans*: all keys of a span are covered by the same tombstones. RocksDB and Pebble list
//! these tombstones for each span, which takes memory in proportion to the square of the number of ranges if they are nested. Here a segment tree has
//! the spans as its leaves, and stores each range at the O(log n) nodes whose leaves together form the range. The tombstones of a span are at the
//! nodes from its leaf up to the root.
//!
//! F1 `places` (starts and ends) ascend, without duplicates. Only the last one may be empty (no end), which sorts after all others.
//! F2 ranges ascend by start, then end; of those with equal bounds the newest comes first; there are no duplicates. Each begins with a key, so it
//! contains at least one.
//! F3 node 1 is the root, nodes `2 * n` and `2 * n + 1` are the children of node `n`, and the leaf of span `i` is node `spans + i`. The sequence
//! numbers of a node are sorted newest first.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::{Bound, RangeInclusive};

use super::key_bounds::{KeyBounds, is_below};
use super::range_tombstone::{RangeTombstone, is_before_end};
use crate::types::{SeqNo, Slice};

/// A range tombstone; its start and end are given as indexes in `places`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Range {
    from: usize,
    to: usize,
    seqno: Reverse<SeqNo>,
}

/// Range tombstones, sorted. Takes O(n log n) memory for n range tombstones, and O(n) if none overlap.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct RangeTombstones {
    places: Vec<Slice>,
    ranges: Vec<Range>,
    /// For each node, the start of its sequence numbers in `seqnos`; the last element is the length of `seqnos`.
    nodes: Vec<usize>,
    /// For each node, the first node with a sequence number on the path from it to the root; 0 if there is none.
    up: Vec<usize>,
    seqnos: Vec<SeqNo>,
}

/// Adjacent keys that the same tombstones cover, and the newest of these tombstones that a reader sees.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: Slice,
    /// Empty if the span has no end.
    pub(crate) end: Slice,
    pub(crate) newest: Option<SeqNo>,
}

impl Span {
    pub(crate) fn contains(&self, key: &[u8]) -> bool {
        *self.start <= *key && is_before_end(key, &self.end)
    }

    /// Reduces this span to the keys of both spans, and to the newer one of their two tombstones.
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
    /// The sequence numbers of the tombstones, newest first.
    pub(crate) fn seqnos(&self) -> impl ExactSizeIterator<Item = SeqNo> {
        self.same.iter().map(|range| range.seqno.0)
    }
}

impl RangeTombstones {
    /// The set of those `tombstones` that contain a key. O(n log n).
    pub(crate) fn new(tombstones: impl IntoIterator<Item = RangeTombstone>) -> Self {
        let all: Vec<_> = tombstones.into_iter().filter_map(RangeTombstone::begin_at_key).collect();
        // Starts and ends are kept apart, because each list is mostly in order already, so that the sort only merges them.
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

    /// Builds the set and its tree for `places` and `ranges`.
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

    /// The union of several sets. O(n log n).
    pub(crate) fn union<'a>(sets: impl IntoIterator<Item = &'a Self>) -> Self {
        Self::new(sets.into_iter().flat_map(Self::iter))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The tombstones by start, then end, then sequence number, newest first.
    pub(crate) fn iter(&self) -> impl Iterator<Item = RangeTombstone> {
        self.ranges.iter().map(|range| self.tombstone(range))
    }

    /// The tombstones in the same order; those with equal bounds are returned together.
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

    /// The last key that can be covered, or if that is unknown, the end of all ranges. If an end is the position directly after a key, that key is
    /// the last one; before any other position the last key is unknown.
    pub(crate) fn largest(&self) -> Option<&[u8]> {
        self.places.last().map(|end| end.strip_suffix(&[0]).unwrap_or(end))
    }

    /// The newest tombstone that covers `key`, with a number <= `seqno`. O(log² n).
    pub(crate) fn covering(&self, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        self.newest(self.span_of(key, self.places_upto(key))?, seqno)
    }

    /// The same for a key near that of the last call; that call has stored its position in `near`.
    pub(crate) fn covering_near(&self, near: &mut usize, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        *near = self.places_upto_from(*near, key);
        self.newest(self.span_of(key, *near)?, seqno)
    }

    /// The span around `key`, and the newest tombstone over it with a number <= `seqno`. For `near` see [`covering_near`](Self::covering_near).
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

    /// Whether every key from `smallest` to `largest` is covered by a tombstone with a number > `older` and <= `seqno`.
    pub(crate) fn cover_all(&self, smallest: &[u8], largest: &[u8], (older, seqno): (SeqNo, SeqNo)) -> bool {
        let span = |key| self.span_of(key, self.places_upto(key));
        let (Some(first), Some(last)) = (span(smallest), span(largest)) else { return false };
        (first..=last).all(|span| self.newest(span, seqno) > Some(older))
    }

    /// A tombstone that is newer than `since` and covers positions between the bounds, which must not be inverted. O(n).
    pub(crate) fn newer_within(&self, bounds: &impl KeyBounds, since: SeqNo) -> Option<RangeTombstone> {
        let begins = |range: &&Range| is_below(&self.places[range.from], bounds.end());
        let reaches = |range: &Range| match (bounds.start(), &self.places[range.to]) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(lower), end) => is_before_end(lower, end),
            // The position directly after a key is the first one greater than the key.
            (Bound::Excluded(lower), end) => is_before_end(lower, end) && end.strip_suffix(&[0]) != Some(lower),
        };
        let mut begun = self.ranges.iter().take_while(begins);
        begun.find(|range| range.seqno.0 > since && reaches(range)).map(|range| self.tombstone(range))
    }

    /// The parts from `from` up to `end`, exclusive; an empty `end` means no end. O(n), and O(m log m) for m parts in the result.
    pub(crate) fn within(&self, from: &Slice, end: &Slice) -> Self {
        let begins = |range: &&Range| is_before_end(&self.places[range.from], end);
        let reaches = |range: &&Range| is_before_end(from, &self.places[range.to]);
        let ranges = self.ranges.iter().take_while(begins).filter(reaches);
        Self::new(ranges.filter_map(|range| self.tombstone(range).within(from, end)))
    }

    /// The tombstones for which `kept` returns true.
    pub(crate) fn retain(&self, mut kept: impl FnMut(&RangeTombstone) -> bool) -> Self {
        Self::new(self.iter().filter(|range| kept(range)))
    }

    /// Keeps only the newest tombstone of each stripe of history among those that cover the same keys; `stripe` returns the sequence numbers in the
    /// stripe of a number. For this, tombstones of one stripe are cut at each other's ends, so their number at most doubles. O(n log n).
    pub(crate) fn reduced(&self, stripe: impl Fn(SeqNo) -> RangeInclusive<SeqNo>) -> Self {
        let mut by_end: Vec<&Range> = self.ranges.iter().collect();
        by_end.sort_by_key(|range| range.to);
        let (mut begins, mut ends) = (self.ranges.iter().peekable(), by_end.into_iter().peekable());
        // For each tombstone, the number of its parts that cover the following keys: two if two inputs have it.
        let mut open: BTreeMap<SeqNo, usize> = BTreeMap::new();
        // For each stripe, by its first number: its newest tombstone and the position at which that began.
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

    /// The approximate memory of the set in bytes.
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

    /// The number of spans that begin at or before `key`. No span begins at the last of the `places`.
    fn places_upto(&self, key: &[u8]) -> usize {
        self.places[..self.spans()].partition_point(|place| **place <= *key)
    }

    /// The same, fast if the result is near `near`: O(log distance).
    fn places_upto_from(&self, near: usize, key: &[u8]) -> usize {
        let starts = &self.places[..self.spans()];
        let is_upto = |at: usize| starts.get(at).is_some_and(|place| **place <= *key);
        // Starts up to `low` are at or before `key`; those from `high` on are after it.
        let (mut low, mut high, mut step) = (near.min(starts.len()), near.min(starts.len()), 1);
        while is_upto(high) {
            (low, high, step) = (high + 1, (high + step).min(starts.len()), 2 * step);
        }
        while low > 0 && !is_upto(low - 1) {
            (low, high, step) = (low.saturating_sub(step), low - 1, 2 * step);
        }
        low + starts[low..high].partition_point(|place| **place <= *key)
    }

    /// The span that contains `key`, if `upto` spans begin at or before it; `None` if the key lies outside of all ranges.
    fn span_of(&self, key: &[u8], upto: usize) -> Option<usize> {
        let span = upto.checked_sub(1)?;
        is_before_end(key, &self.places[upto]).then_some(span)
    }

    /// The newest sequence number of a span that is <= `seqno`. O(log² n).
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

/// Visits the highest nodes, in a tree over `spans` spans, whose leaves are all in `range`. Together these nodes cover all spans of the range.
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
