//! I1, I3, I9: what writers that meet leave behind, and what a reader sees meanwhile.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::{InsertError, Lookup, Memtable};

/// Threads 0 and 1 store neighbours, then each looks for the other's. Whose CAS came second has met the first.
pub(super) struct Adjacent {
    memtable: Memtable,
}

impl Program for Adjacent {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        through(0, || memtable.put(b"a", 1, b"")).expect("the table has room");
        through(1, || memtable.put(b"z", 1, b"")).expect("the table has room");
        Self { memtable }
    }

    fn thread(&self, number: usize) -> String {
        let keys = [b"b", b"c"];
        self.memtable.put(keys[number], 1, b"v").expect("the table has room");
        let meets = self.memtable.get(keys[1 - number], 1) == Lookup::Value(b"v");
        if meets { "meets" } else { "alone" }.to_owned()
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        let keys: Vec<_> = self.memtable.iter(1).map(|version| version.key).collect();
        assert_eq!(keys, [b"a", b"b", b"c", b"z"]);
        String::new()
    }
}

pub(super) const ADJACENT: &[&str] = &["alone | meets", "meets | alone", "meets | meets"];

/// Two threads store different values under one key and number: one of them does, and the other is told.
pub(super) struct SameKey {
    memtable: Memtable,
}

impl Program for SameKey {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        through(0, || memtable.put(b"a", 1, b"")).expect("the table has room");
        through(1, || memtable.put(b"z", 1, b"")).expect("the table has room");
        Self { memtable }
    }

    fn thread(&self, number: usize) -> String {
        let stored = self.memtable.put(b"k", 1, &[number as u8]);
        let Lookup::Value(found) = self.memtable.get(b"k", 1) else { panic!("the key is not there after a put") };
        match stored {
            Ok(()) => assert_eq!(found, [number as u8]),
            Err(refusal) => assert_eq!((refusal, found), (InsertError::DuplicateKey, &[1 - number as u8][..])),
        }
        if stored.is_ok() { "wins" } else { "loses" }.to_owned()
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        assert_eq!(self.memtable.len(), 3);
        String::new()
    }
}

pub(super) const SAME_KEY: &[&str] = &["loses | wins", "wins | loses"];

/// Threads 0 and 1 store neighbours; thread 2 scans twice.
pub(super) struct Scans {
    memtable: Memtable,
}

impl Program for Scans {
    const THREADS: usize = 3;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        through(0, || memtable.put(b"a", 1, b"")).expect("the table has room");
        through(1, || memtable.put(b"z", 1, b"")).expect("the table has room");
        Self { memtable }
    }

    fn thread(&self, number: usize) -> String {
        if number < 2 {
            self.memtable.put([b"b", b"c"][number], 1, b"v").expect("the table has room");
            return String::new();
        }
        format!("{} {}", self.scan(), self.scan())
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        assert_eq!(self.scan(), "abcz");
        String::new()
    }
}

impl Scans {
    fn scan(&self) -> String {
        self.memtable.all_versions().flat_map(|version| version.key).copied().map(char::from).collect()
    }
}

/// Sorted, and the second has all that the first had.
pub(super) const SCANS: &[&str] =
    &["abcz abcz", "abz abcz", "abz abz", "acz abcz", "acz acz", "az abcz", "az abz", "az acz", "az az"];

/// Two threads store a pair of keys between two others, all of which share more or less of their beginning.
pub(super) struct PartialKeys<const SET: usize> {
    memtable: Memtable,
}

/// Two keys.
type Keys = [&'static [u8]; 2];

/// What is there, and what the two threads store. The links that are swung say of their successor that it shares
/// nothing, one byte, two, or all of the key, and go on with zeros.
const SETS: [(Keys, Keys); 4] = [
    ([b"aa", b"c"], [b"ab", b"b"]),
    ([b"abca", b"abcz"], [b"abcc", b"abcccccc"]),
    ([b"a", b"a\0\0\0b"], [b"a\0", b"a\0\0"]),
    ([b"", b"ab\xff"], [b"a", b"ab"]),
];

impl<const SET: usize> Program for PartialKeys<SET> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        for (shard, key) in SETS[SET].0.iter().enumerate() {
            through(shard, || memtable.put(key, 1, b"")).expect("the table has room");
        }
        Self { memtable }
    }

    fn thread(&self, number: usize) -> String {
        self.memtable.put(SETS[SET].1[number], 1, b"v").expect("the table has room");
        String::new()
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        let mut keys = [SETS[SET].0, SETS[SET].1].concat();
        keys.sort_unstable();
        assert!(self.memtable.iter(1).map(|version| version.key).eq(keys.iter().copied()));
        assert!(keys.iter().all(|key| self.memtable.get(key, 1) != Lookup::Absent));
        String::new()
    }
}
