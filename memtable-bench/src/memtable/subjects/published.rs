//! The published `fastskip` 0.1.1, by another author. It has no way back from its end.

use fastskip_published::ConcurrentSkipList;

use super::{Insert, Record, Search};

pub(crate) struct PublishedList(ConcurrentSkipList);

impl Insert for PublishedList {
    fn new(threads: usize) -> Self {
        // It panics when more threads write than it has shards, and the thread that makes it takes one for its head.
        Self(ConcurrentSkipList::with_shards(threads + 1))
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.insert(record.key, record.value)).count()
    }
}

impl Search for PublishedList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_live(key).map(read)
    }

    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        // Stops at the first `None`: its iterator must not be asked again past the end.
        for entry in self.0.iter() {
            each(entry.key, entry.value);
        }
    }
}
