//! [`Batch`]: entries that a source decodes at once, so that a scan returns them without a call of each layer for each entry.
//!
//! The layers of a scan merge sources, hide versions and apply bounds. In most parts of a table there is nothing to do for them: the next entries are
//! values of keys with one version, and no other source has a key between them. The source with the smallest key then fills a batch with the entries
//! of such a part, all from one block, and the scan only steps through the batch. At the end of that part, the layers process single entries again.
//! Passing many entries from layer to layer at once is known as vectorised execution, from MonetDB/X100 (Boncz, Zukowski and Nes 2005).
//!
//! B1: all entries of a batch are shown unchanged. Their keys are within the requested bound, and no key of another source is; each entry is a value
//! that does not expire, is visible, and is the newest version of its key in its source.
//! B2: a source that has filled a batch is at the last entry of the batch in forward direction, and before the first one in backward direction. So it
//! continues after the batch as if it had stepped through the entries.

use std::ops::{Bound, Range};

use crate::types::{KeyPrefix, SeqNo, Slice, is_above, is_below};

/// The number of bytes of a key that are copied at once. The next key overwrites the bytes beyond the key's end.
const CHUNK: usize = 16;
/// The maximum number of entries in a batch.
pub(crate) const MOST_ENTRIES: usize = 64;
/// The initial space for keys in a new batch, in bytes.
const LEAST_ROOM: usize = 1 << 10;

/// The direction of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Forward,
    Backward,
}

/// The entries that a scan can show one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// The maximum number of entries.
    pub(crate) count: usize,
    /// Only versions with numbers below this one.
    pub(crate) below: SeqNo,
    /// Only keys within this bound: an upper one in forward direction, a lower one in backward direction.
    pub(crate) bound: Bound<&'a [u8]>,
}

impl<'a> Wanted<'a> {
    /// All versions below this number and within this bound; the iterators choose how many of them are worthwhile.
    pub(crate) fn new(below: SeqNo, bound: Bound<&'a [u8]>) -> Self {
        Self { count: usize::MAX, below, bound }
    }

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
}

/// An entry to be added to a batch.
pub(crate) struct Next<'a> {
    /// The length of the prefix that this key shares with the previous key.
    pub(crate) shared: usize,
    /// The number of further bytes of the key, which are the first ones of `rest`.
    pub(crate) unshared: usize,
    pub(crate) rest: &'a [u8],
    /// The range of the entry's value in the block.
    pub(crate) value: Range<usize>,
    /// Whether the entry is to be shown, unless it has the key of the previous entry.
    pub(crate) is_plain: bool,
    /// Whether the entry may have the same key as the previous entry.
    pub(crate) may_repeat: bool,
}

/// Entries of one block in order; one of them is the current one.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    /// The key before the first entry, then the keys of the entries.
    keys: Keys,
    last_key: Place,
    entries: Vec<BatchEntry>,
    /// The contents of the block.
    block: Slice,
    at: usize,
    /// In backward direction, entries before this index do not belong to the batch.
    first: usize,
}

#[derive(Clone, Copy, Debug)]
struct BatchEntry {
    key: Place,
    value: Place,
}

/// A range of bytes in a block or in a batch, both of which are shorter than 4 GiB.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    start: u32,
    end: u32,
}

impl Place {
    #[inline]
    fn of(range: Range<usize>) -> Self {
        Self { start: range.start as u32, end: range.end as u32 }
    }

    #[inline]
    fn range(self) -> Range<usize> {
        self.start as usize..self.end as usize
    }
}

impl Batch {
    /// The current entry's key.
    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.entries.get(self.at).map_or(&[], |entry| self.key_at(entry))
    }

    /// The current entry's value.
    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.entries.get(self.at).and_then(|entry| self.block.get(entry.value.range())).unwrap_or_default()
    }

    /// The current entry's value, as a slice that shares the block.
    #[inline]
    pub(crate) fn value_slice(&self) -> Slice {
        self.entries.get(self.at).and_then(|entry| self.block.part(entry.value.range())).unwrap_or_default()
    }

    /// The current entry, with its key without `prefix`, if the key fits a chunk and the value can share a block in the cache. This is to be inlined
    /// completely: a copy of slices that were just made would have to wait until their fields are stored.
    #[inline(always)]
    pub(crate) fn short_entry(&self, prefix: &KeyPrefix) -> Option<(Slice, Slice)> {
        let BatchEntry { key, value } = self.entries.get(self.at)?;
        let stored = self.keys.0.get(key.start as usize..)?;
        let before = prefix.len_in(stored);
        let chunk = stored.get(before..)?.first_chunk::<CHUNK>()?;
        let key = Slice::of_chunk(chunk, key.range().len().checked_sub(before)?)?;
        Some((key, self.block.part_to_share(value.start, value.end)?))
    }

    /// Moves to the next entry; false at the last one.
    #[inline]
    pub(crate) fn next(&mut self) -> bool {
        let is_there = self.at + 1 < self.entries.len();
        self.at += usize::from(is_there);
        is_there
    }

    /// Moves to the previous entry; false at the first one.
    #[inline]
    pub(crate) fn prev(&mut self) -> bool {
        let is_there = self.at > self.first;
        self.at -= usize::from(is_there);
        is_there
    }

    #[inline]
    fn key_at(&self, entry: &BatchEntry) -> &[u8] {
        self.keys.0.get(entry.key.range()).unwrap_or_default()
    }
}

/// For the sources, which fill batches.
impl Batch {
    /// Begins a batch after the entry with `key` in a block with these `contents`; `share` makes a slice that shares the contents.
    pub(crate) fn begin(&mut self, key: &[u8], contents: &[u8], share: impl FnOnce() -> Slice) {
        self.entries.clear();
        self.entries.reserve(MOST_ENTRIES);
        (self.at, self.first) = (0, 0);
        self.keys.add((0, 0), 0, key);
        self.last_key = Place::of(0..key.len());
        if !std::ptr::eq(&*self.block, contents) {
            self.block = share();
        }
    }

    /// The number of entries that were added.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Adds up to `count` entries, as long as `next` returns one; `next` gets the length of the last key. In forward direction, stops before an entry
    /// that is not to be shown.
    #[inline(always)]
    pub(crate) fn extend<'a>(
        &mut self,
        direction: Direction,
        count: usize,
        mut next: impl FnMut(usize) -> Option<Next<'a>>,
    ) {
        let (mut start, mut end) = (self.last_key.start as usize, self.last_key.end as usize);
        // As local variables they stay in registers.
        let (mut keys, mut entries) = (std::mem::take(&mut self.keys), std::mem::take(&mut self.entries));
        for _ in 0..count {
            let Some(Next { shared, unshared, rest, value, is_plain, may_repeat }) = next(end - start) else { break };
            let repeats = may_repeat && keys.0.get(start + shared..end) == rest.get(..unshared);
            if !is_plain || repeats {
                match direction {
                    Direction::Forward => break,
                    // Excludes the entry itself, and all before it.
                    Direction::Backward => self.first = entries.len() + 1,
                }
            }
            let key_end = end + shared + unshared;
            if !keys.add_short((start, end), shared, (rest, unshared)) {
                keys.add((start, end), shared, rest.get(..unshared).unwrap_or_default());
            }
            (start, end) = (end, key_end);
            entries.push(BatchEntry { key: Place::of(start..end), value: Place::of(value) });
        }
        (self.keys, self.entries, self.last_key) = (keys, entries, Place::of(start..end));
    }

    /// In backward direction: excludes entries below `key`, and the first of the others, so that one at or above `key` precedes the batch.
    pub(crate) fn leave_out_below(&mut self, key: &[u8]) {
        self.first = self.first.max(1 + self.entries.partition_point(|entry| self.key_at(entry) < key));
    }

    /// The key of entry `at`, and the range of its value.
    pub(crate) fn entry(&self, at: usize) -> Option<(&[u8], Range<usize>)> {
        self.entries.get(at).map(|entry| (self.key_at(entry), entry.value.range()))
    }

    /// Completes a batch in forward direction: excludes entries outside the bound, and moves to the first entry. Returns the index of the last entry.
    pub(crate) fn end_forward(&mut self, bound: Bound<&[u8]>) -> Option<usize> {
        let within = |entry: &BatchEntry| is_below(self.key_at(entry), bound);
        if !self.entries.last().is_some_and(within) {
            let count = self.entries.partition_point(within);
            self.entries.truncate(count);
        }
        self.entries.len().checked_sub(1)
    }

    /// Completes a batch in backward direction in the same way, and moves to the last entry. The first entry is excluded, since newer versions of its
    /// key may precede it. Returns the index of the entry before the batch.
    pub(crate) fn end_backward(&mut self, bound: Bound<&[u8]>) -> Option<usize> {
        let outside = |entry: &BatchEntry| !is_above(self.key_at(entry), bound);
        let first = self.first.max(1);
        let is_cut = self.entries.get(first).is_some_and(outside);
        self.first = if is_cut { self.entries.partition_point(outside) } else { first };
        self.at = self.entries.len().checked_sub(1).filter(|last| self.first <= *last)?;
        self.first.checked_sub(1)
    }
}

/// Keys one after the other, with room for more.
#[derive(Debug, Default)]
struct Keys(Vec<u8>);

impl Keys {
    /// Adds a key of at most two chunks, if there is room. The key consists of `shared` bytes of the previous key, which is at `start..end`, and then
    /// the first `unshared` bytes of `rest`; more bytes than these are copied.
    #[inline(always)]
    fn add_short(&mut self, (start, end): (usize, usize), shared: usize, (rest, unshared): (&[u8], usize)) -> bool {
        let Some(last) = self.0.get(start..).and_then(<[u8]>::first_chunk::<CHUNK>).copied() else { return false };
        let room = self.0.get_mut(end..).and_then(<[u8]>::first_chunk_mut::<{ 2 * CHUNK }>);
        let (Some(room), Some(rest)) = (room, rest.first_chunk::<CHUNK>()) else { return false };
        if shared > CHUNK || unshared > CHUNK {
            return false;
        }
        room[..CHUNK].copy_from_slice(&last);
        room[shared..shared + CHUNK].copy_from_slice(rest);
        true
    }

    /// Adds any key in the same way.
    #[inline(never)]
    fn add(&mut self, (start, end): (usize, usize), shared: usize, unshared: &[u8]) {
        let len = end + shared + unshared.len() + 2 * CHUNK;
        if self.0.len() < len {
            self.0.resize((2 * len).max(LEAST_ROOM), 0);
        }
        self.0.copy_within(start..start + shared, end);
        if let Some(room) = self.0.get_mut(end + shared..).and_then(|room| room.get_mut(..unshared.len())) {
            room.copy_from_slice(unshared);
        }
    }
}
