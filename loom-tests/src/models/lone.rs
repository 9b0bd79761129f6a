//! I1, I6: what the lone writers of a shard leave to each other: a run that spares searches, and counts that are added
//! to without a read-modify-write. Nothing but the gate orders them.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::{Lookup, Memtable};

/// Threads 0 and 1 store behind what is there, then each looks for the other's. The shard of thread 0 knows the last two
/// nodes, so it needs no search; thread 1 writes through the same shard or, with `SHARDS` of 2, through another, so that
/// the run of thread 0 lacks what thread 1 links.
pub(super) struct Run<const SHARDS: usize>(Memtable);

/// What is there from the start.
const BEFORE: [&[u8]; 3] = [b"a", b"c", b"e"];
/// What the threads store. The second comes to stand between the run's last node and the first.
const STORED: [&[u8]; 2] = [b"i", b"g"];
/// What is stored when they have ended.
const BEHIND: [&[u8]; 2] = [b"k", b"m"];

impl<const SHARDS: usize> Run<SHARDS> {
    fn keys(&self) -> String {
        self.0.all_versions().flat_map(|version| version.key).copied().map(char::from).collect()
    }
}

impl<const SHARDS: usize> Program for Run<SHARDS> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(SHARDS));
        through(0, || BEFORE.iter().for_each(|key| memtable.put(key, 1, b"").expect("the table has room")));
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        self.0.put(STORED[number], 1, b"v").expect("the table has room");
        let meets = self.0.get(STORED[1 - number], 1) == Lookup::Value(b"v");
        if meets { "meets" } else { "alone" }.to_owned()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.keys(), "acegi");
        through(0, || BEHIND.iter().for_each(|key| self.0.put(key, 1, b"").expect("the table has room")));
        self.0.validate();
        assert_eq!(self.keys(), "acegikm");
        String::new()
    }
}

/// Who links second has met the first.
pub(super) const RUN: &[&str] = &["alone | meets", "meets | alone", "meets | meets"];

/// Both threads store through one shard, alone there or not, and look for the other's.
pub(super) struct Counts(Memtable);

impl Program for Counts {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(1));
        through(0, || memtable.put(b"a", 1, b"")).expect("the table has room");
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        let keys = [b"k", b"l"];
        self.0.put(keys[number], 1, b"v").expect("the table has room");
        let meets = self.0.get(keys[1 - number], 1) == Lookup::Value(b"v");
        if meets { "meets" } else { "alone" }.to_owned()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        let stats = self.0.stats();
        assert_eq!((stats.entries, stats.avg_key_size), (3, 1.0), "I6 broken: a count was lost");
        String::new()
    }
}
