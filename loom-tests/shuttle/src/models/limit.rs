//! I6: limits hold whoever writes, and what is refused leaves nothing behind.

use super::{config, table};
use crate::builder::Config;
use crate::schedules::{Program, THREADS};
use crate::{InsertError, Memtable, Op};

/// Says whether a write went through; if not, the table must be full.
fn accepted(result: Result<(), InsertError>) -> bool {
    result.inspect_err(|refusal| assert_eq!(*refusal, InsertError::Full)).is_ok()
}

/// All threads store, through three shards, more entries than the limit allows; two also reserve and drop.
pub(super) struct Entries(Memtable);

const MOST: usize = 9;

impl Program for Entries {
    type Seen = usize;

    fn new() -> Self {
        Self(table(Config { max_entries: MOST, ..config(3) }))
    }

    fn thread(&self, number: usize) -> usize {
        if number < 2 {
            let keys = [[1, number as u8], [2, number as u8]];
            drop(self.0.reserve(&keys.each_ref().map(|key| Op::Delete { key })));
        }
        (0..4).filter(|round| accepted(self.0.put(&[*round, number as u8], 1, b""))).count()
    }

    fn at_rest(&self, seen: Vec<usize>) {
        self.0.validate();
        let stored: usize = seen.iter().sum();
        assert_eq!(self.0.len(), stored);
        assert!(stored <= MOST, "I6 broken: {stored} entries stored, {MOST} allowed");
        // Who was refused while another held room may have left some; it is there for the next one.
        let more = (stored..MOST).filter(|round| accepted(self.0.put(&[9, *round as u8], 1, b""))).count();
        assert_eq!(stored + more, MOST, "I6 broken: room is lost");
        assert!(!accepted(self.0.put(b"more", 1, b"")));
        self.0.validate();
    }
}

/// All threads store until the limit on memory refuses them.
pub(super) struct Memory(Memtable);

/// Bytes allowed.
const LIMIT: usize = 64 * 8;
/// Bytes of an entry.
const ENTRY: usize = 3 * 8;

impl Program for Memory {
    type Seen = usize;

    fn new() -> Self {
        Self(table(Config { max_memory_bytes: LIMIT, ..config(2) }))
    }

    fn thread(&self, number: usize) -> usize {
        (0..8).take_while(|round| accepted(self.0.put(&[*round, number as u8], 1, b""))).count()
    }

    fn at_rest(&self, seen: Vec<usize>) {
        self.0.validate();
        assert_eq!(self.0.len(), seen.iter().sum::<usize>());
        let used = self.0.memory_usage();
        assert!(used <= LIMIT + THREADS * ENTRY, "I6 broken: {used} bytes used, {LIMIT} allowed");
    }
}
