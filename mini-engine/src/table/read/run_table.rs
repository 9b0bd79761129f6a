//! [`RunTable`]: a table of a run, which may be narrowed.
//!
//! A narrowed table shows its entries from its bound on: point reads never ask it for a key below, and no step of an iterator leads
//! there. Its range tombstones count from the bound on too. There may be no entry there.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::cache::CacheUse;
use crate::error::{Error, Result};
use crate::table::format::TableMeta;
use crate::table::read::{Table, TableIter, TableReport};
use crate::types::{Kind, RangeTombstones, SeqNo, Slice, Span, place_after};

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

    /// Whether it holds each key once, as a value, and nothing that does not count: no compaction could leave anything out.
    pub(crate) fn is_minimal(&self) -> Result<bool> {
        let meta = self.table.meta();
        let removes = meta.tombstones > 0 || meta.range_tombstones > 0;
        Ok(self.from.is_none() && !removes && self.table.root()?.properties.keys == meta.entries)
    }

    pub(crate) fn has_range_tombstones(&self) -> bool {
        self.table.meta().range_tombstones > 0
    }

    /// The range tombstones that count.
    pub(crate) fn range_tombstones(&self) -> Result<RangeTombstones> {
        let ranges = &self.table.root()?.range_tombstones;
        Ok(self.from.as_ref().map_or_else(|| ranges.clone(), |from| ranges.within(from, &Slice::default())))
    }

    /// Of the keys from its first to its last, of which `key` is one: those around `key` that the same range tombstones cover, and the
    /// newest of these that is not newer than `seqno`. The search begins at `near`.
    pub(crate) fn span(&self, near: &mut usize, key: &[u8], seqno: SeqNo) -> Result<Span> {
        let mut span = self.table.root()?.range_tombstones.span_near(near, key, seqno);
        if *span.start < *self.smallest() {
            span.start = Slice::from(self.smallest());
        }
        // The last range has an end, which is within the table's keys.
        if span.end.is_empty() {
            span.end = Slice::from(place_after(self.largest()));
        }
        Ok(span)
    }

    /// The newest version of `key`, which is not below the bound, that is not newer than `seqno`: as of [`Table::get`]. Where a range
    /// tombstone is newer, that is a tombstone with its number.
    #[inline]
    pub(crate) fn get(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        // Returned as the table finds it, without a copy.
        if self.has_range_tombstones() {
            self.get_with_ranges(key, hash, seqno)
        } else {
            self.table.get(key, hash, seqno)
        }
    }

    #[cold]
    fn get_with_ranges(&self, key: &[u8], hash: u64, seqno: SeqNo) -> Result<Option<(Kind, SeqNo, Slice)>> {
        let found = self.table.get(key, hash, seqno)?;
        let covered_at = self.table.root()?.range_tombstones.covering(key, seqno);
        let is_newer = |found: &(Kind, SeqNo, Slice)| covered_at < Some(found.1);
        Ok(found.filter(is_newer).or(covered_at.map(|at| (Kind::Tombstone, at, Slice::default()))))
    }

    /// As [`RunTable::get`] for each of `keys`, which ascend, are within its range and have these `hashes`: hands what it finds to
    /// `found`, with the key's position, as long as that wants more.
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
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub(crate) fn verify(&self) -> Result<TableReport> {
        self.table.verify(self.from.as_deref())
    }

    /// As [`RunTable::verify`]; adds all that is wrong to `problems`.
    pub(crate) fn verify_all(&self, problems: &mut Vec<Error>) -> TableReport {
        self.table.verify_all(self.from.as_deref(), problems)
    }

    pub(crate) fn iter(&self, cache: CacheUse) -> TableIter {
        TableIter::new(Arc::clone(&self.table), self.from.clone(), cache)
    }
}
