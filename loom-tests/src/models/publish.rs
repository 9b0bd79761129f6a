//! I3, I4: a reader sees an entry whole or not at all, and once visible an entry stays.

use crate::check::Program;
use crate::models::table::{config, hinted, put, through};
use crate::{Kind, Lookup, Memtable, Version};

/// Longer than two words, so that some words contain only bytes of the value.
const VALUE: &[u8] = b"a value longer than two words";
const SEQNO: u64 = 7;

/// Thread 0 stores an entry; thread 1 searches for it twice.
pub(super) fn publish() -> Program<Memtable> {
    Program::new(|| {
        let memtable = hinted(config(1));
        through(0, || put(&memtable, b"a", b""));
        memtable
    })
    .thread(|memtable| assert!(memtable.put(b"k", SEQNO, VALUE).is_ok()))
    .thread(look)
    .at_rest(|memtable| {
        memtable.validate();
        assert_eq!(look(memtable), "there there");
    })
    .expects(&["absent absent", "absent there", "there there"])
}

/// The results of a lookup, and of a scan after it.
fn look(memtable: &Memtable) -> String {
    let found = match memtable.get(b"k", u64::MAX) {
        Lookup::Absent => "absent",
        found => {
            assert_eq!(found, Lookup::Value(VALUE));
            "there"
        }
    };
    let scanned = memtable.all_versions().nth(1);
    assert!(scanned.is_none_or(|found| found == Version::new(b"k", SEQNO, Kind::Value, VALUE)), "{scanned:?}");
    format!("{found} {}", if scanned.is_some() { "there" } else { "absent" })
}
