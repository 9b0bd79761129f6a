//! I5: a batch is seen whole or not at all by who reads at a published number.

use super::{config, table};
use crate::schedules::Program;
use crate::sync::{AtomicU64, Mutex, Ordering, PoisonError};
use crate::{Memtable, Op};

/// Writes of a batch.
const BATCH: u64 = 3;
/// Batches of a writer.
const ROUNDS: u64 = 3;

/// Threads 0 and 1 write batches over the same keys, apply them at once and publish their numbers in order, as an engine
/// does; threads 2 and 3 read at what is published. Batches are searched for as
/// groups or, with `RUN`, follow what their shard stored before where it was in order.
pub(super) struct Batches<const RUN: bool> {
    memtable: Memtable,
    next: Mutex<u64>,
    published: AtomicU64,
}

impl<const RUN: bool> Batches<RUN> {
    fn write(&self) {
        let ops = [b"b", b"d", b"f"].map(|key| Op::Put { key, value: b"v" });
        // Number and room in one step, so that who comes later has the higher number.
        let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
        let reservation = self.memtable.reserve(&ops).expect("the table has room");
        let first = *next;
        *next += BATCH;
        drop(next);
        assert_eq!(reservation.apply(first) as u64, BATCH);
        while self
            .published
            .compare_exchange(first - 1, first + BATCH - 1, Ordering::Release, Ordering::Relaxed)
            .is_err()
        {
            shuttle::thread::yield_now();
        }
    }

    /// The numbers that are visible at `seqno`.
    fn look(&self, seqno: u64) -> Vec<u64> {
        self.memtable.iter(seqno).map(|version| version.seqno).collect()
    }
}

impl<const RUN: bool> Program for Batches<RUN> {
    type Seen = ();

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        memtable.put(if RUN { b"A" } else { b"z" }, 0, b"").expect("the table has room");
        Self { memtable, next: Mutex::new(1), published: AtomicU64::new(0) }
    }

    fn thread(&self, number: usize) {
        for _ in 0..ROUNDS {
            if number < 2 {
                self.write();
                continue;
            }
            let seqno = self.published.load(Ordering::Acquire);
            let expected = match seqno {
                0 => vec![0],
                _ if RUN => vec![0, seqno - 2, seqno - 1, seqno],
                _ => vec![seqno - 2, seqno - 1, seqno, 0],
            };
            assert_eq!(self.look(seqno), expected, "I5 broken: at number {seqno}");
            let keys = self.memtable.get_many(&["b", "d", "f"], seqno);
            assert!(keys.iter().all(|found| *found == keys[0]), "I5 broken: at number {seqno}, {keys:?}");
            assert_eq!(self.look(seqno), expected, "I5 broken: at number {seqno}, looked again");
        }
    }

    fn at_rest(&self, _: Vec<()>) {
        self.memtable.validate();
        assert_eq!(self.memtable.len() as u64, 1 + 2 * ROUNDS * BATCH);
        assert_eq!(self.published.load(Ordering::Acquire), 2 * ROUNDS * BATCH);
    }
}
