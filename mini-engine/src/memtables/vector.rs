//! [`VectorTable`]: a memtable that appends, for loads that write and do not read.
//!
//! Entries are in the order in which they were applied; nothing is searched or linked at a write. They are sorted once, by the
//! first scan after the freeze: that is the flush. Until then a point read looks at all entries, and a scan sorts a copy of
//! them: right answers, at a price that only few reads may cost.
//! (RocksDB's `VectorRepFactory`.)
//!
//! T1 entries are appended, by one writer at a time; none ever changes. A number is published after the entries of all numbers up
//!    to it are appended, so a reader that sees a number sees them.
//! T2 after the freeze nothing is appended, so what was sorted then is all there is.

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use fastskip::{InsertError, Op};

use crate::error::Result;
use crate::iter::EntryIter;
use crate::types::{Kind, SeqNo, Slice, entry_order};

/// An entry: where in the bytes of its batch it is.
#[derive(Clone, Debug)]
struct Entry {
    /// Keys and values of all its batch.
    bytes: Arc<[u8]>,
    key: u32,
    value: u32,
    end: u32,
    kind: Kind,
    seqno: SeqNo,
}

impl Entry {
    fn key(&self) -> &[u8] {
        self.bytes.get(self.key as usize..self.value as usize).unwrap_or_default()
    }

    fn value(&self) -> &[u8] {
        self.bytes.get(self.value as usize..self.end as usize).unwrap_or_default()
    }

    fn value_slice(&self) -> Slice {
        let range = self.value as usize..self.end as usize;
        Slice::view(self.bytes.clone(), range).unwrap_or_else(|| Slice::from(&[][..]))
    }

    fn order(&self, key: &[u8], seqno: SeqNo) -> Ordering {
        entry_order((self.key(), self.seqno), (key, seqno))
    }
}

#[derive(Debug, Default)]
struct Appended {
    entries: Vec<Entry>,
    /// Bytes that the entries take, and those that have a reservation.
    memory: usize,
    frozen: bool,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    appended: RwLock<Appended>,
    /// Made by the first scan after the freeze.
    sorted: OnceLock<Arc<[Entry]>>,
}

/// An append-only memtable. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct VectorTable(Arc<Shared>);

impl VectorTable {
    /// An empty table that takes about `limit` bytes.
    pub(crate) fn new(limit: usize) -> VectorTable {
        VectorTable(Arc::new(Shared { limit, appended: RwLock::default(), sorted: OnceLock::new() }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.read().entries.is_empty()
    }

    /// Entries, whatever their kind.
    pub(crate) fn len(&self) -> usize {
        self.read().entries.len()
    }

    /// Bytes that entries and what they hold take, reserved ones included.
    pub(crate) fn memory_usage(&self) -> usize {
        self.read().memory
    }

    /// Ends all writing.
    pub(crate) fn freeze(&self) {
        self.write().frozen = true;
    }

    /// Checks and copies `ops`, so that applying them cannot fail.
    pub(crate) fn reserve(&self, ops: &[Op<'_>]) -> Result<VectorReservation<'_>, InsertError> {
        let payload: usize = ops.iter().map(|op| op_len(op)).sum();
        if u32::try_from(payload).is_err() {
            return Err(InsertError::TooLarge);
        }
        let memory = payload + ops.len() * size_of::<Entry>();
        let mut appended = self.write();
        if appended.frozen {
            return Err(InsertError::Sealed);
        }
        if appended.memory + memory > self.0.limit && appended.memory > 0 {
            return Err(InsertError::Full);
        }
        appended.memory += memory;
        drop(appended);
        let mut bytes = Vec::with_capacity(payload);
        let mut places = Vec::with_capacity(ops.len());
        for op in ops {
            let start = bytes.len() as u32;
            bytes.extend_from_slice(op.key());
            let middle = bytes.len() as u32;
            op.value().iter().for_each(|part| bytes.extend_from_slice(part));
            places.push((kind(op.kind()), [start, middle, bytes.len() as u32]));
        }
        Ok(VectorReservation { table: self, bytes: Arc::from(bytes), places, memory })
    }

    /// The newest version of `key` that is not newer than `seqno`. O(entries) before the first scan after the freeze,
    /// O(log entries) then.
    pub(crate) fn get<T>(&self, key: &[u8], seqno: SeqNo, take: impl FnOnce(&[u8]) -> T) -> Option<Option<T>> {
        let found = |entry: &Entry| (entry.kind == Kind::Value).then(|| take(entry.value()));
        if let Some(sorted) = self.0.sorted.get() {
            let at = sorted.partition_point(|entry| entry.order(key, seqno) == Ordering::Less);
            return sorted.get(at).filter(|entry| entry.key() == key).map(found);
        }
        let appended = self.read();
        let versions = appended.entries.iter().filter(|entry| entry.seqno <= seqno && entry.key() == key);
        versions.max_by_key(|entry| entry.seqno).map(found)
    }

    /// All entries there are now, sorted. O(n log n) each time before the freeze, once after it.
    pub(crate) fn iter(&self) -> VectorIter {
        VectorIter { entries: self.sorted(), at: None }
    }

    fn sorted(&self) -> Arc<[Entry]> {
        let (entries, frozen) = {
            let appended = self.read();
            match self.0.sorted.get() {
                Some(sorted) => return sorted.clone(),
                None => (appended.entries.clone(), appended.frozen),
            }
        };
        let mut entries = entries;
        entries.sort_unstable_by(|a, b| a.order(b.key(), b.seqno));
        let sorted: Arc<[Entry]> = Arc::from(entries);
        if frozen {
            // Two scans may have sorted the same: one result is kept.
            return self.0.sorted.get_or_init(|| sorted).clone();
        }
        sorted
    }

    fn read(&self) -> RwLockReadGuard<'_, Appended> {
        // Appending is one step, so a panic of its thread leaves entries whole; which ones count, the published number says.
        self.0.appended.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Appended> {
        self.0.appended.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's word for a kind of entry. It stores no other than these two.
pub(super) fn kind(kind: fastskip::Kind) -> Kind {
    if kind == fastskip::Kind::Value { Kind::Value } else { Kind::Tombstone }
}

fn op_len(op: &Op<'_>) -> usize {
    op.key().len() + op.value().iter().map(|part| part.len()).sum::<usize>()
}

/// Operations that are certain to be taken.
#[derive(Debug)]
pub(crate) struct VectorReservation<'a> {
    table: &'a VectorTable,
    bytes: Arc<[u8]>,
    places: Vec<(Kind, [u32; 3])>,
    /// What is given back if they are not applied: several writers reserve at once.
    memory: usize,
}

impl Drop for VectorReservation<'_> {
    fn drop(&mut self) {
        if self.memory > 0 {
            self.table.write().memory -= self.memory;
        }
    }
}

impl VectorReservation<'_> {
    /// Appends them, the first with sequence number `first`.
    pub(crate) fn apply(mut self, first: SeqNo) {
        self.memory = 0;
        let (bytes, places) = (&self.bytes, std::mem::take(&mut self.places));
        let entries = places.into_iter().zip(first..).map(|((kind, [key, value, end]), seqno)| Entry {
            bytes: bytes.clone(),
            key,
            value,
            end,
            kind,
            seqno,
        });
        self.table.write().entries.extend(entries);
    }
}

/// A cursor over sorted entries, which it keeps alive.
pub(crate) struct VectorIter {
    entries: Arc<[Entry]>,
    at: Option<usize>,
}

impl VectorIter {
    fn place(&mut self, at: Option<usize>) -> Result<()> {
        self.at = at.filter(|&at| at < self.entries.len());
        Ok(())
    }

    fn entry(&self) -> Option<&Entry> {
        self.entries.get(self.at?)
    }
}

impl EntryIter for VectorIter {
    fn valid(&self) -> bool {
        self.at.is_some()
    }

    fn key(&self) -> &[u8] {
        self.entry().map_or(&[], Entry::key)
    }

    fn seqno(&self) -> SeqNo {
        self.entry().map_or(0, |entry| entry.seqno)
    }

    fn kind(&self) -> Kind {
        self.entry().map_or(Kind::Tombstone, |entry| entry.kind)
    }

    fn value(&self) -> &[u8] {
        self.entry().map_or(&[], Entry::value)
    }

    fn value_slice(&self) -> Slice {
        self.entry().map_or_else(|| Slice::from(&[][..]), Entry::value_slice)
    }

    #[inline]
    fn repeats(&self) -> bool {
        let before = self.at.and_then(|at| self.entries.get(at.checked_sub(1)?));
        before.is_some_and(|before| before.key() == self.key())
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.place(Some(0))
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.place(self.entries.len().checked_sub(1))
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let at = self.entries.partition_point(|entry| entry.order(key, seqno) == Ordering::Less);
        self.place(Some(at))
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        let behind = self.entries.partition_point(|entry| entry.order(key, seqno) != Ordering::Greater);
        self.place(behind.checked_sub(1))
    }

    fn next(&mut self) -> Result<()> {
        self.place(self.at.map(|at| at + 1))
    }

    fn prev(&mut self) -> Result<()> {
        self.place(self.at.and_then(|at| at.checked_sub(1)))
    }
}
