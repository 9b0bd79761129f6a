//! [`RunTable`]: a table of a run, which may be narrowed.
//!
//! A narrowed table shows only its entries at or above its bound: point reads never search it for a lower key, and no move of an iterator leads below
//! the bound. Its range tombstones, too, apply only from the bound on. There may be no entry at or above the bound.

use std::cmp::Ordering;
use std::ops::ControlFlow;
use std::sync::Arc;

use crate::cache::CacheUse;
use crate::codec::head;
use crate::epoch::Pin;
use crate::error::{Error, Result};
use crate::table::format::TableMeta;
use crate::table::read::reader::TableEntry;
use crate::table::read::{Table, TableIter, TableReport};
use crate::types::{Kind, RangeTombstones, SeqNo, Slice, Span, place_after};

/// A table of one version: views from before and after the table was narrowed share the open table.
#[derive(Clone, Debug)]
pub(crate) struct RunTable {
    table: Arc<Table>,
    /// The lower bound of a narrowed table.
    from: Option<Slice>,
    /// The heads of the first key at or above the bound and of the last key: nearly always enough for a comparison with another key.
    heads: (u64, u64),
}

impl RunTable {
    /// `table`, with the metadata `meta` of a version.
    pub(crate) fn new(table: &Arc<Table>, meta: &TableMeta) -> Self {
        let heads = (head(&meta.smallest), head(&meta.largest));
        Self { table: Arc::clone(table), from: meta.narrowed.then(|| meta.smallest.clone()), heads }
    }

    /// The whole table, ignoring the bound.
    pub(crate) fn table(&self) -> &Arc<Table> {
        &self.table
    }

    pub(crate) fn number(&self) -> u64 {
        self.table.number()
    }

    /// The table's metadata in the version.
    pub(crate) fn meta(&self) -> TableMeta {
        let file = self.table.meta();
        self.from.as_ref().map_or_else(|| file.clone(), |from| file.narrowed_to(from.clone()))
    }

    /// Whether the table contains each key once, as a value that does not expire, and no entry below its bound: then no compaction could drop any.
    pub(crate) fn is_minimal(&self) -> Result<bool> {
        let meta = self.table.meta();
        let removes = meta.tombstones > 0 || meta.range_tombstones > 0 || meta.expiring.count() > 0;
        Ok(self.from.is_none() && !removes && self.table.root()?.properties.keys == meta.entries)
    }

    #[inline]
    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.table.meta().range_tombstones > 0
    }

    /// The range tombstones from the bound on.
    pub(crate) fn range_tombstones(&self) -> Result<RangeTombstones> {
        let ranges = &self.table.root()?.range_tombstones;
        Ok(self.from.as_ref().map_or_else(|| ranges.clone(), |from| ranges.within(from, &Slice::default())))
    }

    /// The span around `key`, which must be in the table's key range: the keys that the same range tombstones cover, and the newest of those
    /// tombstones with a number <= `seqno`. The search begins at `near`.
    pub(crate) fn span(&self, near: &mut usize, key: &[u8], seqno: SeqNo) -> Result<Span> {
        let mut span = self.table.root()?.range_tombstones.span_near(near, key, seqno);
        if *span.start < *self.smallest() {
            span.start = Slice::from(self.smallest());
        }
        // The last range has an end, which is within the table's key range.
        if span.end.is_empty() {
            span.end = Slice::from(place_after(self.largest()));
        }
        Ok(span)
    }

    /// Like `get`, for a pinned reader: see [`Table::get_pinned`].
    #[inline(always)]
    pub(crate) fn get_pinned(
        &self,
        pin: &Pin,
        key: &[u8],
        hash: u64,
        seqno: SeqNo,
    ) -> Option<Result<Option<TableEntry>>> {
        let found = self.table.get_pinned(pin, key, hash, seqno);
        if self.has_range_tombstones() { found.map(|found| self.uncovered(found?, key, seqno)) } else { found }
    }

    /// The newest version of `key` (not below the bound) with a number <= `seqno`, as in [`Table::get`]. If a range tombstone is newer, the result is
    /// a tombstone with its number.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<TableEntry>> {
        // Otherwise the table's result is returned without a copy.
        if self.has_range_tombstones() {
            self.uncovered(self.table.get(key, hash, seqno)?, key, seqno)
        } else {
            self.table.get(key, hash, seqno)
        }
    }

    #[cold]
    fn uncovered(&self, found: Option<TableEntry>, key: &[u8], seqno: SeqNo) -> Result<Option<TableEntry>> {
        let covered_at = self.table.root()?.range_tombstones.covering(key, seqno);
        let is_newer = |found: &TableEntry| covered_at < Some(found.1);
        Ok(found.filter(is_newer).or(covered_at.map(|at| (Kind::Tombstone, at, Slice::default()))))
    }

    /// Like [`RunTable::get`] for each of `keys`, which must ascend, lie within the table's range and have these `hashes`: passes each result with
    /// the key's position to `found`, until `found` returns `Break`.
    pub(crate) fn get_many(
        &self,
        keys: &[&[u8]],
        hashes: &[u64],
        seqno: SeqNo,
        mut found: impl FnMut(usize, Kind, Slice) -> ControlFlow<()>,
    ) -> Result<ControlFlow<()>> {
        if !self.has_range_tombstones() {
            return self.table.get_many(keys, hashes, seqno, found);
        }
        for (at, (key, hash)) in keys.iter().zip(hashes).enumerate() {
            if let Some((kind, _, value)) = self.get(key, *hash, seqno)?
                && found(at, kind, value).is_break()
            {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// The first key at or above the bound, or a key before that.
    pub(crate) fn smallest(&self) -> &[u8] {
        self.from.as_deref().unwrap_or(&self.table.meta().smallest)
    }

    pub(crate) fn largest(&self) -> &[u8] {
        &self.table.meta().largest
    }

    /// Whether `smallest` is at or before `key`.
    #[inline]
    pub(crate) fn begins_by(&self, key: &[u8]) -> bool {
        match self.heads.0.cmp(&head(key)) {
            Ordering::Equal => *self.smallest() <= *key,
            order => order == Ordering::Less,
        }
    }

    /// Whether the last key is before `key`.
    #[inline]
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        match self.heads.1.cmp(&head(key)) {
            Ordering::Equal => *self.largest() < *key,
            order => order == Ordering::Less,
        }
    }

    #[inline]
    pub(crate) fn min_seqno(&self) -> SeqNo {
        self.table.meta().min_seqno
    }

    #[inline]
    pub(crate) fn max_seqno(&self) -> SeqNo {
        self.table.meta().max_seqno
    }

    /// The bytes of the blocks from the bound to the block with `key`.
    pub(crate) fn bytes_before(&self, key: &[u8]) -> u64 {
        let begin = self.from.as_ref().map_or(0, |from| self.table.bytes_before(from));
        self.table.bytes_before(key).saturating_sub(begin)
    }

    /// The bytes of the file from the first block with entries at or above the bound.
    pub(crate) fn bytes(&self) -> u64 {
        let begin = self.from.as_ref().map_or(0, |from| self.table.bytes_before(from));
        self.table.meta().size.saturating_sub(begin)
    }

    /// Verifies the table from its bound on.
    ///
    /// # Errors
    /// The first problem.
    pub(crate) fn verify(&self) -> Result<TableReport> {
        self.table.verify(self.from.as_deref())
    }

    /// Like [`RunTable::verify`], but adds all problems to `problems`.
    pub(crate) fn verify_all(&self, problems: &mut Vec<Error>) -> TableReport {
        self.table.verify_all(self.from.as_deref(), problems)
    }

    pub(crate) fn iter(&self, cache: CacheUse) -> TableIter {
        TableIter::new(Arc::clone(&self.table), self.from.clone(), cache)
    }
}
