//! I10: in a table in which the last write of a key and sequence number wins, each reader sees exactly one whole write.

use crate::builder::Config;
use crate::check::Program;
use crate::models::table::{config, put, through, unhinted};
use crate::{Duplicates, InsertError, Lookup, Memtable, Op};

/// The values of two writers, and the value before them. Their lengths differ, so that their counted bytes differ too.
const OLD: &[u8] = b"old";
const VALUES: [&[u8]; 2] = [b"a value of more than a word", b"another"];

/// A table that replaces, with two entries and, if `is_there`, one between them. `max_entries` of 0 means no limit.
fn table(is_there: bool, max_entries: usize) -> Memtable {
    let memtable: Memtable = unhinted(Config { duplicates: Duplicates::Replace, max_entries, ..config(2) });
    through(0, || {
        put(&memtable, b"a", b"");
        put(&memtable, b"z", b"");
        if is_there {
            put(&memtable, b"k", OLD);
        }
    });
    memtable
}

/// The name of the value that a lookup finds.
fn which(memtable: &Memtable) -> &'static str {
    let Lookup::Value(found) = memtable.get(b"k", 1) else { panic!("the key is not there") };
    let scanned = memtable.iter(1).nth(1).expect("the key is there");
    assert!([OLD, VALUES[0], VALUES[1]].contains(&found) && [OLD, VALUES[0], VALUES[1]].contains(&scanned.value));
    match VALUES.iter().position(|value| *value == scanned.value) {
        Some(0) => "0",
        Some(_) => "1",
        None => "old",
    }
}

/// Thread 0 replaces a value; thread 1 reads it twice.
pub(super) fn value() -> Program<Memtable> {
    Program::new(|| table(true, 0))
        .thread(|memtable| put(memtable, b"k", VALUES[0]))
        .thread(|memtable| format!("{} {}", which(memtable), which(memtable)))
        .at_rest(|memtable| {
            memtable.validate();
            which(memtable)
        })
        .expects(&["0 0 | 0", "old 0 | 0", "old old | 0"])
}

/// Two threads write different values under one key and sequence number, each in a shard of its own, and then read. One value stays; a thread that
/// reads the other's value wrote first. A replaced value was counted before. The key takes one entry of the limit, whichever thread links it.
pub(super) fn writers(is_there: bool) -> Program<Memtable> {
    Program::new(move || table(is_there, 4))
        .threads(2, |memtable, number| {
            let written = memtable.put(b"k", 1, VALUES[number]).expect("the table has room");
            assert_eq!(written.stored, 1);
            let least = VALUES[1].len().min(VALUES[0].len());
            assert!(memtable.stats().value_bytes >= least, "I6 broken: a value was taken back that is not counted yet");
            format!("{}{}", if written.replaced == 1 { "replaces, " } else { "" }, which(memtable))
        })
        .at_rest(|memtable| {
            memtable.validate();
            let stats = memtable.stats();
            let last = which(memtable);
            let value = VALUES[usize::from(last == "1")];
            assert_eq!((stats.len, stats.avg_value_size * 3.0), (3, value.len() as f64));
            assert_eq!(memtable.put(b"l", 1, b"").map(|written| written.stored), Ok(1), "I6 broken: an entry is lost");
            assert_eq!(memtable.put(b"m", 1, b""), Err(InsertError::Full));
            last
        })
        .expects(match is_there {
            true => &[
                "replaces, 0 | replaces, 0 | 0",
                "replaces, 0 | replaces, 1 | 0",
                "replaces, 0 | replaces, 1 | 1",
                "replaces, 1 | replaces, 1 | 1",
            ],
            false => &["0 | replaces, 1 | 1", "1 | replaces, 1 | 1", "replaces, 0 | 0 | 0", "replaces, 0 | 1 | 0"],
        })
}

/// Two threads write one key and sequence number if they are absent: one of them stores, and the other's entry comes back to the limit.
pub(super) fn if_absent() -> Program<Memtable> {
    Program::new(|| table(false, 4))
        .threads(2, |memtable, number| {
            let written = memtable.write_if_absent(&Op::Put { key: b"k", value: VALUES[number] }, 1);
            assert!(matches!(written, Ok(_) | Err(InsertError::DuplicateKey)));
            format!("{}{}", if written.is_ok() { "stores, " } else { "" }, which(memtable))
        })
        .at_rest(|memtable| {
            memtable.validate();
            assert_eq!(memtable.put(b"l", 1, b"").map(|written| written.stored), Ok(1), "I6 broken: an entry is lost");
            which(memtable)
        })
        .expects(&["1 | stores, 1 | 1", "stores, 0 | 0 | 0"])
}
