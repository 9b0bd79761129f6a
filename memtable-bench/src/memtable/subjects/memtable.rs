//! This workspace's `Memtable`, written one by one and in batches. It is read as an engine reads it: the newest version of
//! each key at a sequence number.

use fastskip::{Lookup, Memtable, Op};

use super::{Insert, Record, ScanBack, Search};

/// A number that every write is visible at.
const NEWEST: u64 = u64::MAX;

/// Writes of a batch.
const BATCH: usize = 256;

/// A memtable whose writes come in batches of `LEN`.
pub(crate) struct MemtableInBatches<const LEN: usize>(Memtable);

pub(crate) type OneByOneMemtable = MemtableInBatches<1>;
pub(crate) type BatchedMemtable = MemtableInBatches<BATCH>;

impl<const LEN: usize> MemtableInBatches<LEN> {
    fn for_threads(threads: usize) -> Self {
        Self(Memtable::builder().shards(threads).build())
    }
}

impl Insert for OneByOneMemtable {
    fn new(threads: usize) -> Self {
        Self::for_threads(threads)
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.put(record.key, record.number, record.value).is_ok()).count()
    }
}

impl Insert for BatchedMemtable {
    fn new(threads: usize) -> Self {
        Self::for_threads(threads)
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
}

impl<const LEN: usize> Search for MemtableInBatches<LEN>
where
    Self: Insert,
{
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        match self.0.get(key, NEWEST) {
            Lookup::Value(value) => Some(read(value)),
            Lookup::Tombstone | Lookup::Absent => None,
        }
    }

    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(NEWEST).for_each(|version| each(version.key, version.value));
    }
}

impl<const LEN: usize> ScanBack for MemtableInBatches<LEN>
where
    Self: Insert,
{
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter(NEWEST).rev().for_each(|version| each(version.key, version.value));
    }
}
