//! This workspace's `Memtable`, written one by one and in batches. It is read as an engine reads it: the newest version of
//! each key at a sequence number.

use fastskip::{Kind, Lookup, Memtable, Op, Version};

use super::super::shape::Shape;
use super::{BATCH, Delete, Freeze, Get, GetMany, Insert, Ordered, Record, ScanBack, Seek};

/// A number that every write is visible at.
const NEWEST: u64 = u64::MAX;

/// A memtable whose writes come in batches of `LEN`.
pub(crate) struct MemtableInBatches<const LEN: usize>(Memtable);

pub(crate) type OneByOneMemtable = MemtableInBatches<1>;
pub(crate) type BatchedMemtable = MemtableInBatches<BATCH>;

impl<const LEN: usize> MemtableInBatches<LEN> {
    fn for_threads(threads: usize) -> Self {
        Self(Memtable::builder().shards(threads).build())
    }
}

/// A reader skips what is deleted.
fn is_live(version: &Version<'_>) -> bool {
    version.kind == Kind::Value
}

fn value(found: Lookup<'_>) -> Option<&[u8]> {
    match found {
        Lookup::Value(value) => Some(value),
        Lookup::Tombstone | Lookup::Absent => None,
    }
}

impl Insert for OneByOneMemtable {
    fn new(shape: &Shape) -> Self {
        Self::for_threads(shape.threads)
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.put(record.key, record.number, record.value).is_ok()).count()
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.0.memory_usage() as u64)
    }

    fn cas_failures(&self) -> Option<u64> {
        Some(self.0.stats().cas_failures as u64)
    }
}

impl Insert for BatchedMemtable {
    fn new(shape: &Shape) -> Self {
        Self::for_threads(shape.threads)
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        let mut records = records.peekable();
        let mut stored = 0;
        while let Some(first) = records.peek() {
            let first_seqno = first.number;
            // Made anew for each batch, as an engine does with each write it is given.
            let batch = records.by_ref().take(BATCH);
            let ops: Vec<_> = batch.map(|record| Op::Put { key: record.key, value: record.value }).collect();
            stored += self.0.reserve(&ops).map_or(0, |reservation| reservation.apply(first_seqno));
        }
        stored
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.0.memory_usage() as u64)
    }

    fn cas_failures(&self) -> Option<u64> {
        Some(self.0.stats().cas_failures as u64)
    }
}

impl Get for OneByOneMemtable {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        value(self.0.get(key, NEWEST)).map(read)
    }
}

impl GetMany for BatchedMemtable {
    fn get_many<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, mut each: impl FnMut(&[u8])) {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let batch: Vec<_> = keys.by_ref().take(BATCH).collect();
            self.0.get_many(&batch, NEWEST).into_iter().filter_map(value).for_each(&mut each);
        }
    }
}

impl<const LEN: usize> Ordered for MemtableInBatches<LEN>
where
    Self: Insert,
{
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(NEWEST).filter(is_live).for_each(|version| each(version.key, version.value));
    }
}

impl Seek for OneByOneMemtable {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        // By the cursor, as merging iterators read it, and as the list peers are read: of whatever kind an entry is.
        let mut cursor = self.0.cursor();
        let mut is_on = cursor.seek(from, NEWEST);
        for left in (0..most).rev() {
            if !is_on {
                return;
            }
            each(cursor.key(), cursor.value());
            is_on = left > 0 && cursor.next();
        }
    }
}

impl ScanBack for OneByOneMemtable {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(NEWEST).rev().filter(is_live).for_each(|version| each(version.key, version.value));
    }
}

impl Delete for OneByOneMemtable {
    fn delete(&self, key: &[u8], seqno: u64) -> bool {
        // It stores the delete, whether the key is there or not.
        self.0.delete(key, seqno).is_ok()
    }
}

impl Freeze for OneByOneMemtable {
    fn freeze_and_scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        // Every version, as a flush writes them.
        self.0.freeze().all_versions().for_each(|version| each(version.key, version.value));
    }
}
