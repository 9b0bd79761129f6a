//! [`Heads`]: finds the place of a key among sorted keys, by heads of fixed width.
//!
//! A key's head is the first 8 bytes after the prefix that all the keys share, as a big-endian number; a shorter rest is padded with zeros. Heads
//! have the order of their keys, except that different keys may have equal heads. So one binary search over integers, without a branch on them,
//! leaves the few keys with the target's own head, and only those are compared as keys.
//!
//! If most keys have the same head as a neighbour, heads are not useful: then there are none, and the keys themselves are searched.

use std::ops::Range;

use crate::codec::{head, shared_len, strip_prefix};

/// Heads are kept if at least one key in this many has a head that differs from that of the previous key.
const KEYS_PER_HEAD: usize = 4;

/// The heads of a sorted list of keys.
#[derive(Debug)]
pub(crate) struct Heads {
    /// The prefix of all keys.
    prefix: Vec<u8>,
    /// The head of each key; empty if heads are not useful.
    heads: Box<[u64]>,
    /// The number of keys.
    len: usize,
}

impl Heads {
    /// The heads of `len` keys, which ascend: `key` gives what comes behind `start` in each.
    pub(crate) fn new<'a>(start: &[u8], len: usize, key: impl Fn(usize) -> &'a [u8]) -> Self {
        let shared = match len {
            0 => &[][..],
            _ => key(0).split_at(shared_len(key(0), key(len - 1))).0,
        };
        let prefix = [start, shared].concat();
        let head_of = |rank: usize| head(key(rank).get(shared.len()..).unwrap_or_default());
        let different = (1..len).filter(|&rank| head_of(rank) != head_of(rank - 1)).count() + 1;
        let heads = if different < len / KEYS_PER_HEAD { 0..0 } else { 0..len };
        let heads = heads.map(head_of).collect();
        Self { prefix, heads, len }
    }

    /// The rank of the first key that is not before `key`. `is_before` compares the key of a rank; it is called only for keys whose head is that of
    /// `key`. O(log n).
    #[inline(always)]
    pub(crate) fn first_not_before(&self, key: &[u8], is_before: impl Fn(usize) -> bool) -> usize {
        let Some(rest) = strip_prefix(key, &self.prefix) else {
            // A key that is a prefix of the common prefix comes before all keys.
            return if *key < *self.prefix { 0 } else { self.len };
        };
        let head = head(rest);
        let first = self.heads.partition_point(|other| *other < head);
        // Most often the first key with the head is the only one.
        match self.heads.get(first) {
            Some(other) if *other == head && is_before(first) => self.search(first + 1, head, is_before),
            None if self.heads.is_empty() => partition_point(0..self.len, is_before),
            _ => first,
        }
    }

    /// The rank of the first key from `rank` on that is not before a key with this head.
    #[inline(never)]
    fn search(&self, rank: usize, head: u64, is_before: impl Fn(usize) -> bool) -> usize {
        let same = self.heads.get(rank..).unwrap_or_default().partition_point(|other| *other <= head);
        partition_point(rank..rank + same, is_before)
    }

    pub(crate) fn memory_len(&self) -> usize {
        size_of_val(&*self.heads) + self.prefix.len()
    }
}

/// The first number of the range for which `is_before` is false; its end if there is none.
fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
