//! This workspace's `ConcurrentSkipList`, one by one and in batches.

use fastskip::ConcurrentSkipList;

use super::super::shape::Shape;
use super::{BATCH, Delete, Freeze, Get, GetMany, Insert, Ordered, Record, ScanBack, Seek};

/// A list whose writes come in batches of `LEN`.
pub(crate) struct ListInBatches<const LEN: usize>(ConcurrentSkipList);

pub(crate) type FastskipList = ListInBatches<1>;
pub(crate) type BatchedList = ListInBatches<BATCH>;

impl<const LEN: usize> ListInBatches<LEN> {
    fn for_threads(threads: usize) -> Self {
        Self(ConcurrentSkipList::with_shards(threads))
    }
}

impl Insert for FastskipList {
    fn new(shape: &Shape) -> Self {
        Self::for_threads(shape.threads)
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.insert(record.key, record.value)).count()
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.0.memory_usage() as u64)
    }

    fn cas_failures(&self) -> Option<u64> {
        Some(self.0.stats().cas_failures as u64)
    }
}

impl Insert for BatchedList {
    fn new(shape: &Shape) -> Self {
        Self::for_threads(shape.threads)
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        let mut records = records.peekable();
        let mut stored = 0;
        while records.peek().is_some() {
            let batch: Vec<_> = records.by_ref().take(BATCH).map(|record| (record.key, record.value)).collect();
            stored += self.0.insert_batch(&batch).unwrap_or(0);
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

impl Get for FastskipList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_live(key).map(read)
    }
}

impl GetMany for BatchedList {
    fn get_many<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, mut each: impl FnMut(&[u8])) {
        let mut keys = keys.peekable();
        while keys.peek().is_some() {
            let batch: Vec<_> = keys.by_ref().take(BATCH).collect();
            self.0.get_many(&batch).into_iter().flatten().for_each(&mut each);
        }
    }
}

impl<const LEN: usize> Ordered for ListInBatches<LEN>
where
    Self: Insert,
{
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value));
    }
}

impl Seek for FastskipList {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let Some(mut cursor) = self.0.cursor_at(from) else { return };
        for _ in 0..most {
            let Some(entry) = cursor.next_entry() else { return };
            each(entry.key, entry.value);
        }
    }
}

impl ScanBack for FastskipList {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().rev().filter(|entry| !entry.is_tombstone).for_each(|entry| each(entry.key, entry.value));
    }
}

impl Delete for FastskipList {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.0.delete(key)
    }
}

impl Freeze for FastskipList {
    fn freeze_and_scan(&self, each: impl FnMut(&[u8], &[u8])) {
        self.0.freeze();
        self.scan(each);
    }
}
