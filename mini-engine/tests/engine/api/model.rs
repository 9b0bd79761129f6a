//! Random operations against an ordinary map; after every step, everything readable is compared.

use std::time::SystemTime;

use proptest::collection::vec;
use proptest::prelude::*;

use crate::support::*;

type Key = Vec<u8>;

#[derive(Clone, Debug)]
enum Step {
    Insert(Key, usize),
    /// For this many seconds.
    InsertFor(Key, usize, u64),
    /// From now on for this many seconds, or for ever.
    SetExpiry(Key, Option<u64>),
    /// Seconds pass.
    Pass(u64),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
    Batch(Vec<BatchStep>, bool),
    /// Sorted entries from outside, of this many keys.
    Load(Vec<Key>, usize),
    PopFirst,
    PopLast,
    Flush,
    Persist,
    TakeSnapshot,
    DropSnapshot,
    /// By `close`, or by a plain drop; and with other options.
    Reopen(bool, Chosen),
    CompactRange(Bound<Key>, Bound<Key>),
    WaitForCompactions,
    /// A walk of a range from both ends, in the order that the bits give, with a seek in between.
    Walk(Bound<Key>, Bound<Key>, Vec<bool>, Option<Key>),
    Prefix(Key),
    Cursor(Key, Vec<bool>),
}

/// An operation of a batch.
#[derive(Clone, Debug)]
enum BatchStep {
    Insert(Key, usize),
    InsertFor(Key, usize, u64),
    Remove(Key),
    RemoveRange(Bound<Key>, Bound<Key>),
}

/// Short keys of few letters, or many neighbours that share so much that they are copied in one chunk, or in several.
fn key() -> impl Strategy<Value = Key> {
    let neighbour = (prop::sample::select(&[0usize, 15, 16, 17, 37][..]), 0u8..60);
    prop_oneof![
        3 => vec(prop::sample::select(&[0u8, b'a', b'b', 0xff][..]), 0..4),
        2 => neighbour.prop_map(|(shared, last)| [std::vec![b'a'; shared], std::vec![last]].concat()),
    ]
}

fn bound() -> impl Strategy<Value = Bound<Key>> {
    prop_oneof![Just(Bound::Unbounded), key().prop_map(Bound::Included), key().prop_map(Bound::Excluded)]
}

/// Options that must not change the results of reads.
#[derive(Clone, Debug)]
struct Chosen {
    policy: Compaction,
    ratio: u64,
    memtable: MemtableKind,
    filter_bits: u32,
}

const MEMTABLES: [MemtableKind; 2] = [MemtableKind::SkipList, MemtableKind::Vector];

fn chosen() -> impl Strategy<Value = Chosen> {
    let options = (prop::sample::select(&POLICIES[..]), 2..5u64, prop::sample::select(&MEMTABLES[..]), any::<bool>());
    options.prop_map(|(policy, ratio, memtable, is_filtered)| Chosen {
        policy,
        ratio,
        memtable,
        filter_bits: if is_filtered { 10 } else { 0 },
    })
}

fn step() -> impl Strategy<Value = Step> {
    let len = 0..900usize;
    let in_batch = prop_oneof![
        6 => (key(), len.clone()).prop_map(|(key, len)| BatchStep::Insert(key, len)),
        2 => (key(), len.clone(), 0..9u64).prop_map(|(key, len, seconds)| BatchStep::InsertFor(key, len, seconds)),
        6 => key().prop_map(BatchStep::Remove),
        1 => (bound(), bound()).prop_map(|(lower, upper)| BatchStep::RemoveRange(lower, upper)),
    ];
    let batch = vec(in_batch, 0..20);
    prop_oneof![
        12 => (key(), len.clone()).prop_map(|(key, len)| Step::Insert(key, len)),
        5 => (key(), len.clone(), 0..9u64).prop_map(|(key, len, seconds)| Step::InsertFor(key, len, seconds)),
        2 => (key(), prop::option::of(0..9u64)).prop_map(|(key, seconds)| Step::SetExpiry(key, seconds)),
        3 => (1..5u64).prop_map(Step::Pass),
        5 => key().prop_map(Step::Remove),
        3 => (bound(), bound()).prop_map(|(lower, upper)| Step::RemoveRange(lower, upper)),
        // Up to several memtables in one batch.
        4 => (batch, any::<bool>()).prop_map(|(ops, synced)| Step::Batch(ops, synced)),
        2 => (vec(key(), 1..9), len.clone()).prop_map(|(keys, len)| Step::Load(keys, len)),
        2 => Just(Step::PopFirst),
        2 => Just(Step::PopLast),
        1 => Just(Step::Flush),
        1 => Just(Step::Persist),
        2 => Just(Step::TakeSnapshot),
        1 => Just(Step::DropSnapshot),
        2 => (any::<bool>(), chosen()).prop_map(|(close, chosen)| Step::Reopen(close, chosen)),
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
    fs: FaultFs,
    db: Option<Db>,
    model: Map,
    /// The seconds at which keys of the model expire.
    expiries: BTreeMap<Key, u64>,
    time: u64,
    snapshots: Vec<(Snapshot, Map)>,
    written: u64,
}

impl Run {
    fn new(chosen: &Chosen) -> Run {
        let (dir, fs, time) = (TempDir::new().unwrap(), faulty(), 1_000_000);
        fs.set_time(second(time));
        let db = Some(open(&dir, &fs, chosen));
        Run { dir, fs, db, model: Map::new(), expiries: BTreeMap::new(), time, snapshots: Vec::new(), written: 0 }
    }

    /// Notes the expiry of a key that was written.
    fn note(&mut self, key: &[u8], expiry: Option<u64>) {
        match expiry {
            Some(at) => self.expiries.insert(key.to_vec(), at),
            None => self.expiries.remove(key),
        };
        self.expire();
    }

    /// Removes the keys of the model that have expired.
    fn expire(&mut self) {
        let Run { model, expiries, time, .. } = self;
        expiries.retain(|key, at| {
            let is_over = *at <= *time;
            if is_over {
                model.remove(key);
            }
            !is_over && model.contains_key(key)
        });
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
                self.note(&key, None);
                self.model.insert(key, value);
            }
            Step::InsertFor(key, len, seconds) => {
                let (value, at) = (self.value(len), self.time + seconds);
                self.db().insert_with_expiry(&key, &value, second(at)).unwrap();
                self.model.insert(key.clone(), value);
                self.note(&key, Some(at));
            }
            Step::SetExpiry(key, seconds) => {
                let at = seconds.map(|seconds| self.time + seconds);
                let is_there = self.db().set_expiry(&key, at.map(second)).unwrap();
                assert_eq!(is_there, self.model.contains_key(&key));
                if is_there {
                    self.note(&key, at);
                }
            }
            Step::Pass(seconds) => {
                self.time += seconds;
                self.fs.set_time(second(self.time));
                self.expire();
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
            Step::Load(keys, len) => {
                let load: Map = keys.into_iter().map(|key| (key, self.value(len))).collect();
                self.db().ingest(&load).unwrap();
                load.keys().for_each(|key| self.note(key, None));
                self.model.extend(load);
            }
            Step::PopFirst => assert_eq!(self.db().pop_first().unwrap().map(owned_entry), self.model.pop_first()),
            Step::PopLast => assert_eq!(self.db().pop_last().unwrap().map(owned_entry), self.model.pop_last()),
            Step::Flush => self.db().flush().unwrap(),
            Step::Persist => self.db().persist(Durability::Synced).unwrap(),
            Step::TakeSnapshot => self.snapshots.push((self.db().snapshot(), self.model.clone())),
            Step::DropSnapshot => drop((!self.snapshots.is_empty()).then(|| self.snapshots.remove(0))),
            Step::Reopen(close, chosen) => self.reopen(close, &chosen),
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
                    self.note(&key, None);
                    self.model.insert(key, value);
                }
                BatchStep::InsertFor(key, len, seconds) => {
                    let (value, at) = (self.value(len), self.time + seconds);
                    batch.insert_with_expiry(&key, &value, second(at)).unwrap();
                    self.model.insert(key.clone(), value);
                    self.note(&key, Some(at));
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

    fn reopen(&mut self, close: bool, chosen: &Chosen) {
        // A snapshot keeps the directory locked.
        self.snapshots.clear();
        let seqno = self.db().snapshot().seqno();
        let db = self.db.take().expect("open between steps");
        if close {
            db.close().unwrap();
        } else {
            drop(db);
        }
        self.db = Some(open(&self.dir, &self.fs, chosen));
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
            // A step back from an invalid position is impossible.
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
        let keys: Vec<Key> = [&[][..], b"a", b"b", b"ab", b"\xff", b"\xff\xff\xff", b"b\0a", b"never", b"b"]
            .map(<[u8]>::to_vec)
            .to_vec();
        let expected: Vec<Option<Key>> = keys.iter().map(|key| self.model.get(key).cloned()).collect();
        let answers = db.get_many(&keys).unwrap().into_iter().map(|value| value.map(|v| v.to_vec()));
        assert!(answers.eq(expected.iter().cloned()));
        for limit in [0, 1, 300, 1500] {
            check_limited(&db.get_many_up_to(limit, &keys).unwrap(), &expected, limit);
        }
        for (key, value) in keys.iter().zip(&expected) {
            assert_eq!(db.get(key).unwrap().map(|v| v.to_vec()).as_ref(), value.as_ref());
            assert_eq!(db.contains_key(key).unwrap(), value.is_some());
            let with_expiry = db.get_with_expiry(key).unwrap();
            let expiry = self.expiries.get(key).filter(|_| value.is_some()).map(|at| second(*at));
            assert_eq!(with_expiry.map(|(value, at)| (value.to_vec(), at)), value.clone().map(|value| (value, expiry)));
        }
        for (snapshot, model) in &self.snapshots {
            let all: Vec<_> = model.iter().collect();
            assert_eq!(pairs(snapshot.iter()), owned(&all));
            let many = snapshot.get_many(&keys).unwrap();
            for (key, many) in keys.iter().zip(many) {
                assert_eq!(many.map(|v| v.to_vec()).as_ref(), model.get(key));
                assert_eq!(snapshot.get(key).unwrap().map(|v| v.to_vec()).as_ref(), model.get(key));
                assert_eq!(snapshot.contains_key(key).unwrap(), model.contains_key(key));
            }
        }
    }
}

fn remove_range(model: &mut Map, bounds: (Bound<Key>, Bound<Key>)) {
    model.retain(|key, _| !std::ops::RangeBounds::contains(&bounds, key));
}

fn second(n: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(n)
}

fn open(dir: &TempDir, fs: &FaultFs, chosen: &Chosen) -> Db {
    let builder = Db::builder(dir.path())
        .file_system(Arc::new(fs.clone()))
        .memtable_bytes(4096)
        .memtable_kind(chosen.memtable)
        .l0_trigger(2);
    let builder =
        builder.block_bytes(512).partition_bytes(128).cache_bytes(8192).filter_bits_per_key(chosen.filter_bits);
    let builder = builder.compaction(chosen.policy).size_ratio(chosen.ratio).level1_bytes(4096).table_file_bytes(2048);
    // So that compactions take a piece wherever they can.
    let builder = builder.max_compaction_bytes(1024);
    // Blocks are in the cache, or where they lie in a mapped file.
    let builder = match chosen.policy {
        Compaction::Leveled | Compaction::LazyLeveled => builder.compression(Compression::Lz4),
        _ => builder.compression(Compression::None).table_reads(TableReads::Mmap),
    };
    builder.open().unwrap()
}

fn owned_entry((key, value): (Slice, Slice)) -> (Key, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

/// Checks answers that end once they have `limit` bytes. Which keys get an answer depends on where they are stored.
fn check_limited(answers: &[Option<Option<Slice>>], expected: &[Option<Vec<u8>>], limit: usize) {
    let answered = || answers.iter().zip(expected).filter_map(|(answer, expected)| Some((answer.as_ref()?, expected)));
    assert!(answered().all(|(answer, expected)| answer.as_deref() == expected.as_deref()));
    let lens = || answered().filter_map(|(_, value)| Some(value.as_ref()?.len()));
    let (bytes, longest) = (lens().sum::<usize>(), lens().max().unwrap_or(0));
    assert!(bytes < limit.max(1) + longest, "{bytes} bytes, at most {limit} and {longest}");
    assert!(bytes >= limit || !answers.contains(&None), "{bytes} bytes of {limit}");
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
        chosen in chosen(), steps in vec(step(), 1..120),
    ) {
        // Catches any mistake of a memtable of either kind, a flush, a load, a compaction, a recovery or an iterator about order, versions,
        // tombstones, removed ranges, bounds and directions, under each policy and after a change from any policy to any other; combined reads that
        // differ from single reads, or that exceed their limit; and an end of the order that pops remember wrongly.
        let mut run = Run::new(&chosen);
        for step in steps {
            run.run(step);
            run.compare();
        }
        prop_assert!(run.db().verify().unwrap().problems.is_empty());
    }
}

#[test]
fn the_model_workload_rotates_flushes_and_compacts() {
    // Catches a model test that never leaves the first memtable, and so shows nothing about tables.
    let (policy, memtable) = (Compaction::Leveled, MemtableKind::SkipList);
    let mut run = Run::new(&Chosen { policy, ratio: 10, memtable, filter_bits: 10 });
    for n in 0..200u32 {
        run.run(Step::Insert(n.to_be_bytes()[3..].to_vec(), 500));
    }
    run.run(Step::Flush);
    run.compare();
    let metrics = run.db().metrics();
    assert!(metrics.flushes > 5, "{metrics:?}");
    // The compactions that are still due end before the close of the next open does.
    wait_while(|| run.db().metrics().compactions == 0);
    run.compare();
}
