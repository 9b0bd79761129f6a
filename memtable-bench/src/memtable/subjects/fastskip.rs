//! This workspace's `ConcurrentSkipList`.

use fastskip::ConcurrentSkipList;

use super::{Insert, Record, ScanBack, Search};

pub(crate) struct FastskipList(ConcurrentSkipList);

impl Insert for FastskipList {
    fn new(threads: usize) -> Self {
        Self(ConcurrentSkipList::with_shards(threads))
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.insert(record.key, record.value)).count()
    }
}

impl Search for FastskipList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_live(key).map(read)
    }

    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().for_each(|entry| each(entry.key, entry.value));
    }
}

impl ScanBack for FastskipList {
    fn scan_back(&self, mut each: impl FnMut(&[u8], &[u8])) {
        self.0.iter().rev().for_each(|entry| each(entry.key, entry.value));
    }
}
