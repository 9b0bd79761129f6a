//! [`Heads`]: finds the place of a key among sorted keys, by heads of fixed width in Eytzinger order.
//!
//! A key's head is the first 8 bytes after the prefix that all the keys share, as a big-endian number; a shorter rest is padded with zeros. Heads
//! have the order of their keys, except that different keys may have equal heads. So one search over integers leaves the few keys with the target's
//! own head, and only those are compared as keys.
//!
//! Eytzinger order is that of a binary heap: the middle first, then the middles of both halves, and so on (Khuong and Morin, "Array Layouts for
//! Comparison-Based Searching", 2017). The first steps of all searches are close together, each step is an addition without a branch, and the eight
//! great-grandchildren of a place are one cache line. In an index too large for the cache, that line is read three steps before it is needed, by a
//! load that nothing waits for: safe code has no other prefetch.
//!
//! If most keys have the same head as a neighbour, heads are not useful: then there are none, and the keys themselves are searched.

use std::ops::Range;

use crate::codec::{head, shared_len};

const LINE_LEN: usize = 8;
/// With this many heads or more, half a megabyte of them, a search reads ahead; with fewer it would not help.
const AHEAD_FROM: usize = 1 << 16;
/// Heads are kept if at least one key in this many has a head that differs from that of the previous key.
const KEYS_PER_HEAD: usize = 4;

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Line([u64; LINE_LEN]);

/// The heads of a sorted list of keys.
#[derive(Debug)]
pub(crate) struct Heads {
    /// The prefix of all keys.
    prefix: Vec<u8>,
    /// Heads by place; place 0 is not used, the root is at 1, the children of `p` at `2p` and `2p + 1`. Empty if heads are not useful.
    lines: Vec<Line>,
    /// The number of keys.
    len: usize,
}

impl Heads {
    /// The heads of `len` keys, which ascend from `key(0)` on.
    pub(crate) fn new<'a>(len: usize, key: impl Fn(usize) -> &'a [u8]) -> Self {
        let prefix = match len {
            0 => Vec::new(),
            _ => key(0).split_at(shared_len(key(0), key(len - 1))).0.to_vec(),
        };
        let head_of = |rank: usize| head(key(rank).get(prefix.len()..).unwrap_or_default());
        let different = (1..len).filter(|&rank| head_of(rank) != head_of(rank - 1)).count() + 1;
        if different < len / KEYS_PER_HEAD {
            return Self { prefix, lines: Vec::new(), len };
        }
        let mut lines = vec![Line([0; LINE_LEN]); len / LINE_LEN + 1];
        for place in 1..=len {
            lines[place / LINE_LEN].0[place % LINE_LEN] = head_of(rank(place, len));
        }
        Self { prefix, lines, len }
    }

    /// The rank of the first key that is not before `key`. `is_before` compares the key of a rank; it is called only for keys whose head is that of
    /// `key`. O(log n).
    pub(crate) fn first_not_before(&self, key: &[u8], is_before: impl Fn(usize) -> bool) -> usize {
        let (start, rest) = key.split_at(key.len().min(self.prefix.len()));
        if start != self.prefix {
            // A key that is a prefix of the common prefix comes before all keys.
            return if *start < *self.prefix { 0 } else { self.len };
        }
        if self.lines.is_empty() {
            return partition_point(0..self.len, is_before);
        }
        let head = head(rest);
        let place = self.first_place(|other| other < head);
        let first = self.rank_of(place);
        // Most often the first key with the head is the only one.
        if place == 0 || self.head_at(place) != head || !is_before(first) {
            return first;
        }
        partition_point(first + 1..self.rank_of(self.first_place(|other| other <= head)), is_before)
    }

    pub(crate) fn memory_len(&self) -> usize {
        self.lines.len() * size_of::<Line>() + self.prefix.len()
    }

    /// The place of the first head that is not `before`; 0 if all are.
    fn first_place(&self, before: impl Fn(u64) -> bool) -> usize {
        let mut place = 1;
        if self.len < AHEAD_FROM {
            while place <= self.len {
                place = 2 * place + usize::from(before(self.head_at(place)));
            }
        } else {
            let mut ahead = 0;
            while place <= self.len {
                ahead |= self.lines.get(place).map_or(0, |line| line.0[0]);
                place = 2 * place + usize::from(before(self.head_at(place)));
            }
            // Keeps the compiler from removing the loads.
            std::hint::black_box(ahead);
        }
        // The way down went right at every head that is before; the last turn to the left was at the answer.
        place >> (place.trailing_ones() + 1)
    }

    fn head_at(&self, place: usize) -> u64 {
        self.lines[place / LINE_LEN].0[place % LINE_LEN]
    }

    /// The rank of the head at `place`; place 0 is after all.
    fn rank_of(&self, place: usize) -> usize {
        if place == 0 { self.len } else { rank(place, self.len) }
    }
}

/// The first number of the range for which `is_before` is false; its end if there is none.
pub(crate) fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}

/// The rank among `len` sorted keys of the one at `place`, 1 to `len`: the number of places before it from left to right.
fn rank(place: usize, len: usize) -> usize {
    let (depth, deepest) = (place.ilog2(), len.ilog2());
    let across = place - (1 << depth);
    // In a tree whose last level is full, in which the leaves have the even ranks ..
    let full = ((2 * across + 1) << (deepest - depth)) - 1;
    // .. without the missing leaves before it.
    let leaves = len + 1 - (1 << deepest);
    full - full.div_ceil(2).saturating_sub(leaves)
}
