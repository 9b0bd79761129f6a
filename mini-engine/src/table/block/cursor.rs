//! [`Cursor`]: moves over the entries of a data block, whose layout [`columns`](crate::columns) describes.

use std::ops::Range;

use crate::codec::Malformed;
use crate::columns::{Columns, Decoded, KeyBuffer, Place};
use crate::iter::{Batch, Wanted};
use crate::table::block::frame::Block;
use crate::table::block::lookup::read_ahead;
use crate::types::{Kind, SeqNo, Slice};

/// The number of bytes of a block that a scan reads ahead: the length of common blocks.
const READ_AHEAD: usize = 4 << 10;

/// Moves over the entries of one block, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Cursor {
    block: Block,
    columns: Columns,
    /// The index of the current entry; the number of entries if the cursor is invalid.
    at: usize,
    key: KeyBuffer,
    /// Whether the entry before had the same key.
    repeats: bool,
}

impl Cursor {
    /// A cursor over `block`, which was checked when it was read; invalid until it is positioned.
    pub(crate) fn new(block: Block) -> Decoded<Self> {
        let columns = block.columns()?;
        Ok(Self { block, columns, at: columns.len(), key: KeyBuffer::default(), repeats: false })
    }

    /// Like `new`, for a block that was not checked yet.
    pub(crate) fn checked(block: Block) -> Decoded<Self> {
        let cursor = Self::new(block)?;
        cursor.columns.check(cursor.block.contents())?;
        Ok(cursor)
    }

    /// Moves the cursor to `block`, and makes it invalid. Detects whether the first entry of the block has the cursor's last key.
    pub(crate) fn enter(&mut self, block: Block) -> Decoded {
        let columns = block.columns()?;
        self.at = self.at.min(self.columns.len() - 1);
        self.repeats = columns.has_key(block.contents(), 0, self.key());
        (self.at, self.columns, self.block) = (columns.len(), columns, block);
        self.key.leave_block();
        Ok(())
    }

    /// Lets the processor load all cache lines of the block at once. When a scan enters a block, the processor cannot predict its address.
    pub(crate) fn read_ahead(&self) {
        let contents = self.block.contents();
        read_ahead(contents.get(..READ_AHEAD).unwrap_or(contents));
    }

    #[inline]
    pub(crate) fn valid(&self) -> bool {
        self.at < self.columns.len()
    }

    /// Whether [`Cursor::next`], or the step to the start of the next block, came from an entry with the same key. Undefined after other moves.
    #[inline]
    pub(crate) fn repeats(&self) -> bool {
        self.repeats
    }

    #[inline]
    pub(crate) fn key(&self) -> &[u8] {
        self.key.key(&self.columns, self.block.contents(), self.at)
    }

    #[inline]
    pub(crate) fn seqno(&self) -> SeqNo {
        self.columns.seqno(self.block.contents(), self.at)
    }

    #[inline]
    pub(crate) fn kind(&self) -> Kind {
        self.columns.kind(self.block.contents(), self.at)
    }

    #[inline]
    pub(crate) fn value(&self) -> &[u8] {
        let contents = self.block.contents();
        contents.get(self.columns.value(contents, self.at)).unwrap_or_default()
    }

    /// The value as a slice that shares the block.
    pub(crate) fn value_slice(&self) -> Slice {
        self.block.slice(self.columns.value(self.block.contents(), self.at)).unwrap_or_default()
    }

    /// Moves to entry `at`, or becomes invalid if there is none.
    #[inline]
    fn go(&mut self, at: usize) {
        self.at = at.min(self.columns.len());
        if at < self.columns.len() {
            self.key.move_to(&self.columns, || self.block.contents(), at);
        }
    }

    pub(crate) fn seek_to_first(&mut self) {
        self.go(0);
    }

    pub(crate) fn seek_to_last(&mut self) {
        self.go(self.columns.len() - 1);
    }

    fn find(&self, key: &[u8], seqno: SeqNo) -> Place {
        let contents = self.block.contents();
        read_ahead(self.columns.searched(contents));
        self.columns.find(contents, key, seqno)
    }

    /// Moves to the first entry at or after `(key, seqno)`, or becomes invalid.
    pub(crate) fn seek(&mut self, key: &[u8], seqno: SeqNo) {
        let place = self.find(key, seqno);
        self.go(place.at);
    }

    /// Moves to the last entry at or before `(key, seqno)`, or becomes invalid.
    pub(crate) fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) {
        let Place { at, is_key } = self.find(key, seqno);
        let is_there = is_key && self.columns.seqno(self.block.contents(), at) == seqno;
        self.go(if is_there { at } else { at.wrapping_sub(1) });
    }

    /// Moves to the next entry, or becomes invalid after the last.
    #[inline]
    pub(crate) fn next(&mut self) {
        self.go(self.at + 1);
        self.repeats = self.valid() && self.columns.repeats(self.block.contents(), self.at);
    }

    /// Whether the cursor is at the last entry.
    #[inline]
    pub(crate) fn is_last(&self) -> bool {
        self.at + 1 == self.columns.len()
    }

    /// Moves to the previous entry, or becomes invalid at the first.
    #[inline]
    pub(crate) fn prev(&mut self) {
        self.go(self.at.wrapping_sub(1));
    }

    /// Moves to the entry after the current one, which is not the last, as [`EntryIter::next_batch`](crate::iter::EntryIter::next_batch) does. Returns
    /// whether `batch` was filled.
    #[inline]
    pub(crate) fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        self.fill_from(self.at + 1, batch, wanted) || {
            self.next();
            false
        }
    }

    /// The same, but moves to the first entry, as if from the last entry of the block before.
    #[inline]
    pub(crate) fn first_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        !self.repeats && self.fill_from(0, batch, wanted) || {
            self.seek_to_first();
            false
        }
    }

    /// Fills `batch` from this block, like [`EntryIter::fill`](crate::iter::EntryIter::fill).
    #[inline]
    pub(crate) fn fill(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        self.valid() && self.fill_from(self.at, batch, wanted)
    }

    /// Fills `batch` with the wanted entries from `start` on, and moves to the last of them; returns false, and does not move, if there are none.
    fn fill_from(&mut self, start: usize, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        let entries = wanted.after(&self.columns, self.block.contents(), start);
        self.lend(batch, entries.clone(), start) && {
            self.go(entries.end - 1);
            self.repeats = false;
            true
        }
    }

    /// Makes these entries a batch, if there are any, at entry `at`.
    fn lend(&self, batch: &mut Batch, entries: Range<usize>, at: usize) -> bool {
        let contents = self.block.contents();
        let is_any = !entries.is_empty();
        if is_any {
            let share = || self.block.slice(0..contents.len()).unwrap_or_default();
            batch.set((&self.columns, contents), entries, at, share);
        }
        is_any
    }

    /// Fills `batch` from this block, like [`EntryIter::fill`](crate::iter::EntryIter::fill). Does not move to a key below `from`.
    pub(crate) fn fill_back(&mut self, batch: &mut Batch, wanted: &Wanted<'_>, from: Option<&[u8]>) -> bool {
        let (contents, last) = (self.block.contents(), self.at);
        if !self.valid() {
            return false;
        }
        let mut entries = wanted.before(&self.columns, contents, last);
        if let Some(from) = from {
            let below = self.columns.start_of(contents, 0..last + 1, from, last);
            entries.start = entries.start.max(below + 1);
        }
        self.lend(batch, entries.clone(), last) && {
            self.go(entries.start - 1);
            true
        }
    }

    /// The offset of the current entry's value.
    pub(crate) fn offset(&self) -> usize {
        self.columns.value(self.block.contents(), self.at).start
    }

    /// Checks the block, calls `visit` with the cursor at each entry, and checks that the block is as plain as it says. `wrap` converts an error of
    /// the block. The position is undefined afterwards.
    pub(crate) fn check<E>(
        &mut self,
        wrap: impl Fn(Malformed) -> E,
        mut visit: impl FnMut(&Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.columns.check(self.block.contents()).map_err(&wrap)?;
        for at in 0..self.columns.len() {
            self.go(at);
            visit(self)?;
            let repeats = || at > 0 && self.columns.has_key(self.block.contents(), at - 1, self.key());
            if self.columns.is_plain() && repeats() {
                return Err(wrap(Malformed {
                    offset: self.offset(),
                    expected: "one version of each key in a plain block",
                }));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
