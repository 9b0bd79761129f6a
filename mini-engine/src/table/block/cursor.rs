//! Data blocks: sorted entries with prefix compression and restart points.
//!
//! ```text
//! entry    varint shared, varint unshared, varint (seqno * 2 + kind), [varint value length: values only, or all],
//!          the key's unshared bytes, the value
//! block    entries (at least one), offset of each restart u32, number of restarts u32; its top bit: all entries have a value length
//! ```
//!
//! `shared` is the number of leading bytes that a key shares with the previous one; at a restart, every 16 entries, it is 0, so a search can start
//! there. Entries are in strict entry order. An entry that expires is stored as a tombstone with instant and value. So from the first such block of a
//! table on, all entries have a value length. [`Cursor`] decodes entries with [`entry`](crate::table::block::entry), which accepts any bytes.

use std::ops::Range;

use crate::codec::{self, Malformed};
use crate::iter::{Batch, Direction, Stepped, Wanted};
use crate::types::{Kind, SeqNo, Slice};

use crate::table::block::entry::{ALL_HAVE_VALUES, Decoded, Entry, Parts, RESTART_INTERVAL, next_of_batch};
use crate::table::block::frame::Block;
use crate::table::block::lookup::{FoundEntry, LINE, MANY_ENTRIES, find, read_ahead};

/// The maximum memory that a builder keeps for the next block, in bytes.
const KEPT_LEN: usize = 1 << 20;

/// The number of bytes of a block that a scan reads ahead: the length of common blocks.
const READ_AHEAD: usize = 4 << 10;

/// Builds the contents of one block.
#[derive(Debug, Default)]
pub(crate) struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    entries: usize,
    last_key: Vec<u8>,
    /// Whether an entry that expires was added to this block or to an earlier one.
    all_have_values: bool,
}

impl BlockBuilder {
    /// Whether an entry of this kind can be added to the block. To an empty block any entry can be added.
    pub(crate) fn takes(&self, kind: Kind) -> bool {
        kind != Kind::Expiring || self.all_have_values || self.is_empty()
    }

    /// Adds an entry, which must come after all earlier ones, and for which [`takes`](Self::takes) must be true.
    pub(crate) fn add(&mut self, key: &[u8], seqno: SeqNo, kind: Kind, value: &[u8]) {
        self.all_have_values |= kind == Kind::Expiring;
        // Includes room for the end of the block; otherwise a long value would be copied into memory of twice its size.
        self.bytes.reserve(entry_len_bound(key, value) + 4 * (self.restarts.len() + 2));
        let shared = if self.entries.is_multiple_of(RESTART_INTERVAL) {
            self.restarts.push(self.bytes.len() as u32);
            0
        } else {
            codec::shared_len(&self.last_key, key)
        };
        let unshared = &key[shared..];
        codec::put_varint(&mut self.bytes, shared as u64);
        codec::put_varint(&mut self.bytes, unshared.len() as u64);
        codec::put_varint(&mut self.bytes, seqno << 1 | u64::from(kind == Kind::Value));
        if kind == Kind::Value || self.all_have_values {
            codec::put_varint(&mut self.bytes, value.len() as u64);
        }
        self.bytes.extend_from_slice(unshared);
        if kind != Kind::Tombstone {
            self.bytes.extend_from_slice(value);
        }
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(unshared);
        self.entries += 1;
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries == 0
    }

    /// The length of the contents so far, in bytes.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len() + 4 * self.restarts.len() + 4
    }

    /// Passes the finished contents to `take` and starts the next block in the same memory.
    pub(crate) fn finish<T>(&mut self, take: impl FnOnce(&[u8]) -> T) -> T {
        for &restart in &self.restarts {
            codec::put_u32(&mut self.bytes, restart);
        }
        let flag = if self.all_have_values { ALL_HAVE_VALUES } else { 0 };
        codec::put_u32(&mut self.bytes, self.restarts.len() as u32 | flag);
        let taken = take(&self.bytes);
        self.bytes.clear();
        self.bytes.shrink_to(KEPT_LEN);
        self.restarts.clear();
        self.entries = 0;
        taken
    }
}

/// The maximum number of bytes that an entry adds to a block.
pub(crate) fn entry_len_bound(key: &[u8], value: &[u8]) -> usize {
    // Three varints of at most 3 + 3 + 9 bytes, one of 5, and a restart.
    key.len() + value.len() + 24
}

/// Moves over the entries of one block, in both directions. After an error its position is undefined: drop it or seek.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    block: Block,
    parts: Parts,
    at: Current,
    behind: Behind,
}

/// The entries that a backward move has decoded before the current one; the last one is on top. So moving backward through a block decodes each entry
/// once.
#[derive(Clone, Debug, Default)]
struct Behind {
    entries: Vec<Current>,
    /// Entries that are no longer used, whose memory is reused.
    free: Vec<Current>,
}

impl Behind {
    fn push(&mut self, at: &Current) {
        // More entries between two restarts exist only in a block with false restarts, whose keys must not fill the memory.
        if self.entries.len() == RESTART_INTERVAL {
            self.clear();
        }
        let mut kept = self.free.pop().unwrap_or_default();
        kept.clone_from(at);
        self.entries.push(kept);
    }

    /// Replaces `at` by the previous entry of the block, if that is stored here.
    fn take_before(&mut self, at: &mut Current) -> bool {
        let Some(mut kept) = self.entries.pop_if(|kept| kept.entry.end == at.entry.start) else { return false };
        std::mem::swap(&mut kept, at);
        self.free.push(kept);
        true
    }

    fn clear(&mut self) {
        self.free.append(&mut self.entries);
    }
}

/// The current entry.
#[derive(Debug)]
struct Current {
    /// The range of the entry's bytes; empty if the cursor is invalid.
    entry: Range<usize>,
    key: Vec<u8>,
    seqno: SeqNo,
    kind: Kind,
    value: Range<usize>,
    /// Whether the entry before had the same key.
    repeats: bool,
}

impl Default for Current {
    fn default() -> Self {
        Self { entry: 0..0, key: Vec::new(), seqno: 0, kind: Kind::Tombstone, value: 0..0, repeats: false }
    }
}

impl Clone for Current {
    fn clone(&self) -> Self {
        let mut clone = Self::default();
        clone.clone_from(self);
        clone
    }

    /// Reuses the memory of the key.
    fn clone_from(&mut self, other: &Self) {
        let Self { entry, key, seqno, kind, value, repeats } = other;
        self.key.clone_from(key);
        (self.entry, self.value) = (entry.clone(), value.clone());
        (self.seqno, self.kind, self.repeats) = (*seqno, *kind, *repeats);
    }
}

impl Current {
    /// Makes the entry that was read at `offset` the current one; its key shares bytes with the present key.
    #[inline]
    fn take(&mut self, offset: usize, read: &Entry<'_>) {
        // A restart stores the whole key, even if the previous entry has the same one.
        self.repeats = read.key_len() == self.key.len()
            && (read.unshared.is_empty() || read.shared == 0 && self.key == read.unshared);
        if !self.repeats {
            self.key.truncate(read.shared);
            self.key.extend_from_slice(read.unshared);
        }
        (self.seqno, self.kind) = (read.seqno, read.kind);
        (self.value, self.entry) = (read.value_range(), offset..read.end);
    }
}

impl Cursor {
    /// A cursor over `block`, invalid until it is positioned.
    pub(crate) fn new(block: Block) -> Decoded<Self> {
        let parts = Parts::of(block.contents())?;
        Ok(Self { block, parts, at: Current::default(), behind: Behind::default() })
    }

    /// Moves the cursor to `block`, and makes it invalid. Keeps its key, to detect that the first entry of the block repeats the key.
    pub(crate) fn enter(&mut self, block: Block) -> Decoded {
        self.parts = Parts::of(block.contents())?;
        (self.at.entry, self.block) = (0..0, block);
        self.behind.clear();
        Ok(())
    }

    /// Lets the processor load all cache lines of the block at once. When a scan enters a block, the processor cannot predict its address, and the
    /// address of each entry is known only after the entry before it was decoded.
    pub(crate) fn read_ahead(&self) {
        let contents = self.block.contents();
        read_ahead(contents.get(..READ_AHEAD).unwrap_or(contents).chunks(LINE));
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        !self.at.entry.is_empty()
    }

    /// Whether [`Cursor::next`], or the step to the start of the next block, came from an entry with the same key. Undefined after other moves.
    #[inline]
    pub(crate) fn repeats(&self) -> bool {
        self.at.repeats
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        &self.at.key
    }

    #[inline]
    pub(crate) fn seqno(&self) -> SeqNo {
        self.at.seqno
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.at.kind
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        self.block.contents().get(self.at.value.clone()).unwrap_or_default()
    }

    /// The value as a slice that shares the block.
    pub(crate) fn value_slice(&self) -> Slice {
        // The range was checked when it was read; that of an invalid cursor is empty.
        self.block.slice(self.at.value.clone()).unwrap_or_else(|| Slice::from(self.value()))
    }

    pub(crate) fn seek_to_first(&mut self) -> Decoded {
        self.jump(0)
    }

    pub(crate) fn seek_to_last(&mut self) -> Decoded {
        let from = self.restart(self.parts.restarts - 1)?;
        self.scan_to_last_before(from, self.parts.entries_end)
    }

    /// Moves to the first entry at or after `(key, seqno)`, or becomes invalid.
    pub(crate) fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Decoded {
        self.find(key, seqno).map(drop)
    }

    /// Like [`Cursor::seek`]. Returns whether the cursor is at a version of `key`.
    fn find(&mut self, key: &[u8], seqno: SeqNo) -> Decoded<bool> {
        let Self { block, parts, .. } = self;
        self.at.entry = 0..0;
        let (contents, heads) = block.parts();
        let Some(FoundEntry { offset, entry, is_key }) = find(parts, contents, heads, (key, seqno), MANY_ENTRIES)?
        else {
            return Ok(false);
        };
        self.at.key.clear();
        self.at.key.extend_from_slice(key.split_at(entry.shared).0);
        self.at.take(offset, &entry);
        Ok(is_key)
    }

    /// Moves to the last entry at or before `(key, seqno)`, or becomes invalid.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Decoded {
        let is_key = self.find(key, seqno)?;
        if !self.valid() {
            self.seek_to_last()
        } else if is_key && self.at.seqno == seqno {
            Ok(())
        } else {
            self.prev()
        }
    }

    /// Moves to the next entry, or becomes invalid after the last.
    #[inline]
    pub(crate) fn next(&mut self) -> Decoded {
        self.read_entry(self.at.entry.end, self.at.key.len())
    }

    /// Like `next`, if the next entry is in this block and has the common form; otherwise the cursor does not move.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<Stepped> {
        let offset = self.at.entry.end;
        if offset == 0 {
            return None;
        }
        let read = self.parts.short_entry(self.block.contents(), offset, self.at.key.len())?;
        self.at.take(offset, &read);
        Some(Stepped { seqno: self.at.seqno, kind: self.at.kind, repeats: self.at.repeats })
    }

    /// Moves to the previous entry, or becomes invalid at the first. Costs a scan of at most 16 entries from a restart, which is shared by the moves
    /// to all of them.
    pub(crate) fn prev(&mut self) -> Decoded {
        if self.behind.take_before(&mut self.at) {
            return Ok(());
        }
        let current = self.at.entry.start;
        match self.restart_before(current)? {
            Some(restart) => self.scan_to_last_before(restart, current),
            None => {
                self.at.entry = 0..0;
                Ok(())
            }
        }
    }

    /// The last restart before the entry at `offset`; `None` if the entry is the first.
    fn restart_before(&self, offset: usize) -> Decoded<Option<usize>> {
        let (mut low, mut high) = (0, self.parts.restarts);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.restart(middle)? < offset { low = middle + 1 } else { high = middle }
        }
        low.checked_sub(1).map(|restart| self.restart(restart)).transpose()
    }

    /// Fills `batch` from this block, like [`EntryIter::fill`](crate::iter::EntryIter::fill).
    pub(crate) fn fill(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        let (contents, start) = (self.block.contents(), self.at.entry.end);
        if start == 0 {
            return false;
        }
        batch.begin(&self.at.key, contents, || self.block.slice(0..contents.len()).unwrap_or_default());
        let mut rest = contents.get(start..self.parts.entries_end).unwrap_or_default();
        batch.extend(Direction::Forward, wanted.count, |last_len| {
            let at = (rest, self.parts.entries_end - rest.len());
            let (next, len) = next_of_batch(at, last_len, wanted.below, self.parts.all_have_values)?;
            rest = rest.get(len..)?;
            Some(next)
        });
        let last = batch.end_forward(wanted.bound);
        last.is_some_and(|last| self.go_to_entry(batch, last, start))
    }

    /// Fills `batch` from this block, like [`EntryIter::fill_back`](crate::iter::EntryIter::fill_back): decodes the entries from the last restart
    /// before the current one on. Does not move to a key below `from`.
    pub(crate) fn fill_back(&mut self, batch: &mut Batch, wanted: &Wanted<'_>, from: Option<&[u8]>) -> bool {
        if self.at.kind != Kind::Value || self.at.seqno >= wanted.below {
            return false;
        }
        let (contents, current) = (self.block.contents(), self.at.entry.clone());
        let Ok(Some(restart)) = self.restart_before(current.start) else { return false };
        batch.begin(&[], contents, || self.block.slice(0..contents.len()).unwrap_or_default());
        let mut rest = contents.get(restart..current.end).unwrap_or_default();
        batch.extend(Direction::Backward, 2 * RESTART_INTERVAL, |last_len| {
            let at = (rest, current.end - rest.len());
            let (next, len) = next_of_batch(at, last_len, wanted.below, self.parts.all_have_values)?;
            rest = rest.get(len..)?;
            Some(next)
        });
        // The next entry has another form, or the block has false restarts.
        if !rest.is_empty() {
            return false;
        }
        if let Some(from) = from {
            batch.leave_out_below(from);
        }
        let before = batch.end_backward(wanted.bound);
        before.is_some_and(|before| self.go_to_entry(batch, before, restart))
    }

    /// Makes entry `at` of the batch the current one; the batch begins with the entry at `start`.
    fn go_to_entry(&mut self, batch: &Batch, at: usize, start: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| batch.entry(before));
        let offset = before.map_or(start, |(_, value)| value.end);
        let Some((key, value)) = batch.entry(at) else { return false };
        let Some(entry) = self.parts.short_entry(self.block.contents(), offset, key.len()) else { return false };
        self.at.key.clear();
        self.at.key.extend_from_slice(key);
        (self.at.seqno, self.at.kind, self.at.repeats) = (entry.seqno, entry.kind, false);
        (self.at.entry, self.at.value) = (offset..value.end, value);
        true
    }

    /// The offset of the current entry.
    pub(crate) fn offset(&self) -> usize {
        self.at.entry.start
    }

    /// Reads all entries, calls `visit` with the cursor at each, and checks that exactly every 16th entry is a restart, which can be decoded by
    /// itself. `wrap` converts an error of the block. The position is undefined afterwards.
    pub(crate) fn check<E>(
        &mut self,
        wrap: impl Fn(Malformed) -> E,
        mut visit: impl FnMut(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        let (mut entries, mut starts) = (0usize, Vec::new());
        self.seek_to_first().map_err(&wrap)?;
        while self.valid() {
            if entries.is_multiple_of(RESTART_INTERVAL) {
                starts.push(self.offset());
            }
            visit(self)?;
            entries += 1;
            self.next().map_err(&wrap)?;
        }
        self.check_restarts(&starts).map_err(wrap)
    }

    fn check_restarts(&mut self, starts: &[usize]) -> Decoded {
        let table = self.parts.entries_end;
        let misplaced = |index: usize| Malformed {
            offset: table + 4 * index,
            expected: "a restart at every 16th entry and no other",
        };
        if self.parts.restarts != starts.len() {
            return Err(misplaced(self.parts.restarts));
        }
        for (index, &start) in starts.iter().enumerate() {
            if self.restart(index)? != start {
                return Err(misplaced(index));
            }
            self.jump(start)?;
        }
        Ok(())
    }

    fn restart(&self, index: usize) -> Decoded<usize> {
        self.parts.restart(self.block.contents(), index)
    }

    /// Moves to the entry at the restart `offset`.
    fn jump(&mut self, offset: usize) -> Decoded {
        self.read_entry(offset, 0)
    }

    /// Moves to the last entry that starts at or after the restart `from` and before `end`.
    fn scan_to_last_before(&mut self, from: usize, end: usize) -> Decoded {
        self.behind.clear();
        self.jump(from)?;
        while self.valid() && self.at.entry.end < end {
            self.behind.push(&self.at);
            self.next()?;
        }
        Ok(())
    }

    /// Decodes the entry at `offset`, which may share up to `most` bytes with the present key; becomes invalid at the end.
    #[inline]
    fn read_entry(&mut self, offset: usize, most: usize) -> Decoded {
        self.at.entry = 0..0;
        if offset >= self.parts.entries_end {
            return Ok(());
        }
        let read = self.parts.entry(self.block.contents(), offset, most)?;
        self.at.take(offset, &read);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
