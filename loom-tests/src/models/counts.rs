//! I6: what a table counts never contradicts what it held.

use crate::ConcurrentSkipList;
use crate::check::Program;
use crate::models::table::{config, table, through};

/// Thread 0 inserts, thread 1 deletes what it finds, thread 2 reads the counts of a list that always holds a live key.
pub(super) struct Deleted(ConcurrentSkipList);

impl Program for Deleted {
    const THREADS: usize = 3;

    fn new() -> Self {
        let list: ConcurrentSkipList = table(config(2));
        through(1, || assert!(list.insert(b"a", b"")));
        Self(list)
    }

    fn thread(&self, number: usize) -> String {
        match number {
            0 => assert!(self.0.insert(b"b", b"")),
            // The list holds "b", or "a".
            1 => drop(self.0.contains_key(b"b") && self.0.delete(b"a")),
            _ => {
                let stats = self.0.stats();
                assert!(stats.tombstones < stats.entries && stats.len > 0, "I6 broken: {stats:?}");
            }
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        String::new()
    }
}

pub(super) const DELETED: &[&str] = &[""];
