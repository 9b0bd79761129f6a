//! Random operations against ordinary maps, one for each keyspace; after every step, everything readable is compared.

mod contents;
mod steps;

use proptest::collection::vec;
use proptest::prelude::*;

use self::contents::Model;
use self::steps::{BatchStep, Chosen, Key, SPACES, Step, chosen, step};
use crate::support::*;

struct Run {
    dir: TempDir,
    clock: Clock,
    db: Option<Db>,
    /// The number of the keyspace of the steps.
    space: usize,
    model: Model,
    snapshots: Vec<(Snapshot, [Map; SPACES.len()])>,
    written: u64,
    /// The numbers of transactions that were committed and refused.
    committed: u64,
    refused: u64,
}

impl Run {
    fn new(chosen: &Chosen) -> Run {
        let model = Model { time: 1_000_000, ..Model::default() };
        let (dir, clock) = (TempDir::new().unwrap(), Clock::at(second(model.time)));
        let db = Some(open(&dir, &clock, chosen));
        Run { dir, clock, db, space: 0, model, snapshots: Vec::new(), written: 0, committed: 0, refused: 0 }
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    /// The keyspace of this number.
    fn keyspace(&self, number: usize) -> Keyspace {
        let (db, space) = (self.db(), &SPACES[number]);
        match space.name {
            "" => Keyspace::clone(db),
            // With the options that the database has kept.
            name if db.keyspaces().iter().any(|known| known == name) => db.keyspace(name).unwrap(),
            name => db.keyspace_with(name, space.options()).unwrap(),
        }
    }

    /// The keyspace of the steps.
    fn here(&self) -> Keyspace {
        self.keyspace(self.space)
    }

    fn map(&mut self) -> &mut Map {
        &mut self.model.maps[self.space]
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
                self.here().insert(&key, &value).unwrap();
                self.model.insert(self.space, key, value, self.model.default_expiry(self.space));
            }
            Step::InsertFor(key, len, seconds) => {
                let (value, at) = (self.value(len), seconds.map(|seconds| self.model.time + seconds));
                self.here().insert_with_expiry(&key, &value, at.map(second)).unwrap();
                self.model.insert(self.space, key, value, at);
            }
            Step::SetExpiry(key, seconds) => {
                let at = seconds.map(|seconds| self.model.time + seconds);
                let is_there = self.here().set_expiry(&key, at.map(second)).unwrap();
                let value = self.map().get(&key).cloned();
                assert_eq!(is_there, value.is_some());
                if let Some(value) = value {
                    self.model.insert(self.space, key, value, at);
                }
            }
            Step::Pass(seconds) => {
                self.model.time += seconds;
                self.clock.set(second(self.model.time));
                self.model.expire();
            }
            Step::Remove(key) => {
                self.here().remove(&key).unwrap();
                self.map().remove(&key);
            }
            Step::RemoveRange(lower, upper) => {
                self.here().remove_range((lower.clone(), upper.clone())).unwrap();
                self.model.remove_range(self.space, &(lower, upper));
            }
            Step::Batch(ops, synced) => self.batch(ops, synced),
            Step::Transact(ops, foreign) => self.transact(ops, foreign),
            Step::Load(keys, len) => {
                let load: Map = keys.into_iter().map(|key| (key, self.value(len))).collect();
                self.here().ingest(&load).unwrap();
                load.into_iter().for_each(|(key, value)| self.model.insert(self.space, key, value, None));
            }
            Step::PopFirst => assert_eq!(self.here().pop_first().unwrap().map(owned_entry), self.map().pop_first()),
            Step::PopLast => assert_eq!(self.here().pop_last().unwrap().map(owned_entry), self.map().pop_last()),
            Step::Flush => self.db().flush().unwrap(),
            Step::Persist => self.db().persist(Durability::Synced).unwrap(),
            Step::TakeSnapshot => self.snapshots.push((self.db().snapshot(), self.model.maps.clone())),
            Step::DropSnapshot => drop((!self.snapshots.is_empty()).then(|| self.snapshots.remove(0))),
            Step::Enter(space) => self.space = space,
            Step::DropKeyspace => self.drop_keyspace(),
            Step::Reopen(close, chosen) => self.reopen(close, &chosen),
            Step::CompactRange(lower, upper) => self.here().compact_range((lower, upper)).unwrap(),
            Step::WaitForCompactions => self.db().wait_for_compactions().unwrap(),
            Step::Walk(lower, upper, ends, seek) => {
                let iter = self.here().range((lower.clone(), upper.clone()));
                walk(iter, self.map(), (lower, upper), &ends, seek);
            }
            Step::Prefix(prefix) => {
                let here = self.here();
                let expected: Vec<_> = self.map().iter().filter(|(key, _)| key.starts_with(&prefix)).collect();
                assert_eq!(pairs(here.prefix(&prefix)), owned(&expected));
                let rest: Vec<_> = expected.into_iter().rev().collect();
                assert_eq!(pairs(here.prefix(&prefix).rev()), owned(&rest));
            }
            Step::Cursor(key, moves) => self.cursor(&key, &moves),
        }
    }

    /// Drops the keyspace of the steps, unless it is the default one. Snapshots show it no more.
    fn drop_keyspace(&mut self) {
        let (space, name) = (self.space, SPACES[self.space].name);
        if !name.is_empty() {
            let old = self.here();
            self.db().drop_keyspace(name).unwrap();
            assert!(matches!(old.get("a"), Err(Error::NoKeyspace { .. })));
            self.map().clear();
            self.snapshots.iter_mut().for_each(|(_, maps)| maps[space].clear());
        }
    }

    /// The operations, each with the number of its keyspace and a value: every fourth one is of the next keyspace.
    fn spread(&mut self, ops: Vec<BatchStep>) -> Vec<(usize, BatchStep, Vec<u8>)> {
        let mut spread = Vec::new();
        for (at, op) in ops.into_iter().enumerate() {
            let (BatchStep::Insert(_, len) | BatchStep::InsertFor(_, len, _)) = op else {
                spread.push((at, op, Vec::new()));
                continue;
            };
            spread.push((at, op, self.value(len)));
        }
        spread.iter_mut().for_each(|(at, ..)| *at = (self.space + usize::from(*at % 4 == 3)) % SPACES.len());
        spread
    }

    fn batch(&mut self, ops: Vec<BatchStep>, synced: bool) {
        let mut batch = WriteBatch::new();
        for (space, op, value) in self.spread(ops) {
            let (keyspace, time) = (self.keyspace(space), self.model.time);
            let mut batch = batch.keyspace(&keyspace);
            match &op {
                BatchStep::Insert(key, _) => batch.insert(key, &value).unwrap(),
                BatchStep::InsertFor(key, _, seconds) => {
                    batch.insert_with_expiry(key, &value, seconds.map(|seconds| second(time + seconds))).unwrap();
                }
                BatchStep::Remove(key) => batch.remove(key).unwrap(),
                BatchStep::RemoveRange(lower, upper) => batch.remove_range((lower.clone(), upper.clone())).unwrap(),
            }
            self.model.apply(space, op, value);
        }
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let (before, count) = (self.db().snapshot().seqno(), batch.len() as u64);
        assert_eq!(self.db().write(batch, durability).unwrap(), before + count);
    }

    /// After each operation the transaction reads all of its keyspace. So it is refused if the other write is in one of them.
    fn transact(&mut self, ops: Vec<BatchStep>, foreign: Option<(usize, Key)>) {
        let (transaction, before) = (self.db().transaction(), self.model.clone());
        let mut read = BTreeSet::new();
        // The removal of an inverted range is no operation.
        let is_writer = ops.iter().any(|op| !matches!(op, BatchStep::RemoveRange(..)));
        for (space, op, value) in self.spread(ops) {
            let (keyspace, time) = (self.keyspace(space), self.model.time);
            let own = transaction.keyspace(&keyspace);
            match &op {
                BatchStep::Insert(key, _) => own.insert(key, &value).unwrap(),
                BatchStep::InsertFor(key, _, seconds) => {
                    own.insert_with_expiry(key, &value, seconds.map(|seconds| second(time + seconds))).unwrap();
                }
                BatchStep::Remove(key) => own.remove(key).unwrap(),
                BatchStep::RemoveRange(lower, upper) => own.remove_range((lower.clone(), upper.clone())).unwrap(),
            }
            self.model.apply(space, op, value);
            let all: Vec<_> = self.model.maps[space].iter().collect();
            assert_eq!(pairs(own.iter()), owned(&all));
            let backward: Vec<_> = all.into_iter().rev().collect();
            assert_eq!(pairs(own.iter().rev()), owned(&backward));
            read.insert(space);
        }
        let foreign = foreign.map(|(space, key)| (space, key, self.value(9)));
        if let Some((space, key, value)) = &foreign {
            self.keyspace(*space).insert(key, value).unwrap();
        }
        let is_late = foreign.as_ref().is_some_and(|(space, ..)| read.contains(space));
        match transaction.commit(Durability::Buffered) {
            Ok(_) => {
                assert!(!(is_late && is_writer), "what it has read has changed: {foreign:?}");
                self.committed += 1;
            }
            Err(Error::Conflict { keyspace, key, .. }) => {
                let at = foreign.as_ref().filter(|_| is_late).map(|(space, key, _)| (SPACES[*space].name, &key[..]));
                assert_eq!(Some((&*keyspace, &key[..])), at);
                self.model = before;
                self.refused += 1;
            }
            Err(error) => panic!("{error}"),
        }
        if let Some((space, key, value)) = foreign {
            self.model.insert(space, key, value, self.model.default_expiry(space));
        }
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
        self.db = Some(open(&self.dir, &self.clock, chosen));
        assert_eq!(self.db().snapshot().seqno(), seqno);
        assert_eq!(self.db().recovery().torn, None);
        assert!(!close || self.db().recovery().batches_replayed == 0);
    }

    fn cursor(&self, key: &[u8], moves: &[bool]) {
        let all: Vec<(&Key, &Vec<u8>)> = self.model.maps[self.space].iter().collect();
        let mut cursor = self.here().cursor();
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
        for number in 0..SPACES.len() {
            let all: Vec<_> = self.model.maps[number].iter().collect();
            assert_eq!(pairs(self.keyspace(number).iter()), owned(&all), "keyspace {number}");
        }
        let (db, map) = (self.here(), &self.model.maps[self.space]);
        let all: Vec<_> = map.iter().collect();
        let backward: Vec<_> = all.iter().rev().copied().collect();
        assert_eq!(pairs(db.iter().rev()), owned(&backward));
        let keys: Vec<Key> = [&[][..], b"a", b"b", b"ab", b"\xff", b"\xff\xff\xff", b"b\0a", b"never", b"b"]
            .map(<[u8]>::to_vec)
            .to_vec();
        let expected: Vec<Option<Key>> = keys.iter().map(|key| map.get(key).cloned()).collect();
        let answers = db.get_many(&keys).unwrap().into_iter().map(|value| value.map(|v| v.to_vec()));
        assert!(answers.eq(expected.iter().cloned()));
        for limit in [0, 1, 300, 1500] {
            check_limited(&db.get_many_up_to(limit, &keys).unwrap(), &expected, limit);
        }
        for (key, value) in keys.iter().zip(&expected) {
            assert_eq!(db.get(key).unwrap().map(|v| v.to_vec()).as_ref(), value.as_ref());
            assert_eq!(db.contains_key(key).unwrap(), value.is_some());
            let with_expiry = db.get_with_expiry(key).unwrap();
            let expiry = self.model.expiries[self.space].get(key).filter(|_| value.is_some()).map(|at| second(*at));
            assert_eq!(with_expiry.map(|(value, at)| (value.to_vec(), at)), value.clone().map(|value| (value, expiry)));
        }
        for (snapshot, maps) in &self.snapshots {
            let (snapshot, model) = (snapshot.keyspace(&db), &maps[self.space]);
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

fn open(dir: &TempDir, clock: &Clock, chosen: &Chosen) -> Db {
    let builder = Db::builder(dir.path())
        .time_source(clock.source())
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
        // differ from single reads, or that exceed their limit; an end of the order that pops remember wrongly; keyspaces that see each other; a
        // transaction that does not see its own writes, misses a conflict, meets one that is none, or leaves a trace when it is refused.
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

#[test]
fn the_model_workload_commits_and_refuses_transactions() {
    // Catches transactions of the model test that are never refused, or never committed, and so show nothing about conflicts.
    let (policy, memtable) = (Compaction::Leveled, MemtableKind::SkipList);
    let mut run = Run::new(&Chosen { policy, ratio: 10, memtable, filter_bits: 10 });
    for n in 0..40u8 {
        let ops = || (0..6).map(|at| BatchStep::InsertFor(vec![n, at], 50, Some(3))).collect();
        run.run(Step::Enter(usize::from(n) % SPACES.len()));
        run.run(Step::Transact(ops(), (n % 2 == 0).then(|| (usize::from(n / 2) % SPACES.len(), vec![n]))));
        run.run(Step::Pass(1));
        run.compare();
    }
    assert!(run.committed > 5 && run.refused > 5, "{} committed, {} refused", run.committed, run.refused);
}
