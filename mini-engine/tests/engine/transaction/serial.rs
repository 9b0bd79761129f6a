//! Checks that random transactions on several threads, concurrent with other writes, flushes and compactions, are serializable.

use super::history::{Committed, Op, replay};
use crate::support::*;

/// The histories of one run, and the number of refused transactions.
struct Outcome {
    history: Vec<Committed>,
    conflicts: u64,
}

/// The shared state of the threads of a run.
struct Run<'a> {
    db: &'a Db,
    /// The greatest acknowledged sequence number.
    acknowledged: AtomicU64,
    random: Random,
}

impl Run<'_> {
    /// Runs the transactions of one thread.
    fn transactions(&self, thread: usize, count: u64) -> Outcome {
        let mut random = self.random.at(thread);
        let mut outcome = Outcome { history: Vec::new(), conflicts: 0 };
        for number in 0..count {
            let after = self.acknowledged.load(Ordering::SeqCst);
            let transaction = self.db.transaction();
            let is_reader = random.one_in(6);
            let mut steps = Vec::new();
            for at in 0..1 + random.below(6) {
                // All values differ. Some are long, so that memtables fill quickly.
                let mut value = format!("{thread}.{number}.{at}").into_bytes();
                value.resize(value.len() + if random.one_in(3) { 300 } else { 0 }, b'.');
                let op = Op::random(&mut random, &value);
                if !(is_reader && op.writes()) {
                    let answer = op.run(&transaction).unwrap();
                    steps.push((op, answer));
                }
            }
            if random.one_in(4) {
                thread::yield_now();
            }
            match transaction.commit(Durability::Buffered) {
                Ok(seqno) => {
                    self.acknowledged.fetch_max(seqno, Ordering::SeqCst);
                    outcome.history.push(Committed { seqno, after, steps });
                }
                Err(Error::Conflict { .. }) => outcome.conflicts += 1,
                Err(error) => panic!("{error}"),
            }
        }
        outcome
    }

    /// Runs batches and bulk loads, which do not read.
    fn others(&self, count: u64) -> Outcome {
        let mut random = self.random.at(usize::MAX >> 33);
        let mut history = Vec::new();
        for number in 0..count {
            let after = self.acknowledged.load(Ordering::SeqCst);
            let value = format!("other {number}").into_bytes();
            let ops: Vec<Op> = (0..2).map(|_| Op::random_write(&mut random, &value)).collect();
            let (seqno, ops) = if number % 8 == 0 { self.load(&ops) } else { (self.batch(&ops), ops) };
            self.acknowledged.fetch_max(seqno, Ordering::SeqCst);
            history.push(Committed { seqno, after, steps: ops.into_iter().map(|op| (op, Vec::new())).collect() });
            match number % 16 {
                5 => self.db.flush().unwrap(),
                13 => self.db.compact_range("a"..).unwrap(),
                _ => thread::yield_now(),
            }
        }
        Outcome { history, conflicts: 0 }
    }

    fn batch(&self, ops: &[Op]) -> u64 {
        let mut batch = WriteBatch::new();
        for op in ops {
            match op {
                Op::Insert(key, value) => batch.insert(key, value).unwrap(),
                Op::Remove(key) => batch.remove(key).unwrap(),
                Op::RemoveRange(bounds) => batch.remove_range(bounds.clone()).unwrap(),
                other => unreachable!("{other:?} is no write"),
            }
        }
        self.db.write(batch, Durability::Buffered).unwrap()
    }

    /// Bulk loads the entries of the inserts among `ops`.
    fn load(&self, ops: &[Op]) -> (u64, Vec<Op>) {
        let inserts = ops.iter().filter_map(|op| match op {
            Op::Insert(key, value) => Some((key.clone(), value.clone())),
            _ => None,
        });
        let entries: Map = inserts.collect();
        let seqno = self.db.ingest(&entries).unwrap();
        (seqno, entries.into_iter().map(|(key, value)| Op::Insert(key, value)).collect())
    }
}

/// Runs transactions on `threads` threads, and other writes. Returns the numbers of committed and of refused transactions.
fn check(seed: u64, threads: usize, kind: MemtableKind) -> (usize, u64) {
    let policy = POLICIES[seed as usize % POLICIES.len()];
    let (dir, db) = opened(|b| {
        let small = b.memtable_bytes(4 << 10).memtable_kind(kind).l0_trigger(2).block_bytes(512).compaction(policy);
        small.level1_bytes(4 << 10).table_file_bytes(2 << 10).max_compaction_bytes(1 << 10)
    });
    let run = Run { db: &db, acknowledged: AtomicU64::new(0), random: Random(seed) };
    let outcomes: Vec<Outcome> = thread::scope(|scope| {
        let run = &run;
        let mut handles: Vec<_> = (0..threads).map(|at| scope.spawn(move || run.transactions(at, 150))).collect();
        handles.push(scope.spawn(|| run.others(60)));
        handles.into_iter().map(|handle| handle.join().unwrap()).collect()
    });
    let conflicts = outcomes.iter().map(|of| of.conflicts).sum();
    assert_eq!(db.metrics().conflicts, conflicts);
    let committed: usize = outcomes[..threads].iter().map(|of| of.history.len()).sum();
    let history = outcomes.into_iter().flat_map(|of| of.history).collect();
    let expected = replay(history).unwrap_or_else(|difference| panic!("seed {seed}, {threads} threads: {difference}"));
    assert_eq!(entries(&db), expected, "seed {seed}, {threads} threads: what was refused has left a trace");
    assert_eq!(entries(&reopened(db, &dir)), expected, "seed {seed}, {threads} threads: after a reopen");
    (committed, conflicts)
}

/// The number of histories, and of runs of 16 seeds in `view`; `TRANSACTION_ROUNDS` sets another one.
pub(super) fn rounds() -> u64 {
    proof::environment::number("TRANSACTION_ROUNDS").unwrap_or(4)
}

#[test]
fn committed_transactions_are_serial_in_the_order_of_their_numbers() {
    // Catches a commit that misses a change of read data: present or absent keys and ranges, changed by inserts, removals of keys and of ranges,
    // loads and other transactions, before, during and after the check, across flushes and compactions. Also catches a commit that is not atomic,
    // one that is ordered before earlier acknowledged writes, and a refused one that leaves a trace.
    let mut all_conflicts = 0;
    for seed in 0..rounds() {
        let threads = 2 + seed as usize % 3;
        let kind = if seed % 4 == 3 { MemtableKind::Vector } else { MemtableKind::SkipList };
        let (committed, conflicts) = check(seed, threads, kind);
        assert!(committed > 100, "seed {seed}: {committed} committed");
        all_conflicts += conflicts;
    }
    // On a busy machine the threads of one history may hardly meet.
    assert!(all_conflicts > 10, "{all_conflicts} conflicts");
}
