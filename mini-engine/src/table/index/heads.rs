//! [`Heads`]: finds the position of a key among sorted keys, using heads of fixed width.
//!
//! A key's head is the first 8 bytes after the prefix that all keys share, as a big-endian number; if there are fewer bytes, they are padded with
//! zeros. Heads are ordered like their keys, except that different keys may have equal heads. So one binary search over integers, without branches on
//! them, leaves the few keys with the same head as the target, and only those are compared as keys.
//!
//! If most keys have the same head as a neighbour, heads are not useful: then none are kept, and the keys themselves are searched.

use std::ops::Range;

use crate::codec::{head, shared_len, strip_prefix};

/// Heads are kept if at least one in this many keys has a different head than the previous key.
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
    /// The heads of `len` ascending keys; `key` returns the part of each after `start`.
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

    /// The index of the first key at or after `key`. `is_before` compares the key at an index; it is called only for keys that have the same head as
    /// `key`. O(log n).
    #[inline(always)]
    pub(crate) fn first_not_before(&self, key: &[u8], is_before: impl Fn(usize) -> bool) -> usize {
        let Some(rest) = strip_prefix(key, &self.prefix) else {
            // A key that is a prefix of the common prefix is before all keys.
            return if *key < *self.prefix { 0 } else { self.len };
        };
        let head = head(rest);
        let first = self.heads.partition_point(|other| *other < head);
        // Usually only one key has this head.
        match self.heads.get(first) {
            Some(other) if *other == head && is_before(first) => self.search(first + 1, head, is_before),
            None if self.heads.is_empty() => partition_point(0..self.len, is_before),
            _ => first,
        }
    }

    /// The index of the first key, from `rank` on, that is at or after the target, whose head is `head`.
    #[inline(never)]
    fn search(&self, rank: usize, head: u64, is_before: impl Fn(usize) -> bool) -> usize {
        let same = self.heads.get(rank..).unwrap_or_default().partition_point(|other| *other <= head);
        partition_point(rank..rank + same, is_before)
    }

    pub(crate) fn memory_len(&self) -> usize {
        size_of_val(&*self.heads) + self.prefix.len()
    }
}

/// The first number in the range for which `is_before` is false; the end of the range if there is none.
fn partition_point(range: Range<usize>, is_before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low + (high - low) / 2;
        if is_before(middle) { low = middle + 1 } else { high = middle }
    }
    low
}
