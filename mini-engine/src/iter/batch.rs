//! [`Batch`]: entries of one block, so that a scan returns them without a call of each layer for each entry.
//!
//! The layers of a scan merge sources, hide versions and apply bounds. In most parts of a table there is nothing to do for them: the next entries are
//! values of keys with one version, and no other source has a key between them. The source with the smallest key then lends the scan such a part of a
//! block as a batch, and the scan only steps through the batch. At the end of that part, the layers process single entries again.
//! Passing many entries from layer to layer at once is known as vectorised execution, from MonetDB/X100 (Boncz, Zukowski and Nes 2005).
//!
//! B1: all entries of a batch are shown unchanged. Their keys are within the requested bound, and no key of another source is; each entry is a value
//! that does not expire, is visible, and is the newest version of its key in its source.
//! B2: a source that has filled a batch is at the last entry of the batch in forward direction, and before the first one in backward direction. So it
//! continues after the batch as if it had stepped through the entries.

use std::cmp::Ordering;
use std::ops::{Bound, Range};

use crate::columns::{Columns, KeyBuffer};
use crate::types::{KeyPrefix, SeqNo, Slice};

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// The entries that a scan can show one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Only versions with numbers below this one.
    pub(crate) below: SeqNo,
    /// Only keys within this bound: an upper one in forward direction, a lower one in backward direction.
    pub(crate) bound: Bound<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    /// The same, for a source whose newest version is `newest`: if all of its versions are below the limit, their numbers need not be read.
    pub(crate) fn of_versions_to(self, newest: SeqNo) -> Self {
        Self { below: if newest < self.below { SeqNo::MAX } else { self.below }, ..self }
    }

    /// The same, for a forward scan, with keys below this one.
    pub(crate) fn below(self, key: &'a [u8]) -> Self {
        let is_nearer = match self.bound {
            Bound::Unbounded => true,
            Bound::Included(bound) | Bound::Excluded(bound) => key <= bound,
        };
        Self { bound: if is_nearer { Bound::Excluded(key) } else { self.bound }, ..self }
    }

    /// The same, for a backward scan, with keys above this one.
    pub(crate) fn above(self, key: &'a [u8]) -> Self {
        let is_nearer = match self.bound {
            Bound::Unbounded => true,
            Bound::Included(bound) | Bound::Excluded(bound) => key >= bound,
        };
        Self { bound: if is_nearer { Bound::Excluded(key) } else { self.bound }, ..self }
    }

    /// The wanted entries from entry `start` of a block on, for a forward scan.
    pub(crate) fn after(&self, columns: &Columns, contents: &[u8], start: usize) -> Range<usize> {
        let end = columns.shown_after(contents, start, self.below);
        let until = |key, holds: fn(Ordering) -> bool| columns.partition(contents, start..end, key, holds);
        start..match self.bound {
            Bound::Unbounded => end,
            Bound::Included(key) => until(key, Ordering::is_le),
            Bound::Excluded(key) => until(key, Ordering::is_lt),
        }
    }

    /// The wanted entries up to entry `last` of a block, for a backward scan. The first entry of the block is excluded, since newer versions of its key
    /// may precede it.
    pub(crate) fn before(&self, columns: &Columns, contents: &[u8], last: usize) -> Range<usize> {
        let (start, end) = (columns.shown_before(contents, last, self.below).max(1), last + 1);
        let from = |key, holds: fn(Ordering) -> bool| columns.partition(contents, start..end, key, holds);
        let start = match self.bound {
            Bound::Unbounded => start,
            Bound::Included(key) => from(key, Ordering::is_lt),
            Bound::Excluded(key) => from(key, Ordering::is_le),
        };
        start..end
    }
}

/// Entries of one block in order; one of them is the current one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The contents of the block.
    block: Slice,
    columns: Columns,
    entries: Range<usize>,
    at: usize,
    key: KeyBuffer,
}

impl Batch {
    /// Makes these entries of a block the batch, and `at` the current one; `share` makes a slice that shares the contents.
    pub(crate) fn set(
        &mut self,
        (columns, contents): (&Columns, &[u8]),
        entries: Range<usize>,
        at: usize,
        share: impl FnOnce() -> Slice,
    ) {
        if !std::ptr::eq(&*self.block, contents) {
            self.block = share();
            self.columns = *columns;
            self.key.leave_block();
        }
        (self.entries, self.at) = (entries, at);
        self.key.move_to(columns, contents, at);
    }

    /// The current entry's key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.key()
    }

    /// The current entry's value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.block.get(self.columns.value(&self.block, self.at)).unwrap_or_default()
    }

    /// The current entry's value, as a slice that shares the block.
    #[inline]
    pub(crate) fn value_slice(&self) -> Slice {
        self.block.part(self.columns.value(&self.block, self.at)).unwrap_or_default()
    }

    /// The current entry, with its key without `prefix`, if the key fits a chunk and the value can share a block in the cache. This is to be inlined
    /// completely: a copy of slices that were just made would have to wait until their fields are stored.
    #[inline(always)]
    pub(crate) fn short_entry(&self, prefix: &KeyPrefix) -> Option<(Slice, Slice)> {
        let (chunk, len) = self.key.chunk(prefix.len_in(self.key.key()))?;
        let value = self.columns.value(&self.block, self.at);
        Some((Slice::of_chunk(chunk, len)?, self.block.part_to_share(value.start as u32, value.end as u32)?))
    }

    /// Moves to the next entry; false at the last one.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        self.at + 1 < self.entries.end && self.go(self.at + 1)
    }

    /// Moves to the previous entry; false at the first one.
    #[inline]
    pub(crate) fn prev(&mut self) -> bool {
        self.at > self.entries.start && self.go(self.at - 1)
    }

    #[inline]
    fn go(&mut self, at: usize) -> bool {
        self.at = at;
        self.key.move_to(&self.columns, &self.block, at);
        true
    }
}
