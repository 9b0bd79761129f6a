//! I5: a reader at a published sequence number sees a batch whole or not at all.

use super::{config, table};
use crate::schedules::Program;
use crate::sync::{AtomicU64, Mutex, Ordering, PoisonError};
use crate::{Memtable, Op};

/// Writes of a batch.
const BATCH: u64 = 3;
/// Batches of a writer.
const ROUNDS: u64 = 3;

/// The data that writers and readers share.
pub(super) struct Batches {
    memtable: Memtable,
    next: Mutex<u64>,
    published: AtomicU64,
}

impl Batches {
    fn write(&self) {
        let ops = [b"b", b"d", b"f"].map(|key| Op::Put { key, value: b"v" });
        // One lock covers the sequence number and the reservation, so that a later writer has the higher number.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let reservation = self.memtable.reserve(&ops).expect("the table has room");
        let first = *next;
        *next += BATCH;
        drop(next);
        assert_eq!(reservation.apply(first).stored as u64, BATCH);
        let publish =
            || self.published.compare_exchange(first - 1, first + BATCH - 1, Ordering::Release, Ordering::Relaxed);
        while publish().is_err() {
            shuttle::thread::yield_now();
        }
    }

    /// The sequence numbers that are visible at `seqno`.
    fn look(&self, seqno: u64) -> Vec<u64> {
        self.memtable.iter(seqno).map(|version| version.seqno).collect()
    }
}

/// Threads 0 and 1 write batches over the same keys, apply them concurrently and publish their sequence numbers in order, as an engine does.
/// Threads 2 and 3 read at the published number. A batch searches for its places in groups; with `RUN`, a sorted batch is appended behind the last
/// entries of its shard without a search.
pub(super) fn batches<const RUN: bool>() -> Program<Batches, ()> {
    Program {
        new: || {
            let memtable: Memtable = table(config(2));
            memtable.put(if RUN { b"A" } else { b"z" }, 0, b"").expect("the table has room");
            Batches { memtable, next: Mutex::new(1), published: AtomicU64::new(0) }
        },
        thread: |batches, number| {
            for _ in 0..ROUNDS {
                if number < 2 {
                    batches.write();
                    continue;
                }
                let seqno = batches.published.load(Ordering::Acquire);
                let expected = match seqno {
                    0 => vec![0],
                    _ if RUN => vec![0, seqno - 2, seqno - 1, seqno],
                    _ => vec![seqno - 2, seqno - 1, seqno, 0],
                };
                assert_eq!(batches.look(seqno), expected, "I5 broken: at number {seqno}");
                let keys = batches.memtable.get_many(&["b", "d", "f"], seqno);
                assert!(keys.iter().all(|found| *found == keys[0]), "I5 broken: at number {seqno}, {keys:?}");
                assert_eq!(batches.look(seqno), expected, "I5 broken: at number {seqno}, looked again");
            }
        },
        at_rest: |batches, _| {
            batches.memtable.validate();
            assert_eq!(batches.memtable.len() as u64, 1 + 2 * ROUNDS * BATCH);
            assert_eq!(batches.published.load(Ordering::Acquire), 2 * ROUNDS * BATCH);
        },
    }
}
