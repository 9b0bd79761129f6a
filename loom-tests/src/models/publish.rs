//! I3, I4: an entry is there as a whole or not at all, and once there it stays.

use crate::check::Program;
use crate::models::table::{config, hinted, through};
use crate::{Kind, Lookup, Memtable};

/// Longer than two words, so that it spans some that are only bytes of the value.
const VALUE: &[u8] = b"a value longer than two words";
const SEQNO: u64 = 7;

/// Thread 0 stores an entry; thread 1 looks for it twice.
pub(super) struct Publish {
    memtable: Memtable,
}

impl Program for Publish {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = hinted(config(1));
        through(0, || memtable.put(b"a", 1, b"")).expect("the table has room");
        Self { memtable }
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            self.memtable.put(b"k", SEQNO, VALUE).expect("the table has room");
            return String::new();
        }
        format!("{} {}", self.get(), self.scan())
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        assert_eq!((self.get(), self.scan()), ("there", "there"));
        String::new()
    }
}

impl Publish {
    fn get(&self) -> &'static str {
        match self.memtable.get(b"k", u64::MAX) {
            Lookup::Absent => "absent",
            found => {
                assert_eq!(found, Lookup::Value(VALUE));
                "there"
            }
        }
    }

    fn scan(&self) -> &'static str {
        match self.memtable.all_versions().nth(1) {
            None => "absent",
            Some(found) => {
                assert_eq!((found.key, found.seqno, found.kind, found.value), (&b"k"[..], SEQNO, Kind::Value, VALUE));
                "there"
            }
        }
    }
}

pub(super) const OUTCOMES: &[&str] = &["absent absent", "absent there", "there there"];
