//! [`Run`]: steps on a database and on ordinary maps, one for each keyspace. After every step, all readable data is compared.
//!
//! Steps are data: a test draws them, and a fuzz target decodes them from bytes. On a disk in memory the process can be killed and the power cut.
//! Then the database must be in the state after one of its writes, and no write that was made durable may be missing.

mod contents;
mod input;
mod steps;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;

use mini_engine::fs::{FileSystem, StdFs};
use mini_engine::{
    Builder, Compaction, Compression, Db, Durability, Error, Iter, Keyspace, Slice, Snapshot, TableReads, WriteBatch,
};

use self::contents::{Model, is_within};
pub use self::input::steps;
pub use self::steps::{Bounds, Chosen, End, Key, Op, SPACES, Step};
use crate::contents::{Map, entries, pairs};
use crate::disk::MemFs;
use crate::{Clock, TempDir, second};

/// The files of a database.
#[derive(Debug)]
enum Files {
    System(TempDir),
    Memory(MemFs),
}

/// A database, and its expected contents.
#[derive(Debug)]
pub struct Run {
    files: Files,
    clock: Clock,
    db: Option<Db>,
    /// The number of the keyspace of the steps.
    space: usize,
    model: Model,
    /// The states after each write since the last one known to be durable, with the write's sequence number.
    states: Vec<(u64, Model)>,
    snapshots: Vec<(Snapshot, [Map; SPACES.len()])>,
    written: u64,
    committed: u64,
    refused: u64,
}

/// Applies an operation to `$target`: a keyspace, or a batch or a transaction with a keyspace.
macro_rules! make {
    ($op:expr, $target:expr, $value:expr, $time:expr) => {
        match $op {
            Op::Insert(key, _) => $target.insert(key, $value),
            Op::InsertFor(key, _, seconds) => {
                $target.insert_with_expiry(key, $value, seconds.map(|after| second($time + after)))
            }
            Op::Remove(key) => $target.remove(key),
            Op::RemoveRange(bounds) => $target.remove_range(bounds.clone()),
            Op::RemovePrefix(prefix) => $target.remove_prefix(prefix),
        }
    };
}

impl Run {
    /// An empty database, on a disk in memory.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn in_memory(chosen: &Chosen) -> Self {
        Self::on(Files::Memory(MemFs::default()), chosen)
    }

    /// An empty database in a temporary directory.
    ///
    /// # Panics
    /// If it cannot be opened.
    pub fn on_system(chosen: &Chosen) -> Self {
        Self::on(Files::System(TempDir::new().unwrap()), chosen)
    }

    fn on(files: Files, chosen: &Chosen) -> Self {
        let model = Model { time: 1_000_000, ..Model::default() };
        let (clock, states) = (Clock::at(second(model.time)), vec![(0, model.clone())]);
        let (snapshots, db) = (Vec::new(), None);
        let mut run =
            Self { files, clock, db, space: 0, model, states, snapshots, written: 0, committed: 0, refused: 0 };
        run.db = Some(run.builder(chosen).open().unwrap());
        run
    }

    fn builder(&self, chosen: &Chosen) -> Builder {
        let (path, fs): (PathBuf, Arc<dyn FileSystem>) = match &self.files {
            Files::System(dir) => (dir.path().to_owned(), Arc::new(StdFs)),
            Files::Memory(mem) => ("/db".into(), Arc::new(mem.clone())),
        };
        let builder = Db::builder(path).file_system(fs).time_source(self.clock.source());
        let builder = builder.memtable_bytes(chosen.memtable_bytes).memtable_kind(chosen.memtable).l0_trigger(2);
        let builder =
            builder.block_bytes(512).partition_bytes(128).cache_bytes(8192).filter_bits_per_key(chosen.filter_bits);
        let builder =
            builder.compaction(chosen.policy).size_ratio(chosen.ratio).level1_bytes(4096).table_file_bytes(2048);
        // With this bound, compactions run in pieces wherever they can.
        let builder = builder.max_compaction_bytes(1024);
        // Depending on the policy, blocks are in the cache or in mapped files.
        match chosen.policy {
            Compaction::Leveled | Compaction::LazyLeveled => builder.compression(Compression::Lz4),
            _ => builder.compression(Compression::None).table_reads(TableReads::Mmap),
        }
    }

    /// The database, which is open between steps.
    ///
    /// # Panics
    /// Never.
    pub fn db(&self) -> &Db {
        self.db.as_ref().expect("open between steps")
    }

    /// The numbers of transactions that were committed and refused.
    pub fn transactions(&self) -> (u64, u64) {
        (self.committed, self.refused)
    }

    /// The keyspace of this number.
    fn keyspace(&self, number: usize) -> Keyspace {
        let (db, space) = (self.db(), &SPACES[number]);
        match space.name {
            "" => Keyspace::clone(db),
            // Opens the existing keyspace with its stored options.
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

    /// Runs a step, and compares all readable data. Returns whether the step lost writes that were not durable.
    ///
    /// # Panics
    /// If database and maps differ.
    pub fn step(&mut self, step: Step) -> bool {
        let mut has_lost = false;
        let is_durable = match &step {
            Step::Batch(_, synced) => *synced,
            Step::DropKeyspace => self.space > 0,
            Step::Load(..) | Step::Flush | Step::Persist | Step::Reopen(..) => true,
            _ => false,
        };
        match step {
            Step::Write(op) => {
                let (_, op, value) = self.spread(vec![op]).remove(0);
                make!(&op, self.here(), &value, self.model.time).unwrap();
                self.model.apply(self.space, op, value);
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
            Step::Reopen(end, chosen) => has_lost = self.reopen(end, &chosen),
            Step::CompactRange(bounds) => self.here().compact_range(bounds).unwrap(),
            Step::WaitForCompactions => self.db().wait_for_compactions().unwrap(),
            Step::Walk(bounds, ends, seek) => walk(self.here().range(bounds.clone()), self.map(), &bounds, &ends, seek),
            Step::Prefix(prefix) => {
                let here = self.here();
                let expected = beginning_with(self.map(), &prefix);
                assert_eq!(pairs(here.prefix(&prefix)), owned(&expected));
                let rest: Vec<_> = expected.into_iter().rev().collect();
                assert_eq!(pairs(here.prefix(&prefix).rev()), owned(&rest));
            }
            Step::Cursor(key, moves) => self.cursor(&key, &moves),
        }
        self.note(self.model.clone());
        if is_durable {
            self.states.drain(..self.states.len() - 1);
        }
        self.compare();
        has_lost
    }

    /// Notes the state after the newest write.
    fn note(&mut self, state: Model) {
        let seqno = self.db().snapshot().seqno();
        self.states.pop_if(|(newest, _)| *newest == seqno);
        self.states.push((seqno, state));
    }

    /// Drops the keyspace of the steps, unless it is the default one. Snapshots no longer show it.
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

    /// The operations, each with the number of its keyspace and a value. Every fourth one goes to the next keyspace.
    fn spread(&mut self, ops: Vec<Op>) -> Vec<(usize, Op, Vec<u8>)> {
        let spread = ops.into_iter().enumerate().map(|(at, op)| {
            let space = (self.space + usize::from(at % 4 == 3)) % SPACES.len();
            let value =
                if let Op::Insert(_, len) | Op::InsertFor(_, len, _) = op { self.value(len) } else { Vec::new() };
            (space, op, value)
        });
        spread.collect()
    }

    fn batch(&mut self, ops: Vec<Op>, synced: bool) {
        let mut batch = WriteBatch::new();
        for (space, op, value) in self.spread(ops) {
            make!(&op, batch.keyspace(&self.keyspace(space)), &value, self.model.time).unwrap();
            self.model.apply(space, op, value);
        }
        let durability = if synced { Durability::Synced } else { Durability::Buffered };
        let (before, count) = (self.db().snapshot().seqno(), batch.len() as u64);
        assert_eq!(self.db().write(batch, durability).unwrap(), before + count);
    }

    /// After each operation the transaction reads all of the operation's keyspace. So it is refused if the other write goes to one of these
    /// keyspaces.
    fn transact(&mut self, ops: Vec<Op>, foreign: Option<(usize, Key)>) {
        let (transaction, mut before) = (self.db().transaction(), self.model.clone());
        let mut read = BTreeSet::new();
        // The removal of an inverted range is no operation.
        let is_writer = ops.iter().any(|op| !matches!(op, Op::RemoveRange(_)));
        for (space, op, value) in self.spread(ops) {
            let keyspace = self.keyspace(space);
            let own = transaction.keyspace(&keyspace);
            make!(&op, own, &value, self.model.time).unwrap();
            self.model.apply(space, op, value);
            let all: Vec<_> = self.model.maps[space].iter().collect();
            assert_eq!(pairs(own.iter()), owned(&all));
            let backward: Vec<_> = all.into_iter().rev().collect();
            assert_eq!(pairs(own.iter().rev()), owned(&backward));
            let map = &self.model.maps[space];
            assert_eq!([own.first(), own.last()].map(|end| end.unwrap().map(owned_entry)), ends(map));
            let answers = own.get_many(KEYS).unwrap().into_iter().map(|value| value.map(|value| value.to_vec()));
            assert!(answers.eq(KEYS.map(|key| map.get(key).cloned())));
            assert_eq!(pairs(own.prefix(b"\xff")), owned(&beginning_with(map, b"\xff")));
            read.insert(space);
        }
        let foreign = foreign.map(|(space, key)| (space, key, self.value(9)));
        if let Some((space, key, value)) = &foreign {
            self.keyspace(*space).insert(key, value).unwrap();
            before.insert(*space, key.clone(), value.clone(), before.default_expiry(*space));
            self.note(before.clone());
        }
        let is_late = foreign.as_ref().is_some_and(|(space, ..)| read.contains(space));
        match transaction.commit(Durability::Buffered) {
            Ok(_) => {
                assert!(!(is_late && is_writer), "what it has read has changed: {foreign:?}");
                if let Some((space, key, value)) = foreign {
                    self.model.insert(space, key, value, self.model.default_expiry(space));
                }
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
    }

    /// Ends the database and opens it again, first read-only. Returns whether writes were lost.
    fn reopen(&mut self, end: End, chosen: &Chosen) -> bool {
        // A snapshot keeps the directory locked.
        self.snapshots.clear();
        let newest = self.db().snapshot().seqno();
        let old = self.db.take().expect("open between steps");
        let left = match (end, &self.files) {
            (End::Kill, Files::Memory(mem)) => Some(mem.disk()),
            (End::PowerCut(seed), Files::Memory(mem)) => Some(mem.disk().after_power_cut(seed).0),
            _ => None,
        };
        let is_cut = left.is_some() && end != End::Kill;
        match left {
            // The old handle still uses the old disk, and ends later.
            Some(disk) => self.files = Files::Memory(MemFs::on(disk)),
            None if end == End::Close => old.close().unwrap(),
            None => drop(old),
        }
        if let (End::Close, Files::Memory(mem)) = (end, &self.files) {
            assert!(mem.disk().bytes_of(".log") <= 16 << 10, "a close has left more in the logs");
        }
        let reader = self.builder(chosen).read_only(true).open().unwrap();
        let shown = (reader.snapshot().seqno(), contents(&reader));
        drop(reader);
        let db = self.builder(chosen).open().unwrap();
        let seqno = db.snapshot().seqno();
        assert_eq!(shown, (seqno, contents(&db)), "a read-only open shows something else");
        assert!(is_cut || (seqno == newest && db.recovery().torn.is_none()), "{seqno} of {newest}: {}", db.recovery());
        let problems = db.verify().unwrap().problems;
        assert!(problems.is_empty(), "{problems:?}");
        let state = self.states.iter().rfind(|(number, _)| *number == seqno);
        let least = self.states[0].0;
        let (_, state) = state.unwrap_or_else(|| panic!("{seqno}, of {least} to {newest}, is the number of no write"));
        self.model = Model { time: self.model.time, ..state.clone() };
        self.model.expire();
        self.db = Some(db);
        seqno < newest
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
        assert_eq!([db.first(), db.last()].map(|end| end.unwrap().map(owned_entry)), ends(map));
        let expected = KEYS.map(|key| map.get(key).cloned());
        let answers = db.get_many(KEYS).unwrap().into_iter().map(|value| value.map(|v| v.to_vec()));
        assert!(answers.eq(expected.iter().cloned()));
        for limit in [0, 1, 300, 1500] {
            check_limited(&db.get_many_up_to(limit, KEYS).unwrap(), &expected, limit);
        }
        for (key, value) in KEYS.into_iter().zip(&expected) {
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
            assert_eq!([snapshot.first(), snapshot.last()].map(|end| end.unwrap().map(owned_entry)), ends(model));
            let many = snapshot.get_many(KEYS).unwrap();
            for (key, many) in KEYS.into_iter().zip(many) {
                assert_eq!(many.map(|v| v.to_vec()).as_ref(), model.get(key));
                assert_eq!(snapshot.get(key).unwrap().map(|v| v.to_vec()).as_ref(), model.get(key));
                assert_eq!(snapshot.contains_key(key).unwrap(), model.contains_key(key));
            }
        }
    }
}

/// The keys of which each step reads the values.
const KEYS: [&[u8]; 9] = [b"", b"a", b"b", b"ab", b"\xff", b"\xff\xff\xff", b"b\0a", b"never", b"b"];

/// The entries with the smallest and with the largest key.
fn ends(map: &Map) -> [Option<(Key, Vec<u8>)>; 2] {
    [map.first_key_value(), map.last_key_value()].map(|end| end.map(|(key, value)| (key.clone(), value.clone())))
}

fn beginning_with<'a>(map: &'a Map, prefix: &[u8]) -> Vec<(&'a Key, &'a Vec<u8>)> {
    map.iter().filter(|(key, _)| key.starts_with(prefix)).collect()
}

/// The contents of each keyspace; empty for a missing one.
fn contents(db: &Db) -> [Map; SPACES.len()] {
    let names = db.keyspaces();
    SPACES.each_ref().map(|space| match space.name {
        "" => entries(db),
        name if names.iter().any(|known| known == name) => entries(&db.keyspace(name).unwrap()),
        _ => Map::new(),
    })
}

fn owned_entry((key, value): (Slice, Slice)) -> (Key, Vec<u8>) {
    (key.to_vec(), value.to_vec())
}

/// Checks the answers of a read that stops after `limit` bytes. The set of answered keys depends on where the values are stored.
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

/// Walks `iter` and the same part of the model from both ends.
fn walk(mut iter: Iter, model: &Map, bounds: &Bounds, ends: &[bool], seek: Option<Key>) {
    let all = owned(&model.iter().filter(|(key, _)| is_within(bounds, key)).collect::<Vec<_>>());
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
