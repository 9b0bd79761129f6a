//! [`OpenRun`]: a sorted run, cut into tables that are disjoint by key, and [`RunIter`] over all of its entries.
//!
//! A narrowed table shows its entries from its bound on ([`RunTable`], [`TableIter`]): point reads never ask it for a key below, and no
//! step of an iterator leads there.
//!
//! A read of a run is a read of one table, whose place is found by binary search: so what a read costs grows with the
//! number of runs and hardly with the number of tables.

use std::ops::Bound;
use std::sync::Arc;

use super::iter::TableIter;
use super::properties::TableMeta;
use super::reader::Table;
use super::verify::TableReport;
use crate::cache::CacheUse;
use crate::error::Result;
use crate::iter::{EntryIter, Stepped};
use crate::types::{Kind, SeqNo, Slice};

/// A table as one version has it: views of before and after it was narrowed share the open table.
#[derive(Clone, Debug)]
pub(crate) struct RunTable {
    table: Arc<Table>,
    /// The key from which on it counts, if it was narrowed.
    from: Option<Slice>,
}

impl RunTable {
    /// `table`, as `meta` of a version describes it.
    pub(crate) fn new(table: &Arc<Table>, meta: &TableMeta) -> Self {
        Self { table: Arc::clone(table), from: meta.narrowed.then(|| meta.smallest.clone()) }
    }

    /// The table, with all that its file holds.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn number(&self) -> u64 {
        self.table.number()
    }

    /// What the version says of it.
    pub(crate) fn meta(&self) -> TableMeta {
        let file = self.table.meta();
        self.from.as_ref().map_or_else(|| file.clone(), |from| file.narrowed_to(from.clone()))
    }

    /// Whether it holds each key once, as a value, and nothing that does not count: no merge could leave anything out.
    pub(crate) fn is_minimal(&self) -> Result<bool> {
        Ok(self.from.is_none() && self.table.meta().tombstones == 0 && self.table.keys()? == self.table.meta().entries)
    }

    /// The first key that counts, or one before it.
    pub(crate) fn smallest(&self) -> &[u8] {
        self.from.as_deref().unwrap_or(&self.table.meta().smallest)
    }

    pub(crate) fn largest(&self) -> &[u8] {
        &self.table.meta().largest
    }

    pub(crate) fn min_seqno(&self) -> SeqNo {
        self.table.meta().min_seqno
    }

    /// Bytes of the blocks that hold what counts, up to the one with `key`.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> u64 {
        let begin = self.from.as_ref().map_or(0, |from| self.table.bytes_before(from));
        self.table.bytes_before(key).saturating_sub(begin)
    }

    /// Bytes of the file from the first block that counts on.
    pub(crate) fn bytes(&self) -> u64 {
        let begin = self.from.as_ref().map_or(0, |from| self.table.bytes_before(from));
        self.table.meta().size.saturating_sub(begin)
    }

    /// Verifies what counts.
    pub(crate) fn verify(&self) -> Result<TableReport> {
        self.table.verify(self.from.as_deref())
    }

    fn iter(&self, cache: CacheUse) -> TableIter {
        TableIter::new(Arc::clone(&self.table), self.from.clone(), cache)
    }
}

/// Open tables in key order, disjoint.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    tables: Arc<[RunTable]>,
}

impl OpenRun {
    /// A run of `tables`, which are disjoint and in key order.
    pub(crate) fn new(tables: impl IntoIterator<Item = RunTable>) -> Self {
        Self { tables: tables.into_iter().collect() }
    }

    pub(crate) fn tables(&self) -> &[RunTable] {
        &self.tables
    }

    /// The tables with keys from `smallest` to `largest`. O(log tables).
    pub(crate) fn within(&self, smallest: &[u8], largest: &[u8]) -> &[RunTable] {
        let after = self.tables.partition_point(|table| table.smallest() <= largest);
        self.tables.get(self.position(smallest)..after).unwrap_or_default()
    }

    /// Whether a table has keys between the bounds. O(log tables).
    pub(crate) fn overlaps(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
        let at = match lower {
            Bound::Unbounded => 0,
            Bound::Included(key) => self.position(key),
            Bound::Excluded(key) => self.tables.partition_point(|table| *table.largest() <= *key),
        };
        self.tables.get(at).is_some_and(|first| match upper {
            Bound::Unbounded => true,
            Bound::Included(key) => *first.smallest() <= *key,
            Bound::Excluded(key) => *first.smallest() < *key,
        })
    }

    /// The one table that may hold `key`, if there is one. O(log tables).
    pub(crate) fn find(&self, key: &[u8]) -> Option<&RunTable> {
        self.first_reaching(key).filter(|table| *table.smallest() <= *key)
    }

    /// The first table that ends at or after `key`. O(log tables).
    pub(crate) fn first_reaching(&self, key: &[u8]) -> Option<&RunTable> {
        self.tables.get(self.position(key))
    }

    /// Iterates over all entries, through the cache.
    pub(crate) fn iter(&self) -> RunIter {
        RunIter { run: self.clone(), cache: CacheUse::Fill, at: 0, table: None }
    }

    /// Iterates over all entries without putting blocks into the cache: for merges, which read each block once.
    pub(crate) fn iter_uncached(&self) -> RunIter {
        RunIter { run: self.clone(), cache: CacheUse::Bypass, at: 0, table: None }
    }

    /// The index of the first table that ends at or after `key`.
    fn position(&self, key: &[u8]) -> usize {
        self.tables.partition_point(|table| *table.largest() < *key)
    }
}

/// Iterates over a run, one table at a time.
#[derive(Debug)]
pub(crate) struct RunIter {
    run: OpenRun,
    cache: CacheUse,
    /// The table that `table` is of.
    at: usize,
    /// Absent, or invalid, when the iterator is invalid.
    table: Option<TableIter>,
}

impl RunIter {
    /// Goes to table `at` and positions in it by `place`; past either end, or after an error, the iterator becomes invalid.
    fn enter(&mut self, at: usize, place: impl FnOnce(&mut TableIter) -> Result<()>) -> Result<()> {
        let Some(table) = self.run.tables.get(at) else {
            self.table = None;
            return Ok(());
        };
        if at != self.at || self.table.is_none() {
            self.table = Some(table.iter(self.cache));
            self.at = at;
        }
        let placed = self.table.as_mut().map_or(Ok(()), place);
        if placed.is_err() {
            self.table = None;
        }
        placed
    }

    /// Moves within the table by `step`; whether the iterator is still valid there. On an error it is not.
    #[inline]
    fn move_by(&mut self, step: impl FnOnce(&mut TableIter) -> Result<()>) -> Result<bool> {
        let Some(table) = &mut self.table else { return Ok(false) };
        match step(table) {
            Ok(()) => Ok(table.valid()),
            Err(error) => {
                self.table = None;
                Err(error)
            }
        }
    }

    fn enter_before(&mut self) -> Result<()> {
        match self.at.checked_sub(1) {
            Some(before) => self.enter(before, TableIter::seek_to_last),
            None => {
                self.table = None;
                Ok(())
            }
        }
    }
}

impl EntryIter for RunIter {
    #[inline]
    fn valid(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::valid)
    }

    #[inline]
    fn key(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::key)
    }

    #[inline]
    fn seqno(&self) -> SeqNo {
        self.table.as_ref().map_or(0, TableIter::seqno)
    }

    #[inline]
    fn kind(&self) -> Kind {
        self.table.as_ref().map_or(Kind::Tombstone, TableIter::kind)
    }

    #[inline]
    fn value(&self) -> &[u8] {
        self.table.as_ref().map_or(&[], TableIter::value)
    }

    fn value_slice(&self) -> Slice {
        self.table.as_ref().map_or_else(|| Slice::from(&[][..]), TableIter::value_slice)
    }

    #[inline]
    fn repeats(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::repeats)
    }

    #[inline]
    fn step(&mut self) -> Option<Stepped> {
        self.table.as_mut()?.step()
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.enter(0, TableIter::seek_to_first)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        match self.run.tables.len().checked_sub(1) {
            Some(last) => self.enter(last, TableIter::seek_to_last),
            None => Ok(()),
        }
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.enter(self.run.position(key), |table| table.seek(key, seqno))?;
        // A table may end with newer versions of the key than the one that is sought.
        match self.table.is_some() && !self.valid() {
            true => self.enter(self.at + 1, TableIter::seek_to_first),
            false => Ok(()),
        }
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let at = self.run.position(key);
        if at == self.run.tables.len() {
            return self.seek_to_last();
        }
        self.enter(at, |table| table.seek_for_prev(key, seqno))?;
        if self.valid() { Ok(()) } else { self.enter_before() }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match !self.valid() || self.move_by(TableIter::next)? {
            true => Ok(()),
            false => self.enter(self.at + 1, TableIter::seek_to_first),
        }
    }

    fn prev(&mut self) -> Result<()> {
        if !self.valid() || self.move_by(TableIter::prev)? { Ok(()) } else { self.enter_before() }
    }
}
