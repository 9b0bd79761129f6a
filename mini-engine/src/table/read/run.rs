//! [`OpenRun`]: a sorted run, divided into tables with disjoint key ranges, with [`RunIter`] over all of its entries, and [`RunRanges`], its range
//! tombstones.
//!
//! A narrowed table may have no entry at or above its bound ([`RunTable`]), so an iterator may have to move past several tables at once.
//!
//! A read of a run searches one table, which is found by binary search. So the cost of a read grows with the number of runs, and hardly with the
//! number of tables. The same holds for range tombstones: those of a table are read when a scan is at a key between the table's first and last key.

use std::ops::Bound;
use std::sync::Arc;

use crate::cache::CacheUse;
use crate::error::Result;
use crate::iter::{Batch, Direction, EntryIter, Next, RangeSource, Wanted, show_entry_of};
use crate::table::read::{RunTable, TableIter};
use crate::types::{SeqNo, Slice, Span, is_below, place_after};

/// Open tables in key order, disjoint.
#[derive(Clone, Debug)]
pub(crate) struct OpenRun {
    tables: Arc<[RunTable]>,
    /// The tables that have range tombstones.
    with_ranges: Arc<[RunTable]>,
}

impl OpenRun {
    /// A run of `tables`, which must be disjoint and in key order.
    pub(crate) fn new(tables: impl IntoIterator<Item = RunTable>) -> Self {
        let tables: Arc<[RunTable]> = tables.into_iter().collect();
        let with_ranges = tables.iter().filter(|table| table.has_range_tombstones()).cloned().collect();
        Self { tables, with_ranges }
    }

    /// The tables of the run that have range tombstones.
    pub(crate) fn tables_with_ranges(&self) -> &[RunTable] {
        &self.with_ranges
    }

    /// The range tombstones of the run, if a table with range tombstones has keys between the bounds. O(log tables), without reading anything.
    pub(crate) fn ranges_within(&self, lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> Option<RunRanges> {
        overlap(&self.with_ranges, lower, upper).then(|| RunRanges { tables: self.with_ranges.clone(), near: 0 })
    }

    /// The run without the tables for which `is_out` is true.
    pub(crate) fn without(&self, is_out: impl Fn(&RunTable) -> bool) -> Self {
        match self.tables.iter().any(&is_out) {
            true => Self::new(self.tables.iter().filter(|table| !is_out(table)).cloned()),
            false => self.clone(),
        }
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
        overlap(&self.tables, lower, upper)
    }

    /// The only table that may contain `key`, if there is one. O(log tables).
    #[inline]
    pub(crate) fn find(&self, key: &[u8]) -> Option<&RunTable> {
        self.first_reaching(key).filter(|table| table.begins_by(key))
    }

    /// The first table that ends at or after `key`. O(log tables).
    pub(crate) fn first_reaching(&self, key: &[u8]) -> Option<&RunTable> {
        self.tables.get(self.position(key))
    }

    /// Iterates over all entries, using the cache.
    pub(crate) fn iter(&self) -> RunIter {
        RunIter { run: self.clone(), cache: CacheUse::Fill, at: 0, table: None }
    }

    /// Iterates over all entries without putting blocks into the cache: for compactions, which read each block once.
    pub(crate) fn iter_uncached(&self) -> RunIter {
        RunIter { run: self.clone(), cache: CacheUse::Bypass, at: 0, table: None }
    }

    /// The index of the first table that ends at or after `key`.
    fn position(&self, key: &[u8]) -> usize {
        position(&self.tables, key)
    }
}

/// The index of the first of `tables` that ends at or after `key`.
#[inline]
fn position(tables: &[RunTable], key: &[u8]) -> usize {
    tables.partition_point(|table| table.ends_before(key))
}

/// Whether one of `tables` has keys between the bounds.
fn overlap(tables: &[RunTable], lower: Bound<&[u8]>, upper: Bound<&[u8]>) -> bool {
    let at = match lower {
        Bound::Unbounded => 0,
        Bound::Included(key) => position(tables, key),
        Bound::Excluded(key) => tables.partition_point(|table| *table.largest() <= *key),
    };
    tables.get(at).is_some_and(|first| is_below(first.smallest(), upper))
}

/// The range tombstones of a run.
#[derive(Debug)]
pub(crate) struct RunRanges {
    /// The tables of the run that have range tombstones.
    tables: Arc<[RunTable]>,
    /// The position of the last key in its table's range tombstones, as a start for the next search, in whichever table.
    near: usize,
}

impl RangeSource for RunRanges {
    fn span(&mut self, key: &[u8], seqno: SeqNo) -> Result<Span> {
        let at = position(&self.tables, key);
        let next = self.tables.get(at);
        if let Some(table) = next.filter(|table| *table.smallest() <= *key) {
            return table.span(&mut self.near, key, seqno);
        }
        let before = at.checked_sub(1).and_then(|before| self.tables.get(before));
        let start = before.map(|table| Slice::from(place_after(table.largest())));
        let end = next.map(|table| Slice::from(table.smallest()));
        Ok(Span { start: start.unwrap_or_default(), end: end.unwrap_or_default(), newest: None })
    }
}

/// Iterates over a run, one table at a time.
#[derive(Debug)]
pub(crate) struct RunIter {
    run: OpenRun,
    cache: CacheUse,
    /// The index of the table that `table` iterates over.
    at: usize,
    /// `None`, or invalid, if the iterator is invalid.
    table: Option<TableIter>,
}

impl RunIter {
    /// Moves to table `at` and positions its iterator with `place`; past either end, or after an error, this iterator becomes invalid.
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

    /// Moves within the table with `step`. Returns whether the iterator is still valid; after an error it is not.
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

    /// Moves to the first entry of the tables from `at` on.
    fn enter_from(&mut self, at: usize) -> Result<()> {
        for at in at..=self.run.tables.len() {
            self.enter(at, TableIter::seek_to_first)?;
            if self.valid() {
                break;
            }
        }
        Ok(())
    }

    /// Moves to the last entry of the tables before `end`.
    fn enter_before(&mut self, end: usize) -> Result<()> {
        self.table = self.table.take().filter(|_| end > 0);
        for at in (0..end).rev() {
            self.enter(at, TableIter::seek_to_last)?;
            if self.valid() {
                break;
            }
        }
        Ok(())
    }
}

impl EntryIter for RunIter {
    show_entry_of!(table: TableIter);

    #[inline]
    fn repeats(&self) -> bool {
        self.table.as_ref().is_some_and(TableIter::repeats)
    }

    fn next_batch(&mut self, batch: &mut Batch, wanted: &Wanted<'_>) -> Result<Next> {
        match &mut self.table {
            Some(table) if table.valid() => match table.next_batch(batch, wanted) {
                Ok(Next::End) => self.enter_from(self.at + 1).map(|()| Next::entry_of(self)),
                Ok(next) => Ok(next),
                Err(error) => {
                    self.table = None;
                    Err(error)
                }
            },
            _ => Ok(Next::End),
        }
    }

    fn fill(&mut self, direction: Direction, batch: &mut Batch, wanted: &Wanted<'_>) -> bool {
        self.table.as_mut().is_some_and(|table| table.fill(direction, batch, wanted))
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.enter_from(0)
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.enter_before(self.run.tables.len())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.enter(self.run.position(key), |table| table.seek(key, seqno))?;
        // A table may end with versions of the key that are newer than the wanted one.
        match self.table.is_some() && !self.valid() {
            true => self.enter_from(self.at + 1),
            false => Ok(()),
        }
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let at = self.run.position(key);
        if at == self.run.tables.len() {
            return self.seek_to_last();
        }
        self.enter(at, |table| table.seek_for_prev(key, seqno))?;
        if self.valid() { Ok(()) } else { self.enter_before(self.at) }
    }

    #[inline]
    fn next(&mut self) -> Result<()> {
        match !self.valid() || self.move_by(TableIter::next)? {
            true => Ok(()),
            false => self.enter_from(self.at + 1),
        }
    }

    fn prev(&mut self) -> Result<()> {
        if !self.valid() || self.move_by(TableIter::prev)? { Ok(()) } else { self.enter_before(self.at) }
    }
}
