//! [`VectorTable`]: an append-only memtable, for loads with writes and no reads.
//!
//! Entries are stored in the order in which they were applied; a write neither searches nor links. They are sorted once, by the first scan after the
//! freeze, which is the flush. Until then a point read examines all entries, and a scan sorts a copy of them: the results are right, but this is
//! affordable only for a few reads. (RocksDB has the same in its `VectorRepFactory`.)
//!
//! T1 entries are appended, by one writer at a time; no entry ever changes. A sequence number is published after the entries of all numbers up to it
//!    were appended, so a reader that sees the number sees these entries.
//! T2 after the freeze nothing is appended, so the entries that are sorted then are complete.

mod sorted;

use std::cmp::Ordering;
use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use fastskip::{InsertError, Op};

use self::sorted::{ENTRY_BYTES, Sorted, UnsortedEntries, VectorEntry};
use crate::error::Result;
use crate::iter::EntryIter;
use crate::types::{Kind, SeqNo, Slice};

/// The bytes of keys and values in one chunk of a [`VectorBuilder`].
const CHUNK_BYTES: usize = 64 << 10;

/// The number of entries that a scan fetches from memory together.
const FETCHED_AT_ONCE: usize = 16;

#[derive(Debug, Default)]
struct Appended {
    entries: UnsortedEntries,
    /// Bytes of the entries, including reserved ones.
    memory: usize,
    frozen: bool,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    appended: RwLock<Appended>,
    /// Created by the first scan after the freeze.
    sorted: OnceLock<Arc<Sorted>>,
}

/// An append-only memtable. Clones share the memtable.
#[derive(Clone, Debug)]
pub(crate) struct VectorTable(Arc<Shared>);

impl VectorTable {
    /// An empty table for about `limit` bytes.
    pub(crate) fn new(limit: usize) -> VectorTable {
        VectorTable(Arc::new(Shared { limit, appended: RwLock::default(), sorted: OnceLock::new() }))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of entries of all kinds.
    pub(crate) fn len(&self) -> usize {
        self.0.sorted.get().map_or_else(|| self.read().entries.len(), |sorted| sorted.len())
    }

    /// Bytes of the entries with their keys and values, including reserved ones.
    pub(crate) fn memory_usage(&self) -> usize {
        self.read().memory
    }

    pub(crate) fn freeze(&self) {
        self.write().frozen = true;
    }

    /// Checks and copies `ops`, so that applying them cannot fail.
    pub(crate) fn reserve(&self, ops: &[Op<'_>]) -> Result<VectorReservation<'_>, InsertError> {
        let payload: usize = ops.iter().map(|op| op_len(op)).sum();
        if u32::try_from(payload).is_err() {
            return Err(InsertError::TooLarge);
        }
        let memory = payload + ops.len() * ENTRY_BYTES;
        let mut appended = self.write();
        if appended.frozen {
            return Err(InsertError::Frozen);
        }
        if appended.memory + memory > self.0.limit && appended.memory > 0 {
            return Err(InsertError::Full);
        }
        appended.memory += memory;
        drop(appended);
        let mut bytes = Vec::with_capacity(payload);
        let entries = ops.iter().map(|op| append(&mut bytes, op)).collect();
        Ok(VectorReservation { table: self, bytes: Arc::from(bytes), entries, memory })
    }

    /// Calls `take` with number, kind and stored value of the newest version of `key` with a number <= `seqno`, and returns the result. O(entries)
    /// before the first scan after the freeze, O(log entries) afterwards.
    pub(crate) fn get<T>(&self, key: &[u8], seqno: SeqNo, take: impl FnOnce(SeqNo, Kind, &[u8]) -> T) -> Option<T> {
        let found = |(seqno, kind, stored): (SeqNo, Kind, &[u8])| take(seqno, kind, stored);
        match self.0.sorted.get() {
            Some(sorted) => sorted.find(key, seqno).map(found),
            None => self.read().entries.find(key, seqno).map(found),
        }
    }

    /// All present entries, sorted. O(n log n) for each call before the freeze, once after it.
    pub(crate) fn iter(&self) -> VectorIter {
        VectorIter { entries: self.sorted(), at: usize::MAX }
    }

    fn sorted(&self) -> Arc<Sorted> {
        let (entries, frozen) = {
            let appended = self.read();
            match self.0.sorted.get() {
                Some(sorted) => return sorted.clone(),
                None => (appended.entries.clone(), appended.frozen),
            }
        };
        let sorted = Arc::new(Sorted::new(entries));
        if frozen {
            // Two scans may have sorted the same entries: only one result is kept.
            return self.0.sorted.get_or_init(|| sorted).clone();
        }
        sorted
    }

    fn read(&self) -> RwLockReadGuard<'_, Appended> {
        // An append is one step, so a panic of its thread leaves entries whole; the published number decides which ones are visible.
        self.0.appended.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Appended> {
        self.0.appended.write().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's kind of an entry. An entry of tombstone kind with a value is an entry that expires.
#[inline]
pub(super) fn kind(kind: fastskip::Kind, has_value: bool) -> Kind {
    match kind {
        fastskip::Kind::Value => Kind::Value,
        _ if has_value => Kind::Expiring,
        _ => Kind::Tombstone,
    }
}

/// The engine's kind of the entry that `op` stores.
pub(super) fn kind_of(op: &Op<'_>) -> Kind {
    kind(op.kind(), !op.value().is_empty())
}

fn op_len(op: &Op<'_>) -> usize {
    op.key().len() + op.value().iter().map(|part| part.len()).sum::<usize>()
}

/// Appends the key and the value of `op` to `bytes`, and returns their positions. Both lengths are within their limits.
fn append(bytes: &mut Vec<u8>, op: &Op<'_>) -> VectorEntry {
    let key = bytes.len() as u32;
    bytes.extend_from_slice(op.key());
    op.value().iter().for_each(|part| bytes.extend_from_slice(part));
    VectorEntry::new(key, op.key().len() as u32, bytes.len() as u32, kind_of(op))
}

/// A chunk for `op` alone, which has `len` bytes: they are copied once.
fn alone(op: &Op<'_>, len: usize) -> (Arc<[u8]>, VectorEntry) {
    let mut bytes: Arc<[u8]> = std::iter::repeat_n(0, len).collect();
    let mut rest = Arc::get_mut(&mut bytes).unwrap_or_default();
    for part in std::iter::once(&op.key()).chain(op.value()) {
        let (to, behind) = rest.split_at_mut(part.len());
        to.copy_from_slice(part);
        rest = behind;
    }
    (bytes, VectorEntry::new(0, op.key().len() as u32, len as u32, kind_of(op)))
}

/// Fills a table on one thread, before any thread reads it: no lock is needed, and entries share large chunks of memory.
#[derive(Debug, Default)]
pub(crate) struct VectorBuilder {
    entries: UnsortedEntries,
    chunk: Vec<u8>,
    memory: usize,
}

impl VectorBuilder {
    /// Bytes of the entries with their keys and values.
    pub(crate) fn memory_usage(&self) -> usize {
        self.memory
    }

    /// Adds `op` with sequence number `seqno`, which is above all earlier ones.
    pub(crate) fn push(&mut self, op: &Op<'_>, seqno: SeqNo) {
        let len = op_len(op);
        self.memory += len + ENTRY_BYTES;
        if self.chunk.len() + len > CHUNK_BYTES {
            self.end_chunk();
        }
        if len > CHUNK_BYTES {
            let (bytes, entry) = alone(op, len);
            self.entries.extend([entry], seqno);
            self.entries.end_chunk(bytes);
            return;
        }
        let entry = append(&mut self.chunk, op);
        self.entries.extend([entry], seqno);
    }

    fn end_chunk(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        self.entries.end_chunk(Arc::from(&*self.chunk));
        self.chunk.clear();
    }

    /// The table, frozen and sorted.
    pub(crate) fn finish(mut self) -> VectorTable {
        self.end_chunk();
        let appended = Appended { entries: UnsortedEntries::default(), memory: self.memory, frozen: true };
        let sorted = OnceLock::from(Arc::new(Sorted::new(self.entries)));
        VectorTable(Arc::new(Shared { limit: 0, appended: RwLock::new(appended), sorted }))
    }
}

/// Operations that can be applied without errors.
#[derive(Debug)]
pub(crate) struct VectorReservation<'a> {
    table: &'a VectorTable,
    bytes: Arc<[u8]>,
    entries: Vec<VectorEntry>,
    /// The memory to return if the operations are not applied. Several writers may hold reservations at once.
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
    /// Appends the operations; the first one gets sequence number `first`.
    pub(crate) fn apply(mut self, first: SeqNo) {
        self.memory = 0;
        let (bytes, reserved) = (self.bytes.clone(), std::mem::take(&mut self.entries));
        let entries = &mut self.table.write().entries;
        entries.extend(reserved, first);
        entries.end_chunk(bytes);
    }
}

/// A cursor over sorted entries; it keeps them alive.
pub(crate) struct VectorIter {
    entries: Arc<Sorted>,
    /// The index of the current entry; the number of entries if the cursor is invalid.
    at: usize,
}

impl EntryIter for VectorIter {
    fn valid(&self) -> bool {
        self.at < self.entries.len()
    }

    fn key(&self) -> &[u8] {
        self.entries.key(self.at)
    }

    fn seqno(&self) -> SeqNo {
        self.entries.seqno(self.at)
    }

    fn kind(&self) -> Kind {
        self.entries.kind(self.at)
    }

    fn value(&self) -> &[u8] {
        self.entries.value(self.at)
    }

    fn value_slice(&self) -> Slice {
        self.entries.value_slice(self.at)
    }

    #[inline]
    fn repeats(&self) -> bool {
        self.valid() && self.entries.repeats(self.at)
    }

    fn seek_to_first(&mut self) -> Result<()> {
        self.at = 0;
        Ok(())
    }

    fn seek_to_last(&mut self) -> Result<()> {
        self.at = self.entries.len().wrapping_sub(1);
        Ok(())
    }

    fn seek(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.at = self.entries.count(key, seqno, |order| order == Ordering::Less);
        Ok(())
    }

    fn seek_for_prev(&mut self, key: &[u8], seqno: SeqNo) -> Result<()> {
        self.at = self.entries.count(key, seqno, |order| order != Ordering::Greater).wrapping_sub(1);
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        if self.valid() {
            self.at += 1;
            if self.at.is_multiple_of(FETCHED_AT_ONCE) {
                self.entries.fetch(self.at..self.at + FETCHED_AT_ONCE);
            }
        }
        Ok(())
    }

    fn prev(&mut self) -> Result<()> {
        if self.valid() {
            self.at = self.at.wrapping_sub(1);
        }
        Ok(())
    }
}
