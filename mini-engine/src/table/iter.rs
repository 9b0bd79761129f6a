//! [`TableIter`]: the entries of a table in order, block by block.
//!
//! Of a narrowed table they are those from its bound on. A seek below the bound goes to the bound, which is the only way in from
//! below; a step back, or a seek to the last entry at or before a key, that leads below it leaves the iterator invalid. Blocks that end
//! below the bound are never read, so that damage to them does no harm.

use std::sync::Arc;

use super::block::Cursor;
use super::format::Handle;
use super::readahead::{CacheUse, ReadAhead};
use super::reader::Table;
use super::root::Root;
use crate::codec::Malformed;
use crate::error::Result;
use crate::iter::EntryIter;
use crate::types::{Kind, MAX_SEQNO, SeqNo, Slice};

/// Iterates over a table, which it keeps open. Holds one block, and in a scan those that were read ahead.
#[derive(Debug)]
pub(crate) struct TableIter {
    table: Arc<Table>,
    /// Absent before the first move. With it no move needs the file to be open, unless it reads a block.
    root: Option<Arc<Root>>,
    /// The first key that counts, if the table was narrowed.
    from: Option<Slice>,
    ahead: ReadAhead,
    /// The block that the cursor is in.
    index: usize,
    /// Absent, or invalid, when the iterator is invalid.
    cursor: Option<Cursor>,
}

#[cfg(test)]
impl Table {
    /// Iterates over all entries, through the cache.
    pub(crate) fn iter(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), None, CacheUse::Fill)
    }

    /// Iterates over all entries without putting blocks into the cache: for merges, which read each block once.
    pub(crate) fn iter_uncached(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), None, CacheUse::Bypass)
    }
}

impl TableIter {
    pub(super) fn new(table: Arc<Table>, from: Option<Slice>, cache: CacheUse) -> Self {
        Self { table, root: None, from, ahead: ReadAhead::new(cache), index: 0, cursor: None }
    }

    fn root(&mut self) -> Result<Arc<Root>> {
        let root = match self.root.take() {
            Some(root) => root,
            None => self.table.root()?,
        };
        Ok(self.root.insert(root).clone())
    }

    /// Loads block `index` and positions in it by `place`; past either end the iterator becomes invalid.
    fn enter(&mut self, index: usize, place: impl FnOnce(&mut Cursor) -> Result<(), Malformed>) -> Result<()> {
        let loaded = self.cursor.take();
        let root = self.root()?;
        let Some(handle) = root.index.handle(index) else { return Ok(()) };
        let mut cursor = match loaded {
            Some(cursor) if index == self.index => cursor,
            Some(_) | None => self.table.cursor(handle, self.ahead.block(&self.table, &root, index)?)?,
        };
        self.index = index;
        self.place(&mut cursor, handle, place)?;
        self.cursor = Some(cursor);
        Ok(())
    }

    fn place(
        &self,
        cursor: &mut Cursor,
        handle: Handle,
        place: impl FnOnce(&mut Cursor) -> Result<(), Malformed>,
    ) -> Result<()> {
        place(cursor).map_err(|malformed| self.table.malformed(handle, malformed))
    }

    /// Moves within the block by `step`; whether the iterator is still valid there. On an error it is not.
    fn step(&mut self, step: impl FnOnce(&mut Cursor) -> Result<(), Malformed>) -> Result<bool> {
        let Some(mut cursor) = self.cursor.take() else { return Ok(false) };
        let handle = self.root.as_ref().and_then(|root| root.index.handle(self.index)).unwrap_or_default();
        self.place(&mut cursor, handle, step)?;
        let valid = cursor.valid();
        self.cursor = Some(cursor);
        Ok(valid)
    }

    /// The position after the last entry of the block is the first of the next. Blocks have entries, so one step does.
    fn enter_next_block(&mut self) -> Result<()> {
        self.enter(self.index + 1, Cursor::seek_to_first)
    }

    /// Becomes invalid below the bound.
    fn stop_below_bound(&mut self) {
        if self.from.as_ref().is_some_and(|from| self.valid() && *self.key() < **from) {
            self.cursor = None;
        }
    }

    /// As [`EntryIter::seek`], whatever the bound.
    fn seek_unbounded(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let index = self.root()?.index.find(key, seqno);
        self.enter(index, |cursor| cursor.seek(key, seqno))?;
        // The target may lie between the block's last entry and its fence.
        if self.cursor.is_some() && !self.valid() {
            self.enter_next_block()?;
        }
        Ok(())
    }

    fn enter_block_before(&mut self) -> Result<()> {
        let first = match self.from.clone() {
            Some(from) => self.root()?.index.find(&from, MAX_SEQNO),
            None => 0,
        };
        match self.index.checked_sub(1).filter(|before| *before >= first) {
            Some(before) => self.enter(before, Cursor::seek_to_last),
            None => {
                self.cursor = None;
                Ok(())
            }
        }
    }
}

impl EntryIter for TableIter {
    fn valid(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::valid)
    }

    fn key(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::key)
    }

    fn seqno(&self) -> SeqNo {
        self.cursor.as_ref().map_or(0, Cursor::seqno)
    }

    fn kind(&self) -> Kind {
        self.cursor.as_ref().map_or(Kind::Tombstone, Cursor::kind)
    }

    fn value(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::value)
    }

    fn value_slice(&self) -> Slice {
        self.cursor.as_ref().map_or_else(|| Slice::from(&[][..]), Cursor::value_slice)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        match self.from.clone() {
            Some(from) => self.seek_unbounded(&from, MAX_SEQNO),
            None => self.enter(0, Cursor::seek_to_first),
        }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        if let Some(last) = self.root()?.index.len().checked_sub(1) {
            self.enter(last, Cursor::seek_to_last)?;
        }
        self.stop_below_bound();
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        match self.from.as_ref().is_some_and(|from| *key < **from) {
            true => self.seek_to_first(),
            false => self.seek_unbounded(key, seqno),
        }
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        if self.from.as_ref().is_some_and(|from| *key < **from) {
            self.cursor = None;
            return Ok(());
        }
        let root = self.root()?;
        let index = root.index.find(key, seqno);
        if index >= root.index.len() {
            return self.seek_to_last();
        }
        self.enter(index, |cursor| cursor.seek_for_prev(key, seqno))?;
        if !self.valid() {
            self.enter_block_before()?;
        }
        self.stop_below_bound();
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        if !self.valid() || self.step(Cursor::next)? { Ok(()) } else { self.enter_next_block() }
    }

    fn prev(&mut self) -> Result<()> {
        if self.valid() && !self.step(Cursor::prev)? {
            self.enter_block_before()?;
        }
        self.stop_below_bound();
        Ok(())
    }
}
