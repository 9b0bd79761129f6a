//! The engine against a map, on a disk in memory, with reopens, kills and power cuts.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use mini_engine::{Db, Durability, WriteBatch};
use proof::disk::MemFs;

use crate::Met;
use crate::models::input::Input;
use crate::models::operations;

operations! {
    /// Operations that an input can ask of the engine.
    EngineOp:
        Insert Remove RemoveRange RemovePrefix Write Persist Flush Get Range
        Prefix Snapshot Verify Close Drop Kill PowerCut
}

/// The change that a batch makes to the newest state.
#[derive(Clone, Copy)]
enum Change {
    Insert,
    Remove,
    RemoveRange,
    RemovePrefix,
}

impl Change {
    const ALL: [Self; 4] = [Self::Insert, Self::Remove, Self::RemoveRange, Self::RemovePrefix];
}

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

struct Pair {
    mem: MemFs,
    memtable_bytes: usize,
    db: Option<Db>,
    /// The state after each sequence number that ends a batch.
    states: Vec<(u64, Map)>,
    /// The number up to which a power cut removes nothing.
    synced: u64,
}

/// Runs the operations that `input` stands for.
///
/// # Panics
/// If the engine and the map differ.
pub fn engine_ops(input: &[u8]) -> Met {
    let mut input = Input::new(input);
    let memtable_bytes = input.choose(&[4 << 10, 16 << 10, 256 << 10]);
    let states = vec![(0, Map::new())];
    let mut pair = Pair { mem: MemFs::default(), memtable_bytes, db: None, states, synced: 0 };
    pair.open();
    let mut met = Met::new();
    while !input.is_empty() {
        let op = input.choose(EngineOp::ALL);
        met.insert(format!("{op:?}"));
        if let Some(found) = pair.run(op, &mut input) {
            met.insert(format!("{op:?}: {found}"));
        }
    }
    met
}

impl Pair {
    fn open(&mut self) {
        let builder = Db::builder("/db").memtable_bytes(self.memtable_bytes).block_bytes(512).l0_trigger(2);
        // A compaction takes pieces of one small table, and a table has many partitions.
        let builder = builder.table_file_bytes(2048).max_compaction_bytes(1024).partition_bytes(128);
        self.db = Some(builder.file_system(Arc::new(self.mem.clone())).open().expect("a sound disk"));
    }

    fn db(&self) -> &Db {
        self.db.as_ref().expect("open between operations")
    }

    fn newest(&self) -> &(u64, Map) {
        self.states.last().expect("at least the empty state")
    }

    fn run(&mut self, op: EngineOp, input: &mut Input<'_>) -> Option<&'static str> {
        match op {
            EngineOp::Insert => self.write(input, &[Change::Insert]),
            EngineOp::Remove => self.write(input, &[Change::Remove]),
            EngineOp::RemoveRange => self.write(input, &[Change::RemoveRange]),
            EngineOp::RemovePrefix => self.write(input, &[Change::RemovePrefix]),
            EngineOp::Write => {
                let changes: Vec<_> = (0..input.byte() % 10).map(|_| input.choose(&Change::ALL)).collect();
                self.write(input, &changes);
            }
            EngineOp::Persist => {
                self.db().persist(Durability::Synced).expect("a sound disk");
                self.synced = self.newest().0;
            }
            EngineOp::Flush => {
                self.db().flush().expect("a sound disk");
                self.synced = self.newest().0;
            }
            EngineOp::Get => {
                let key = input.key();
                let found = self.db().get(&key).expect("a sound disk");
                assert_eq!(found.as_deref(), self.newest().1.get(&key).map(Vec::as_slice));
            }
            EngineOp::Range => {
                let (from, to) = (input.key(), input.key());
                self.range(from, to);
            }
            EngineOp::Prefix => {
                let prefix = input.key();
                let expected: Vec<_> = self.newest().1.keys().filter(|key| key.starts_with(&prefix)).collect();
                let found: Vec<_> = self.db().prefix(&prefix).rev().map(|entry| entry.expect("sound").0).collect();
                assert!(found.iter().rev().map(|key| key.to_vec()).eq(expected.into_iter().cloned()));
            }
            EngineOp::Snapshot => {
                let snapshot = self.db().snapshot();
                let before = self.newest().clone();
                self.write(input, &[Change::Insert, Change::Insert, Change::Remove, Change::RemoveRange]);
                assert_eq!((snapshot.seqno(), contents(snapshot.iter())), before);
                // It holds the directory's lock.
                drop(snapshot);
            }
            EngineOp::Verify => {
                let problems = self.db().verify().expect("open").problems;
                assert!(problems.is_empty(), "{problems:?}");
            }
            EngineOp::Close => {
                self.db.take().expect("open between operations").close().expect("a sound disk");
                let all = self.newest().0;
                return Some(self.reopen(all));
            }
            EngineOp::Drop => {
                self.db = None;
                let all = self.newest().0;
                return Some(self.reopen(all));
            }
            EngineOp::Kill => {
                self.mem = MemFs::on(self.mem.disk());
                let all = self.newest().0;
                return Some(self.reopen(all));
            }
            EngineOp::PowerCut => {
                let seed = u64::from(input.byte()) << 8 | u64::from(input.byte());
                self.mem = MemFs::on(self.mem.disk().after_power_cut(seed).0);
                return Some(self.reopen(self.synced));
            }
        }
        None
    }

    fn write(&mut self, input: &mut Input<'_>, changes: &[Change]) {
        let (before, mut state) = self.newest().clone();
        let mut batch = WriteBatch::new();
        for change in changes {
            let key = input.key();
            match change {
                Change::Insert => {
                    let value = input.value();
                    batch.insert(&key, &value).expect("within limits");
                    state.insert(key, value);
                }
                Change::Remove => {
                    batch.remove(&key).expect("within limits");
                    state.remove(&key);
                }
                Change::RemoveRange => {
                    let end = input.key();
                    batch.remove_range((Bound::Excluded(&key), Bound::Included(&end))).expect("within limits");
                    state.retain(|other, _| *other <= key || *other > end);
                }
                Change::RemovePrefix => {
                    batch.remove_prefix(&key).expect("within limits");
                    state.retain(|other, _| !other.starts_with(&key));
                }
            }
        }
        let seqno = before + batch.len() as u64;
        let durability = input.choose(&[Durability::Buffered, Durability::Buffered, Durability::Synced]);
        assert_eq!(self.db().write(batch, durability).expect("a sound disk"), seqno);
        if durability == Durability::Synced {
            self.synced = seqno;
        }
        if seqno > before {
            self.states.push((seqno, state));
        }
    }

    fn range(&self, from: Vec<u8>, to: Vec<u8>) {
        let bounds = (Bound::Excluded(&from), Bound::Included(&to));
        let found = contents(self.db().range(bounds));
        let inside = |(key, _): &(&Vec<u8>, &Vec<u8>)| from < **key && **key <= to;
        let expected = self.newest().1.iter().filter(inside).map(|(key, value)| (key.clone(), value.clone()));
        assert_eq!(found, expected.collect());
    }

    /// Opens the database again and finds out which state it has: one at or after the number `least`.
    fn reopen(&mut self, least: u64) -> &'static str {
        // Before the old handle ends: after a crash it belongs to another disk.
        let old = self.db.take();
        let reader = Db::builder("/db").file_system(Arc::new(self.mem.clone())).read_only(true).open();
        let reader = reader.expect("a sound disk");
        let shown = (reader.snapshot().seqno(), contents(reader.iter()));
        drop(reader);
        self.open();
        drop(old);
        let seqno = self.db().snapshot().seqno();
        assert_eq!(shown, (seqno, contents(self.db().iter())), "a read-only open shows something else");
        assert!(seqno >= least, "the last number is {seqno}, expected {least} at least");
        let lost = seqno < self.newest().0;
        self.states.retain(|(number, _)| *number <= seqno);
        assert_eq!(self.newest(), &(seqno, contents(self.db().iter())));
        // The contents that an open has found are durable.
        self.synced = seqno;
        if lost { "buffered writes lost" } else { "nothing lost" }
    }
}

fn contents(entries: mini_engine::Iter) -> Map {
    let owned = |entry: mini_engine::Result<(mini_engine::Slice, mini_engine::Slice)>| {
        let (key, value) = entry.expect("a sound disk");
        (key.to_vec(), value.to_vec())
    };
    entries.map(owned).collect()
}
