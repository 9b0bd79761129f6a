//! Random operations against an ordinary map, everything readable compared after every step.

use std::ops::Bound;

use mini_engine::{Compaction, Compression, Db, Durability, Iter, Snapshot, TableReads, WriteBatch};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::scratch::TempDir;
use crate::support::{Map, POLICIES, pairs, wait_while};

type Key = Vec<u8>;

#[derive(Clone, Debug)]
enum Step {
    Insert(Key, usize),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
    Batch(Vec<BatchStep>, bool),
    Flush,
    Persist,
    TakeSnapshot,
    DropSnapshot,
    /// By `close`, or by a plain drop; and with a policy and a size ratio.
    Reopen(bool, (Compaction, u64)),
    CompactRange(Bound<Key>, Bound<Key>),
    WaitForCompactions,
    /// A range walked from both ends, in the order that the bits give, and a seek in between.
    Walk(Bound<Key>, Bound<Key>, Vec<bool>, Option<Key>),
    Prefix(Key),
    Cursor(Key, Vec<bool>),
}

/// An operation of a batch.
#[derive(Clone, Debug)]
enum BatchStep {
    Insert(Key, usize),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
}

fn key() -> impl Strategy<Value = Key> {
    vec(prop::sample::select(&[0u8, b'a', b'b', 0xff][..]), 0..4)
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

fn policy() -> impl Strategy<Value = (Compaction, u64)> {
    (prop::sample::select(&POLICIES[..]), 2..5u64)
}

fn step() -> impl Strategy<Value = Step> {
    let len = 0..900usize;
    let in_batch = prop_oneof![
        6 => (key(), len.clone()).prop_map(|(key, len)| BatchStep::Insert(key, len)),
        6 => key().prop_map(BatchStep::Remove),
        1 => (bound(), bound()).prop_map(|(lower, upper)| BatchStep::RemoveRange(lower, upper)),
    ];
    let batch = vec(in_batch, 0..20);
    prop_oneof![
        12 => (key(), len).prop_map(|(key, len)| Step::Insert(key, len)),
        5 => key().prop_map(Step::Remove),
        3 => (bound(), bound()).prop_map(|(lower, upper)| Step::RemoveRange(lower, upper)),
        // Up to several memtables in one batch.
        4 => (batch, any::<bool>()).prop_map(|(ops, synced)| Step::Batch(ops, synced)),
        1 => Just(Step::Flush),
        1 => Just(Step::Persist),
        2 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        2 => (any::<bool>(), policy()).prop_map(|(close, policy)| Step::Reopen(close, policy)),
        1 => (bound(), bound()).prop_map(|(lower, upper)| Step::CompactRange(lower, upper)),
        1 => Just(Step::WaitForCompactions),
        4 => (bound(), bound(), vec(any::<bool>(), 0..30), prop::option::of(key()))
            .prop_map(|(lower, upper, ends, seek)| Step::Walk(lower, upper, ends, seek)),
        1 => key().prop_map(Step::Prefix),
        2 => (key(), vec(any::<bool>(), 0..20)).prop_map(|(key, moves)| Step::Cursor(key, moves)),
    ]
}

struct Run {
    dir: TempDir,
    db: Option<Db>,
    model: Map,
    snapshots: Vec<(Snapshot, Map)>,
    written: u64,
}

impl Run {
    fn new(policy: (Compaction, u64)) -> Run {
        let dir = TempDir::new().unwrap();
        let db = Some(open(&dir, policy));
        Run { dir, db, model: Map::new(), snapshots: Vec::new(), written: 0 }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    /// Bytes that differ for each write, so that an old version is never taken for a new one.
    fn value(&mut self, len: usize) -> Vec<u8> {
        self.written += 1;
        let mut value = self.written.to_le_bytes().to_vec();
        value.resize(8 + len, self.written as u8);
        value
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Insert(key, len) => {
                let value = self.value(len);
                self.db().insert(&key, &value).unwrap();
                self.model.insert(key, value);
            }
            Step::Remove(key) => {
                self.db().remove(&key).unwrap();
                self.model.remove(&key);
            }
            Step::RemoveRange(lower, upper) => {
                self.db().remove_range((lower.clone(), upper.clone())).unwrap();
                remove_range(&mut self.model, (lower, upper));
            }
            Step::Batch(ops, synced) => self.batch(ops, synced),
            Step::Flush => self.db().flush().unwrap(),
            Step::Persist => self.db().persist(Durability::Synced).unwrap(),
            Step::TakeSnapshot => self.snapshots.push((self.db().snapshot(), self.model.clone())),
            Step::DropSnapshot => drop((!self.snapshots.is_empty()).then(|| self.snapshots.remove(0))),
            Step::Reopen(close, policy) => self.reopen(close, policy),
            Step::CompactRange(lower, upper) => self.db().compact_range((lower, upper)).unwrap(),
            Step::WaitForCompactions => self.db().wait_for_compactions().unwrap(),
            Step::Walk(lower, upper, ends, seek) => {
                let iter = self.db().range((lower.clone(), upper.clone()));
                walk(iter, &self.model, (lower, upper), &ends, seek);
            }
            Step::Prefix(prefix) => {
                let expected: Vec<_> = self.model.iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
                assert_eq!(pairs(self.db().prefix(&prefix)), owned(&expected));
                let rest: Vec<_> = expected.into_iter().rev().collect();
                assert_eq!(pairs(self.db().prefix(&prefix).rev()), owned(&rest));
            }
            Step::Cursor(key, moves) => self.cursor(&key, &moves),
        }
    }

    fn batch(&mut self, ops: Vec<BatchStep>, synced: bool) {
        let mut batch = WriteBatch::new();
        for op in ops {
            match op {
                BatchStep::Insert(key, len) => {
                    let value = self.value(len);
                    batch.insert(&key, &value).unwrap();
                    self.model.insert(key, value);
                }
                BatchStep::Remove(key) => {
                    batch.remove(&key).unwrap();
                    self.model.remove(&key);
                }
                BatchStep::RemoveRange(lower, upper) => {
                    batch.remove_range((lower.clone(), upper.clone())).unwrap();
                    remove_range(&mut self.model, (lower, upper));
                }
            }
        }
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let (before, count) = (self.db().snapshot().seqno(), batch.len() as u64);
        assert_eq!(self.db().write(batch, durability).unwrap(), before + count);
    }

    fn reopen(&mut self, close: bool, policy: (Compaction, u64)) {
        // A snapshot keeps the directory locked.
        self.snapshots.clear();
        let seqno = self.db().snapshot().seqno();
        let db = self.db.take().expect("open between steps");
        if close {
            db.close().unwrap();
        } else {
            drop(db);
        }
        self.db = Some(open(&self.dir, policy));
        assert_eq!(self.db().snapshot().seqno(), seqno);
        assert_eq!(self.db().recovery().torn, None);
        assert!(!close || self.db().recovery().batches_replayed == 0);
    }

    fn cursor(&self, key: &[u8], moves: &[bool]) {
        let all: Vec<(&Key, &Vec<u8>)> = self.model.iter().collect();
        let mut cursor = self.db().cursor();
        cursor.seek_for_prev(key).unwrap();
        let last_at_or_before = all.partition_point(|(k, _)| k.as_slice() <= key).checked_sub(1);
        assert_eq!(cursor.valid().then(|| cursor.key().to_vec()), last_at_or_before.map(|at| all[at].0.clone()));
        cursor.seek(key).unwrap();
        let mut at = Some(all.partition_point(|(k, _)| k.as_slice() < key));
        for forward in moves {
            let expected = at.and_then(|at| all.get(at)).map(|(key, value)| (&key[..], &value[..]));
            assert_eq!(cursor.valid().then(|| (cursor.key(), cursor.value())), expected);
            // From nowhere there is no way back.
            at = expected.and(if *forward { at.map(|at| at + 1) } else { at.and_then(|at| at.checked_sub(1)) });
            if *forward { cursor.advance().unwrap() } else { cursor.retreat().unwrap() }
        }
    }

    fn compare(&self) {
        let db = self.db();
        let all: Vec<_> = self.model.iter().collect();
        assert_eq!(pairs(db.iter()), owned(&all));
        let backward: Vec<_> = all.iter().rev().copied().collect();
        assert_eq!(pairs(db.iter().rev()), owned(&backward));
        let keys: Vec<Key> =
            [&[][..], b"a", b"b", b"ab", b"\xff", b"\xff\xff\xff", b"b\0a", b"never"].map(<[u8]>::to_vec).to_vec();
        let expected: Vec<Option<&Vec<u8>>> = keys.iter().map(|key| self.model.get(key)).collect();
        let many = db.get_many(&keys).unwrap();
        assert_eq!(
            many.iter().map(|value| value.as_ref().map(|v| v.to_vec())).collect::<Vec<_>>(),
            expected.iter().map(|v| v.cloned()).collect::<Vec<_>>()
        );
        for (key, value) in keys.iter().zip(expected) {
            assert_eq!(db.get(key).unwrap().map(|v| v.to_vec()).as_ref(), value);
            assert_eq!(db.contains_key(key).unwrap(), value.is_some());
        }
        for (snapshot, model) in &self.snapshots {
            let all: Vec<_> = model.iter().collect();
            assert_eq!(pairs(snapshot.iter()), owned(&all));
            for key in &keys {
                assert_eq!(snapshot.get(key).unwrap().map(|v| v.to_vec()).as_ref(), model.get(key));
            }
        }
    }
}

fn remove_range(model: &mut Map, bounds: (Bound<Key>, Bound<Key>)) {
    model.retain(|key, _| !std::ops::RangeBounds::contains(&bounds, key));
}

fn open(dir: &TempDir, (policy, ratio): (Compaction, u64)) -> Db {
    let builder = Db::builder(dir.path())
        .memtable_bytes(4096)
        .l0_trigger(2)
        .block_bytes(512)
        .partition_bytes(128)
        .cache_bytes(8192);
    let builder = builder.compaction(policy).size_ratio(ratio).level1_bytes(4096).table_file_bytes(2048);
    // So that merges take a piece wherever they can.
    let builder = builder.max_compaction_bytes(1024);
    // Blocks are in the cache, or where they lie in a mapped file.
    let builder = match policy {
        Compaction::Leveled | Compaction::LazyLeveled => builder.compression(Compression::Lz4),
        _ => builder.compression(Compression::None).table_reads(TableReads::Mmap),
    };
    builder.open().unwrap()
}

fn owned(entries: &[(&Key, &Vec<u8>)]) -> Vec<(Key, Vec<u8>)> {
    entries.iter().map(|(key, value)| ((*key).clone(), (*value).clone())).collect()
}

/// Walks `iter` and the part of the model in the same bounds from both ends.
fn walk(mut iter: Iter, model: &Map, bounds: (Bound<Key>, Bound<Key>), ends: &[bool], seek: Option<Key>) {
    let within = |key: &Key| std::ops::RangeBounds::contains(&bounds, key);
    let all: Vec<(Key, Vec<u8>)> = owned(&model.iter().filter(|(key, _)| within(key)).collect::<Vec<_>>());
    let (mut front, mut back) = (0, all.len());
    let half = ends.len() / 2;
    let mut ended = false;
    for (at, from_front) in ends.iter().enumerate() {
        if let Some(target) = seek.as_ref().filter(|_| at == half) {
            iter.seek(target);
            front = all.partition_point(|(key, _)| key < target);
        }
        ended |= front >= back;
        let expected = (!ended).then(|| if *from_front { &all[front] } else { &all[back - 1] });
        let found = if *from_front { iter.next() } else { iter.next_back() };
        assert_eq!(found.map(|entry| entry.unwrap()).map(|(k, v)| (k.to_vec(), v.to_vec())).as_ref(), expected);
        match (expected.is_some(), *from_front) {
            (true, true) => front += 1,
            (true, false) => back -= 1,
            (false, _) => {}
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_read_agrees_with_an_ordinary_map_after_every_step(
        policy in policy(), steps in vec(step(), 1..120),
    ) {
        // Catches whatever a memtable, a flush, a merge, a recovery or an iterator gets wrong about order, versions,
        // tombstones, bounds and directions, under each policy and after a change from any to any.
        let mut run = Run::new(policy);
        for step in steps {
            run.run(step);
            run.compare();
        }
        prop_assert!(run.db().verify().unwrap().problems.is_empty());
    }
}

#[test]
fn the_model_workload_rotates_flushes_and_merges() {
    // Catches a model test that never leaves the first memtable, and so shows nothing about tables.
    let mut run = Run::new((Compaction::Leveled, 10));
    for n in 0..200u32 {
        run.run(Step::Insert(n.to_be_bytes()[3..].to_vec(), 500));
    }
    run.run(Step::Flush);
    run.compare();
    let metrics = run.db().metrics();
    assert!(metrics.flushes > 5, "{metrics:?}");
    // The merges that are still due end before the close of the next open does.
    wait_while(|| run.db().metrics().compactions == 0);
    run.compare();
}
