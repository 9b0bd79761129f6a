//! The memtables of a database: one accepts writes, the frozen ones wait for their flush.
//!
//! A memtable and a log belong together: log `n` contains exactly the writes of the memtable with the log number `n`. A write is assigned its places
//! in both in one step under the write lock. Both are complete when the memtable is frozen and all assigned places are written. So a log is obsolete
//! exactly when its memtable is in a table, and the oldest log that replay needs is that of the oldest memtable.

mod range_tombstones;
mod vector;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use fastskip::{InsertError, Lookup, Memtable, Op, OwnedMemtableCursor, TablePool, Version};

use self::range_tombstones::{MemtableRanges, RANGE_BYTES, RangeSets, memory_of};
use self::vector::{VectorBuilder, VectorIter, VectorReservation, VectorTable, kind};
use crate::error::{Error, Result};
use crate::iter::{Batch, EntryIter, Next, Wanted, impl_entry_iter};
use crate::options::MemtableKind;
use crate::types::{BatchOp, Kind, MAX_SEQNO, Millis, RangeTombstone, SeqNo, Slice, WriteBatch, shown};

/// The memory for the head of a memtable and the first chunk of its arena, however large the memtable is.
const BASE_BYTES: usize = 1 << 20;
/// An upper bound of a node's memory without its key and value.
const NODE_BYTES: usize = 96;

/// A memtable of either kind. Clones share the memtable.
#[derive(Clone)]
pub(crate) enum Table {
    SkipList(Memtable),
    Vector(VectorTable),
}

impl Table {
    fn len(&self) -> usize {
        match self {
            Self::SkipList(table) => table.len(),
            Self::Vector(table) => table.len(),
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::SkipList(table) => table.is_empty(),
            Self::Vector(table) => table.is_empty(),
        }
    }

    /// Bytes of memory used by the entries.
    pub(crate) fn memory_usage(&self) -> usize {
        match self {
            Self::SkipList(table) => table.memory_usage(),
            Self::Vector(table) => table.memory_usage(),
        }
    }

    /// Ends all writing, and waits for the writers that have not finished.
    pub(crate) fn freeze(&self) {
        match self {
            Self::SkipList(table) => drop(table.freeze()),
            Self::Vector(table) => table.freeze(),
        }
    }

    /// Reserves all memory that `ops` will need, so that applying them cannot fail.
    pub(crate) fn reserve<'a>(&'a self, ops: &'a [Op<'a>]) -> Result<Reservation<'a>, InsertError> {
        match self {
            Self::SkipList(table) => table.reserve(ops).map(Reservation::SkipList),
            Self::Vector(table) => table.reserve(ops).map(Reservation::Vector),
        }
    }
}

pub(crate) enum Reservation<'a> {
    SkipList(fastskip::Reservation<'a, 'a>),
    Vector(VectorReservation<'a>),
}

impl Reservation<'_> {
    /// Stores the operations; the first one gets sequence number `first`.
    #[inline]
    pub(crate) fn apply(self, first: SeqNo) {
        match self {
            Self::SkipList(reservation) => drop(reservation.apply(first)),
            Self::Vector(reservation) => reservation.apply(first),
        }
    }
}

// Memtables must accept the longest stored key.
const _: () = assert!(crate::types::MAX_STORED_KEY_LEN <= fastskip::MAX_KEY_LEN);

/// A memtable and the number of the log that contains the same writes.
#[derive(Clone)]
pub(crate) struct LoggedMemtable {
    pub(crate) table: Table,
    pub(crate) log: u64,
    ranges: Arc<MemtableRanges>,
    /// Whether some entries of tombstone kind are entries that expire. Relaxed: set before these entries are visible, like range tombstones (R2).
    has_expiring: Arc<AtomicBool>,
}

impl LoggedMemtable {
    /// Whether `self` and `other` are the same memtable. Two memtables may have the same log: a large batch gets another memtable while its log is
    /// still empty.
    pub(crate) fn is(&self, other: &LoggedMemtable) -> bool {
        Arc::ptr_eq(&self.ranges, &other.ranges)
    }
}

/// Creates memtables one after the other. Each one reuses the memory of a flushed memtable of the same size, if there is one: touching fresh pages
/// costs as much as an insert.
#[derive(Debug)]
pub(crate) struct MemtableFactory {
    kind: MemtableKind,
    bytes: usize,
    pool: TablePool,
}

impl MemtableFactory {
    /// A factory for memtables of `kind`, each with about `bytes` of memory. It keeps the memory of at most one flushed memtable.
    pub(crate) fn new(kind: MemtableKind, bytes: usize) -> MemtableFactory {
        MemtableFactory { kind, bytes, pool: TablePool::new(1) }
    }

    /// An empty memtable for log `log`, for at least `memory` bytes. Errors are those of [`LoggedMemtable::new`].
    pub(crate) fn make(&self, log: u64, memory: usize) -> Result<LoggedMemtable> {
        match memory <= self.bytes {
            true => LoggedMemtable::in_pool(self.kind, log, self.bytes, &self.pool),
            // Memory of this size does not fit a memtable of the usual size, and would displace memory that does.
            false => LoggedMemtable::new(self.kind, log, memory),
        }
    }
}

impl LoggedMemtable {
    /// An empty memtable for writes of about `bytes` of memory.
    ///
    /// # Errors
    /// [`Error::Full`] if its address range cannot be reserved.
    pub(crate) fn new(kind: MemtableKind, log: u64, bytes: usize) -> Result<LoggedMemtable> {
        Self::in_pool(kind, log, bytes, &TablePool::new(0))
    }

    /// A frozen memtable of `entries`.
    fn built(entries: VectorBuilder, log: u64) -> LoggedMemtable {
        Self::of(Table::Vector(entries.finish()), log)
    }

    fn in_pool(kind: MemtableKind, log: u64, bytes: usize, pool: &TablePool) -> Result<LoggedMemtable> {
        // The write that fills a memtable may itself be half as large as the memtable, by the same estimate.
        let limit = bytes.saturating_add(bytes / 2).saturating_add(BASE_BYTES);
        let table = match kind {
            MemtableKind::SkipList => {
                Memtable::builder().max_memory_bytes(limit).pool(pool).try_build().map(Table::SkipList)
            }
            MemtableKind::Vector => Ok(Table::Vector(VectorTable::new(limit))),
        };
        let table =
            table.map_err(|error| Error::Full(format!("no address range for a memtable of {limit} bytes: {error}")))?;
        Ok(Self::of(table, log))
    }

    fn of(table: Table, log: u64) -> LoggedMemtable {
        LoggedMemtable { table, log, ranges: Arc::default(), has_expiring: Arc::default() }
    }

    /// The newest version of `key` with a number <= `seqno`, as a read at `now` sees it: a value (`Some(Some(..))`, the result of `take` with the
    /// instant at which it expires, if it does), absent (`Some(None)`), or not in this memtable (`None`).
    #[inline]
    pub(crate) fn get<T>(
        &self,
        key: &[u8],
        seqno: SeqNo,
        now: impl FnOnce() -> Millis,
        take: impl FnOnce(&[u8], Option<Millis>) -> T,
    ) -> Option<Option<T>> {
        match &self.table {
            Table::SkipList(table) if !self.ranges.is_used() => match table.get(key, seqno) {
                Lookup::Value(value) => Some(Some(take(value, None))),
                Lookup::Tombstone if self.has_expiring() => self.get_beside(key, seqno, now, take),
                Lookup::Tombstone => Some(None),
                // A lookup returns no other result.
                _ => None,
            },
            Table::SkipList(_) | Table::Vector(_) => self.get_beside(key, seqno, now, take),
        }
    }

    /// Like `get`, for either kind of memtable, also if range tombstones may be newer than the key's version, or if the version may expire.
    #[inline(never)]
    fn get_beside<T>(
        &self,
        key: &[u8],
        seqno: SeqNo,
        now: impl FnOnce() -> Millis,
        take: impl FnOnce(&[u8], Option<Millis>) -> T,
    ) -> Option<Option<T>> {
        let covered_at = self.covered_at(key, seqno);
        let newest = |found: SeqNo, kind, stored: &[u8]| {
            let (value, at) = shown(kind, stored, now).filter(|_| covered_at < Some(found))?;
            Some(take(value, at))
        };
        let found = match &self.table {
            Table::SkipList(table) => {
                table.get_version(key, seqno).map(|version| newest(version.seqno, kind_of(&version), version.value))
            }
            Table::Vector(table) => table.get(key, seqno, newest),
        };
        found.or(covered_at.map(|_| None))
    }

    /// The newest range tombstone that covers `key`, with a number <= `seqno`.
    fn covered_at(&self, key: &[u8], seqno: SeqNo) -> Option<SeqNo> {
        let ranges = self.ranges.get();
        ranges.iter().flat_map(|sets| sets.iter()).filter_map(|set| set.covering(key, seqno)).max()
    }

    /// The sequence number of the newest version of `key`, visible or not: an entry, or a range tombstone that covers the key.
    pub(crate) fn newest(&self, key: &[u8]) -> Option<SeqNo> {
        let entry = match &self.table {
            Table::SkipList(table) => table.get_version(key, MAX_SEQNO).map(|version| version.seqno),
            Table::Vector(table) => table.get(key, MAX_SEQNO, |seqno, _, _| seqno),
        };
        entry.max(self.covered_at(key, MAX_SEQNO))
    }

    /// Adds range tombstones. Their operations must also be applied.
    pub(crate) fn add_ranges(&self, ranges: impl IntoIterator<Item = RangeTombstone>) {
        self.ranges.add(ranges);
    }

    /// Called before entries that expire become visible.
    pub(crate) fn note_expiring(&self) {
        self.has_expiring.store(true, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn has_expiring(&self) -> bool {
        self.has_expiring.load(Ordering::Relaxed)
    }

    /// Adds the operations of a logged batch; the first one gets sequence number `first`. Either all are added, or none. Only one thread may call this
    /// at a time; readers see the operations when `first` and the following numbers are visible.
    pub(crate) fn add(&self, batch: &[BatchOp<'_>], first: SeqNo) -> Result<(), InsertError> {
        let expiring: Vec<Option<&[u8]>> = batch.iter().map(|operation| operation.expiring()).collect();
        let ops: Vec<Op<'_>> =
            batch.iter().zip(&expiring).map(|(&added, stored)| op(added, stored.as_slice())).collect();
        self.table.reserve(&ops)?.apply(first);
        if expiring.iter().any(Option::is_some) {
            self.note_expiring();
        }
        self.add_ranges(batch.iter().zip(first..).filter_map(|(&operation, seqno)| range_tombstone(operation, seqno)));
        Ok(())
    }

    /// The present range tombstones, in a few sets.
    pub(crate) fn range_sets(&self) -> RangeSets {
        self.ranges.get().map_or_else(RangeSets::new, |sets| RangeSets::clone(&sets))
    }

    pub(crate) fn memory_usage(&self) -> usize {
        self.table.memory_usage() + self.ranges.memory_usage()
    }

    /// Like `get` for each of `keys`, with copies of the values: passes each result with the key's position to `found`, until `found` returns
    /// `Break`. Searches of a skip list overlap.
    pub(crate) fn get_many(
        &self,
        keys: &[&[u8]],
        seqno: SeqNo,
        now: Millis,
        mut found: impl FnMut(usize, Option<Slice>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let get = |key: &[u8]| self.get(key, seqno, || now, |value, _| Slice::from(value));
        let mut hand_over = |at, answer: Option<Option<Slice>>| match answer {
            Some(value) => found(at, value),
            None => ControlFlow::Continue(()),
        };
        match &self.table {
            Table::SkipList(table) if !self.ranges.is_used() => {
                let mut lookups = table.get_many(keys, seqno).into_iter().zip(keys).enumerate();
                lookups.try_for_each(|(at, (lookup, key))| match lookup {
                    Lookup::Value(value) => hand_over(at, Some(Some(Slice::from(value)))),
                    Lookup::Tombstone if self.has_expiring() => hand_over(at, get(key)),
                    Lookup::Tombstone => hand_over(at, Some(None)),
                    _ => ControlFlow::Continue(()),
                })
            }
            Table::SkipList(_) | Table::Vector(_) => {
                keys.iter().enumerate().try_for_each(|(at, key)| hand_over(at, get(key)))
            }
        }
    }

    /// The number of entries, versions and tombstones included.
    pub(crate) fn entries(&self) -> u64 {
        self.table.len() as u64
    }

    /// An iterator over all versions, which keeps the memtable alive.
    pub(crate) fn iter(&self) -> MemtableIter {
        match &self.table {
            Table::SkipList(table) => MemtableIter::SkipList(SkipListIter::new(table)),
            Table::Vector(table) => MemtableIter::Vector(table.iter()),
        }
    }
}

impl std::fmt::Debug for LoggedMemtable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LoggedMemtable").field("log", &self.log).field("entries", &self.table.len()).finish()
    }
}

/// Converts the kind of a version in a skip list to the engine's kind.
#[inline]
fn kind_of(version: &Version<'_>) -> Kind {
    kind(version.kind, !version.value.is_empty())
}

/// A memtable that one thread builds from the operations of logs, before any thread reads it.
#[derive(Debug, Default)]
pub(crate) struct MemtableBuilder {
    entries: VectorBuilder,
    ranges: Vec<RangeTombstone>,
    /// Bytes of memory used by the range tombstones.
    range_bytes: usize,
    has_expiring: bool,
}

impl MemtableBuilder {
    pub(crate) fn push(&mut self, operation: BatchOp<'_>, seqno: SeqNo) {
        let expiring = operation.expiring();
        self.has_expiring |= expiring.is_some();
        self.entries.push(&op(operation, expiring.as_slice()), seqno);
        if let Some(range) = range_tombstone(operation, seqno) {
            self.range_bytes += memory_of(&range);
            self.ranges.push(range);
        }
    }

    /// Bytes of memory used; 0 if it is empty.
    pub(crate) fn memory_usage(&self) -> usize {
        self.entries.memory_usage() + self.range_bytes
    }

    pub(crate) fn has_ranges(&self) -> bool {
        !self.ranges.is_empty()
    }

    pub(crate) fn has_expiring(&self) -> bool {
        self.has_expiring
    }

    /// The frozen memtable of log `log`. Sorts the entries.
    pub(crate) fn finish(self, log: u64) -> LoggedMemtable {
        let memtable = LoggedMemtable::built(self.entries, log);
        memtable.has_expiring.store(self.has_expiring, Ordering::Relaxed);
        memtable.add_ranges(self.ranges);
        memtable
    }
}

/// An upper estimate of the memory of `operations` with `payload` bytes of keys and values in a memtable, if `ranges` of them are range removals.
pub(crate) fn memory_for(operations: usize, ranges: u32, payload: usize) -> usize {
    let ranges = ranges as usize * RANGE_BYTES;
    payload.saturating_add(operations.saturating_mul(NODE_BYTES)).saturating_add(ranges)
}

/// The operations of `batch` for the memtable. `expiring` are the stored values of its entries that expire. A range removal becomes the removal of
/// its first key here; [`LoggedMemtable::add_ranges`] adds the range tombstone.
pub(crate) fn ops<'a>(batch: &'a WriteBatch, expiring: &'a [&'a [u8]]) -> impl Iterator<Item = Op<'a>> {
    let mut expiring = expiring.chunks(1);
    batch.iter().map(move |operation| {
        let stored = operation.expiring().and_then(|_| expiring.next());
        op(operation, stored.unwrap_or_default())
    })
}

/// Converts an operation for the memtable. `stored` has the value if the entry expires.
fn op<'a>(op: BatchOp<'a>, stored: &'a [&'a [u8]]) -> Op<'a> {
    match op {
        BatchOp::Insert { key, value } => Op::Put { key, value },
        BatchOp::InsertExpiring { key, .. } => {
            Op::Tagged { key, value: stored, kind: fastskip::Kind::Tombstone, tag: 0 }
        }
        BatchOp::Remove { key } | BatchOp::RemoveRange { start: key, .. } => Op::Delete { key },
    }
}

/// The range tombstone of an operation with this sequence number, if the operation removes a range.
pub(crate) fn range_tombstone(op: BatchOp<'_>, seqno: SeqNo) -> Option<RangeTombstone> {
    match op {
        BatchOp::RemoveRange { start, end } => {
            Some(RangeTombstone { start: Slice::from(start), end: Slice::from(end), seqno })
        }
        BatchOp::Insert { .. } | BatchOp::InsertExpiring { .. } | BatchOp::Remove { .. } => None,
    }
}

pub(crate) enum MemtableIter {
    SkipList(SkipListIter),
    Vector(VectorIter),
}

impl_entry_iter!(MemtableIter { SkipList, Vector });

/// A cursor of a skip list as an [`EntryIter`]. It reads only memory, so no step fails.
pub(crate) struct SkipListIter {
    cursor: OwnedMemtableCursor,
    /// The key before the last step.
    passed: Vec<u8>,
    repeats: bool,
}

impl SkipListIter {
    fn new(table: &Memtable) -> Self {
        Self { cursor: table.owned_cursor(), passed: Vec::new(), repeats: false }
    }

    fn step(&mut self) -> Next {
        let Some(version) = self.cursor.version() else { return Next::End };
        self.passed.clear();
        self.passed.extend_from_slice(version.key);
        let Some(next) = self.cursor.next() else { return Next::End };
        self.repeats = next.key == self.passed;
        Next::Entry { seqno: next.seqno, kind: kind_of(&next), repeats: self.repeats }
    }

    /// Makes the version that a search has found the current one.
    fn take(&mut self) -> Result<()> {
        if self.valid() {
            self.cursor.next();
        }
        Ok(())
    }
}

impl EntryIter for SkipListIter {
    fn valid(&self) -> bool {
        self.cursor.valid()
    }

    fn key(&self) -> &[u8] {
        self.cursor.version().map_or(&[], |version| version.key)
    }

    fn seqno(&self) -> SeqNo {
        self.cursor.version().map_or(0, |version| version.seqno)
    }

    fn kind(&self) -> Kind {
        self.cursor.version().map_or(Kind::Tombstone, |version| kind_of(&version))
    }

    fn value(&self) -> &[u8] {
        self.cursor.version().map_or(&[], |version| version.value)
    }

    // A search only finds a version; the first step makes it the current one. After an end, only a search makes the cursor valid again.

    #[inline]
    fn repeats(&self) -> bool {
        self.repeats
    }

    fn next_batch(&mut self, _batch: &mut Batch, _wanted: &Wanted<'_>) -> Result<Next> {
        Ok(self.step())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.cursor.seek_to_first();
        self.take()
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.cursor.seek_to_last();
        self.prev()
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.cursor.seek(key, seqno);
        self.take()
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.cursor.seek_for_prev(key, seqno);
        self.prev()
    }

    fn next(&mut self) -> Result<()> {
        self.step();
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if self.valid() {
            self.cursor.prev();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
