//! I6: limits hold for every writer, and a refused write leaves nothing behind.

use super::{config, limited, table};
use crate::builder::Config;
use crate::schedules::{Program, THREADS};
use crate::{InsertError, Memtable, Op};

/// Whether a write was accepted; if not, the table must be full.
fn accepted<T>(result: Result<T, InsertError>) -> bool {
    result.inspect_err(|refusal| assert_eq!(*refusal, InsertError::Full)).is_ok()
}

/// All threads store more entries than the limit allows, in three shards; two threads also reserve and drop.
pub(super) fn entries() -> Program<Memtable, usize> {
    const MOST: usize = 9;
    Program {
        new: || table(Config { max_entries: MOST, ..config(3) }),
        thread: |memtable, number| {
            if number < 2 {
                let keys = [[1, number as u8], [2, number as u8]];
                drop(memtable.reserve(&keys.each_ref().map(|key| Op::Delete { key })));
            }
            (0..4).filter(|round| accepted(memtable.put(&[*round, number as u8], 1, b""))).count()
        },
        at_rest: |memtable, seen| {
            memtable.validate();
            let stored: usize = seen.iter().sum();
            assert_eq!(memtable.len(), stored);
            assert!(stored <= MOST, "I6 broken: {stored} entries stored, {MOST} allowed");
            // A thread that was refused while another held room may have left some room unused; the next writer can take it.
            let more = (stored..MOST).filter(|round| accepted(memtable.put(&[9, *round as u8], 1, b""))).count();
            assert_eq!(stored + more, MOST, "I6 broken: room is lost");
            assert!(!accepted(memtable.put(b"more", 1, b"")));
            memtable.validate();
        },
    }
}

/// All threads store until the limit on memory refuses them.
pub(super) fn memory() -> Program<Memtable, usize> {
    // The allowed bytes, and the bytes of an entry.
    const LIMIT: usize = 64 * 8;
    const ENTRY: usize = 3 * 8;
    Program {
        new: || table(limited(2, LIMIT)),
        thread: |memtable, number| {
            (0..8).take_while(|round| accepted(memtable.put(&[*round, number as u8], 1, b""))).count()
        },
        at_rest: |memtable, seen| {
            memtable.validate();
            assert_eq!(memtable.len(), seen.iter().sum::<usize>());
            let used = memtable.memory_usage();
            assert!(used <= LIMIT + THREADS * ENTRY, "I6 broken: {used} bytes used, {LIMIT} allowed");
        },
    }
}
