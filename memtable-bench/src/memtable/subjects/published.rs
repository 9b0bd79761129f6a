//! The published `fastskip` 0.1.1, by another author. It has no way back from its end.

use fastskip_published::ConcurrentSkipList;

use super::super::shape::Shape;
use super::{Delete, Get, Insert, Ordered, Record, Seek};

/// The workloads of a round that write, each in threads of its own: insert, mixed, mixed-95.
const WRITE_PHASES: usize = 3;

pub(crate) struct PublishedList(ConcurrentSkipList);

impl Insert for PublishedList {
    fn new(shape: &Shape) -> Self {
        // It panics when more threads have written than it has shards, those that are gone included; and the thread that makes
        // it takes one for its head.
        Self(ConcurrentSkipList::with_shards(1 + WRITE_PHASES * shape.threads))
    }

    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize {
        records.filter(|record| self.0.insert(record.key, record.value)).count()
    }

    fn memory_used(&self) -> Option<u64> {
        Some(self.0.memory_usage() as u64)
    }
}

impl Get for PublishedList {
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R> {
        self.0.get_live(key).map(read)
    }
}

impl Ordered for PublishedList {
    fn scan(&self, mut each: impl FnMut(&[u8], &[u8])) {
        // Stops at the first `None`: its iterator must not be asked again past the end.
        for entry in self.0.iter() {
            if !entry.is_tombstone {
                each(entry.key, entry.value);
            }
        }
    }
}

impl Seek for PublishedList {
    fn seek(&self, from: &[u8], most: usize, mut each: impl FnMut(&[u8], &[u8])) {
        let Some(mut cursor) = self.0.cursor_at(from) else { return };
        for read in 0..most {
            if read > 0 && !cursor.next_entry() {
                return;
            }
            if let Some(entry) = cursor.entry() {
                each(entry.key, entry.value);
            }
        }
    }
}

impl Delete for PublishedList {
    fn delete(&self, key: &[u8], _seqno: u64) -> bool {
        self.0.delete(key)
    }
}
