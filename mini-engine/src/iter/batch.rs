//! [`Batch`]: entries of one block, so that a scan returns them without a call of each layer for each entry.
//!
//! The layers of a scan merge sources, hide versions and apply bounds. In most parts of a table there is nothing to do for them: the next entries are
//! values of keys with one version, and no other source has a key between them. The source with the smallest key then lends the scan such a part of a
//! block as a batch, and the scan only steps through the batch. At the end of that part, the layers are asked for the next one; single entries are
//! processed only where there is none.
//! Passing many entries from layer to layer at once is known as vectorised execution, from MonetDB/X100 (Boncz, Zukowski and Nes 2005).
//!
//! B1: all entries of a batch are shown unchanged. Their keys are within the requested bound, and no key of another source is; each entry is a value
//! that does not expire, is visible, and is the newest version of its key in its source.
//! B2: a source that has filled a batch is at the last entry of the batch in forward direction, and before the first one in backward direction. So it
//! continues after the batch as if it had stepped through the entries.

use std::ops::{Bound, Range};
use std::sync::Arc;

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
    /// Whether the bound is rather near than behind the block: then it is searched for from the start of the batch, otherwise from the end of the block.
    pub(crate) is_near: bool,
}

impl<'a> Wanted<'a> {
    /// No entries.
    pub(crate) const NONE: Self = Self { below: 0, bound: Bound::Unbounded, is_near: false };

    /// The same, for a source whose newest version is `newest`: if all of its versions are below the limit, their numbers need not be read.
    pub(crate) fn of_versions_to(self, newest: SeqNo) -> Self {
        Self { below: if newest < self.below { SeqNo::MAX } else { self.below }, ..self }
    }

    /// The same with keys short of this one, in a scan of this direction.
    pub(crate) fn short_of(self, direction: Direction, key: &'a [u8]) -> Self {
        let is_nearer = match (self.bound, direction) {
            (Bound::Unbounded, _) => true,
            (Bound::Included(bound) | Bound::Excluded(bound), Direction::Forward) => key <= bound,
            (Bound::Included(bound) | Bound::Excluded(bound), Direction::Backward) => key >= bound,
        };
        Self { bound: if is_nearer { Bound::Excluded(key) } else { self.bound }, is_near: true, ..self }
    }

    /// The wanted entries from entry `start` of a block on, for a forward scan.
    pub(crate) fn after(&self, columns: &Columns, contents: &[u8], start: usize) -> Range<usize> {
        if self.below == 0 {
            return start..start;
        }
        let within = start..columns.len();
        let near = if self.is_near { start } else { columns.len() - 1 };
        let end = match self.bound {
            Bound::Unbounded => columns.len(),
            Bound::Included(key) => columns.end_of(contents, within, key, near),
            Bound::Excluded(key) => columns.start_of(contents, within, key, near),
        };
        columns.shown_from_start(contents, start..end, self.below)
    }

    /// The wanted entries up to entry `last` of a block, for a backward scan. The first entry of the block is excluded, since newer versions of its key
    /// may precede it.
    pub(crate) fn before(&self, columns: &Columns, contents: &[u8], last: usize) -> Range<usize> {
        let within = 1..last + 1;
        if self.below == 0 {
            return within.end..within.end;
        }
        let near = if self.is_near { last } else { within.start };
        let start = match self.bound {
            Bound::Unbounded => within.start,
            Bound::Included(key) => columns.start_of(contents, within.clone(), key, near),
            Bound::Excluded(key) => columns.end_of(contents, within.clone(), key, near),
        };
        columns.shown_to_end(contents, start..within.end, self.below)
    }
}

/// A block that a batch shares.
#[derive(Debug)]
enum SharedBlock {
    /// In the cache. The bytes may go on after the contents.
    Cached(Arc<[u8]>),
    /// In a mapped file.
    Other(Slice),
}

impl SharedBlock {
    fn new(contents: Slice) -> Self {
        contents.shared_from_start().cloned().map_or(Self::Other(contents), Self::Cached)
    }

    #[inline(always)]
    fn contents(&self) -> &[u8] {
        match self {
            Self::Cached(bytes) => bytes,
            Self::Other(slice) => slice,
        }
    }

    fn slice(&self, range: Range<usize>) -> Slice {
        match self {
            Self::Cached(bytes) => Slice::view(bytes, range),
            Self::Other(slice) => slice.part(range),
        }
        .unwrap_or_default()
    }
}

impl Default for SharedBlock {
    fn default() -> Self {
        Self::Other(Slice::default())
    }
}

/// Entries of one block in order; one of them is the current one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    block: SharedBlock,
    columns: Columns,
    entries: Range<usize>,
    /// The index of the current entry, and its key.
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
        if !std::ptr::eq(self.block.contents().as_ptr(), contents.as_ptr()) {
            self.block = SharedBlock::new(share());
            self.columns = *columns;
            self.key.leave_block();
        }
        self.entries = entries;
        self.go(at);
    }

    /// The current entry's key.
    #[inline(always)]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.key(&self.columns, self.block.contents(), self.at)
    }

    /// The range in the contents of the current entry's value.
    #[inline(always)]
    fn value_range(&self) -> Range<usize> {
        self.columns.value(self.block.contents(), self.at)
    }

    /// The current entry's value.
    #[inline(always)]
    pub(crate) fn value(&self) -> &[u8] {
        self.block.contents().get(self.value_range()).unwrap_or_default()
    }

    /// The current entry's value, as a slice that shares the block.
    #[inline]
    pub(crate) fn value_slice(&self) -> Slice {
        self.block.slice(self.value_range())
    }

    /// The current entry, with its key without `prefix`, if the key fits a chunk and the value can share a cached block. This is to be inlined
    /// completely: a copy of slices that were just made would have to wait until their fields are stored.
    #[inline(always)]
    pub(crate) fn short_entry(&self, prefix: &KeyPrefix) -> Option<(Slice, Slice)> {
        let SharedBlock::Cached(bytes) = &self.block else { return None };
        let range = self.columns.value(bytes, self.at);
        if Slice::is_inline(range.len()) {
            return None;
        }
        let (chunk, len) = self.key.chunk((&self.columns, bytes, self.at), prefix)?;
        let value = Slice::long_view(bytes, range.start as u32, range.end as u32)?;
        Some((Slice::of_chunk(chunk, len), value))
    }

    /// Moves to the next entry; false at the last one.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> bool {
        self.at + 1 < self.entries.end && self.go(self.at + 1)
    }

    /// Moves to the previous entry; false at the first one.
    #[inline(always)]
    pub(crate) fn prev(&mut self) -> bool {
        self.at > self.entries.start && self.go(self.at - 1)
    }

    #[inline(always)]
    fn go(&mut self, at: usize) -> bool {
        self.at = at;
        self.key.move_to(&self.columns, || self.block.contents(), at);
        true
    }
}
