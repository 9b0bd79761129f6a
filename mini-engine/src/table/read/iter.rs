//! [`TableIter`]: the entries of a table in order, block by block.
//!
//! The iterator of a narrowed table returns only the entries at or above the table's bound. A seek below the bound moves to the bound; no other move
//! enters from below. A backward step, or a seek to the last entry at or before a key, makes the iterator invalid if it would lead below the bound.
//! Blocks that end below the bound are never read, so damage to them has no effect.

use std::sync::Arc;

use crate::cache::CacheUse;
use crate::error::Result;
use crate::iter::{Batch, Direction, EntryIter, Next, Wanted, show_entry_of};
use crate::table::block::Cursor;
use crate::table::format::Handle;
use crate::table::index::{FencePlace, Partition};
use crate::table::read::{CachedPartition, ReadAhead, Root, Table};
use crate::types::{MAX_SEQNO, SeqNo, Slice, entry_order};

/// Iterates over a table, and keeps it open. It holds one block, and during a scan also the blocks that were read ahead.
#[derive(Debug)]
pub(crate) struct TableIter {
    table: Arc<Table>,
    /// `None` before the first move. Once it is set, a move needs the open file only if it reads a block.
    root: Option<Arc<Root>>,
    /// The lower bound, if the table was narrowed.
    from: Option<Slice>,
    cache: CacheUse,
    ahead: ReadAhead,
    /// The index of the partition that was entered last, and the partition.
    partition: Option<(usize, CachedPartition)>,
    /// The index, in the partition, of the cursor's block.
    block: usize,
    handle: Handle,
    /// `None`, or invalid, if the iterator is invalid.
    cursor: Option<Cursor>,
}

#[cfg(test)]
impl Table {
    /// Iterates over all entries, using the cache.
    pub(crate) fn iter(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), None, CacheUse::Fill)
    }

    /// Iterates over all entries without putting blocks into the cache: for compactions, which read each block once.
    pub(crate) fn iter_uncached(self: &Arc<Self>) -> TableIter {
        TableIter::new(Arc::clone(self), None, CacheUse::Bypass)
    }
}

impl TableIter {
    pub(crate) fn new(table: Arc<Table>, from: Option<Slice>, cache: CacheUse) -> Self {
        let (ahead, handle) = (ReadAhead::new(cache), Handle::default());
        Self { table, root: None, from, cache, ahead, partition: None, block: 0, handle, cursor: None }
    }

    fn root(&mut self) -> Result<&Root> {
        match &mut self.root {
            Some(root) => Ok(root),
            none => Ok(none.insert(Arc::clone(self.table.root()?))),
        }
    }

    /// Loads partition `at`; returns `None` after the last.
    fn partition(&mut self, at: usize) -> Result<Option<&CachedPartition>> {
        if self.entered() != Some(at) {
            let (table, cache) = (Arc::clone(&self.table), self.cache);
            // An iterator may exist for long, so it holds its own reference to the partition.
            let loaded = table.partition(self.root()?, at, cache)?;
            self.partition = loaded.map(|partition| (at, partition));
        }
        Ok(self.partition.as_ref().map(|(_, partition)| partition))
    }

    /// Loads the data block of partition `at` that `choose` selects, and positions the cursor in it with `place`, whose result it returns; past either
    /// end, and after an error, the iterator becomes invalid.
    fn enter<R>(
        &mut self,
        at: usize,
        choose: impl FnOnce(&Partition) -> usize,
        place: impl FnOnce(&mut Cursor) -> R,
    ) -> Result<Option<R>> {
        match (self.load(at, choose), &mut self.cursor) {
            (Ok(true), Some(cursor)) => Ok(Some(place(cursor))),
            (other, _) => {
                self.cursor = None;
                other.map(|_| None)
            }
        }
    }

    /// Moves the cursor to an unspecified entry of the data block of partition `at` that `choose` selects; returns false past either end.
    fn load(&mut self, at: usize, choose: impl FnOnce(&Partition) -> usize) -> Result<bool> {
        self.partition(at)?;
        let Self { table, root: Some(root), partition: Some((_, partition)), ahead, cursor, .. } = self else {
            return Ok(false);
        };
        let block = choose(partition);
        let Some(handle) = partition.index.handle(block) else { return Ok(false) };
        if cursor.is_none() || handle != self.handle {
            let read = ahead.block(table, root, (partition, block, handle))?;
            let entered = match cursor {
                Some(cursor) => cursor.enter(read),
                none => Cursor::new(read).map(|cursor| *none = Some(cursor)),
            };
            entered.map_err(|malformed| table.malformed(handle, malformed))?;
        }
        (self.block, self.handle) = (block, handle);
        Ok(true)
    }

    /// Moves within the block with `step`. Returns whether the iterator is still valid.
    #[inline]
    fn move_by(&mut self, step: impl FnOnce(&mut Cursor)) -> bool {
        let Some(cursor) = &mut self.cursor else { return false };
        step(cursor);
        cursor.valid()
    }

    /// Positions the cursor in the next block with `place`. After the last entry of a block comes the first one of the next block: every block has
    /// entries, so one step is enough.
    fn enter_next_block<R>(&mut self, place: impl FnOnce(&mut Cursor) -> R) -> Result<Option<R>> {
        let (at, next) = (self.entered().unwrap_or(0), self.block + 1);
        let first = |cursor: &mut Cursor| {
            cursor.read_ahead();
            place(cursor)
        };
        match self.partition(at)?.is_some_and(|partition| next < partition.index.len()) {
            true => self.enter(at, |_| next, first),
            false => self.enter(at + 1, |_| 0, first),
        }
    }

    /// Whether a block or partition with this fence may contain entries at or above the bound.
    fn counts<'a>(&self, fence: impl FnOnce() -> Option<FencePlace<'a>>) -> bool {
        let is_behind =
            |from: &Slice, (key, seqno): FencePlace<'_>| entry_order((&key, seqno), (from, MAX_SEQNO)).is_ge();
        self.from.as_ref().is_none_or(|from| fence().is_some_and(|fence| is_behind(from, fence)))
    }

    /// Makes the iterator invalid if its position is below the bound.
    fn stop_below_bound(&mut self) {
        if self.from.as_ref().is_some_and(|from| self.valid() && *self.key() < **from) {
            self.cursor = None;
        }
    }

    /// Like [`EntryIter::seek`], but ignores the bound.
    fn seek_unbounded(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let at = self.root()?.index.find(key, seqno);
        self.enter(at, |partition| partition.index.find(key, seqno), |cursor| cursor.seek(key, seqno))?;
        // The target may lie between the block's last entry and its fence; then the next block has the entry.
        if self.cursor.is_some() && !self.valid() {
            self.enter_next_block(Cursor::seek_to_first)?;
        }
        Ok(())
    }

    fn enter_block_before(&mut self) -> Result<()> {
        let at = self.entered().unwrap_or(0);
        let last = |cursor: &mut Cursor| {
            cursor.read_ahead();
            cursor.seek_to_last()
        };
        if let Some(block) = self.block.checked_sub(1) {
            self.partition(at)?;
            if self.counts(|| self.partition.as_ref()?.1.index.fence(block)) {
                return self.enter(at, |_| block, last).map(drop);
            }
        } else if let Some(before) = at.checked_sub(1) {
            self.root()?;
            if self.counts(|| self.root.as_ref()?.index.fence(before)) {
                return self.enter(before, last_block, last).map(drop);
            }
        }
        self.cursor = None;
        Ok(())
    }

    /// The index of the partition that was entered last.
    fn entered(&self) -> Option<usize> {
        self.partition.as_ref().map(|(at, _)| *at)
    }
}

fn last_block(partition: &Partition) -> usize {
    // Every partition has at least one block.
    partition.index.len().saturating_sub(1)
}

impl EntryIter for TableIter {
    show_entry_of!(cursor: Cursor);

    #[inline]
    fn repeats(&self) -> bool {
        self.cursor.as_ref().is_some_and(Cursor::repeats)
    }

    fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        let wanted = wanted.of_versions_to(self.table.meta().max_seqno);
        let is_filled = match &mut self.cursor {
            Some(cursor) if cursor.valid() && !cursor.is_last() => cursor.next_batch(batch, &wanted),
            Some(cursor) if cursor.valid() => {
                self.enter_next_block(|cursor| cursor.first_batch(batch, &wanted))?.unwrap_or(false)
            }
            _ => false,
        };
        Ok(if is_filled { Next::Batch } else { Next::entry_of(self) })
    }

    fn fill(&mut self, direction: Direction, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        let wanted = wanted.of_versions_to(self.table.meta().max_seqno);
        let Self { cursor: Some(cursor), from, .. } = self else { return false };
        match direction {
            Direction::Forward => cursor.fill(batch, &wanted),
            Direction::Backward => cursor.fill_back(batch, &wanted, from.as_deref()),
        }
    }

    fn seek_to_first(&mut self) -> Result<()> {
        match self.from.clone() {
            Some(from) => self.seek_unbounded(&from, MAX_SEQNO),
            None => self.enter(0, |_| 0, Cursor::seek_to_first).map(drop),
        }
    }

    fn seek_to_last(&mut self) -> Result<()> {
        let last = self.root()?.index.len().saturating_sub(1);
        self.enter(last, last_block, Cursor::seek_to_last)?;
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
        let at = root.index.find(key, seqno);
        if at >= root.index.len() {
            return self.seek_to_last();
        }
        self.enter(at, |partition| partition.index.find(key, seqno), |cursor| cursor.seek_for_prev(key, seqno))?;
        if !self.valid() {
            self.enter_block_before()?;
        }
        self.stop_below_bound();
        Ok(())
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match !self.valid() || self.move_by(Cursor::next) {
            true => Ok(()),
            false => self.enter_next_block(Cursor::seek_to_first).map(drop),
        }
    }

    fn prev(&mut self) -> Result<()> {
        if self.valid() && !self.move_by(Cursor::prev) {
            self.enter_block_before()?;
        }
        self.stop_below_bound();
        Ok(())
    }
}
