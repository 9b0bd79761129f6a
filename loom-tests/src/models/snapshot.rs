//! I5: a snapshot shows the same entries at every read, and includes all that its thread saw before. A reader that sees a deletion also sees the
//! writes before the deletion.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::sync::{AtomicU32, Ordering};
use crate::{ConcurrentSkipList, Snapshot};

/// The name for the result of a read of the key "k".
fn shown(found: Option<bool>) -> &'static str {
    match found {
        None => "absent",
        Some(false) => "live",
        Some(true) => "dead",
    }
}

/// The result of `snapshot` for the key "k", which a scan and a lookup must share.
fn look(snapshot: &Snapshot<'_>) -> &'static str {
    let scanned = snapshot.iter().find(|entry| entry.key == b"k").map(|entry| entry.is_tombstone);
    let found = snapshot.get(b"k").map(|(_, is_tombstone)| is_tombstone);
    assert_eq!(scanned, found, "I5 broken: a scan, and a lookup after it");
    shown(found)
}

fn holding(key: &[u8]) -> ConcurrentSkipList {
    let list: ConcurrentSkipList = table(config(1));
    through(0, || assert!(list.insert(key, b"")));
    list
}

/// Whether one more thread reads concurrently, and so may stamp an entry before its writer does.
#[derive(Debug, Clone, Copy)]
pub(super) enum Help {
    None = 0,
    Looks = 1,
}

/// Thread 0 inserts or, with `deletes`, deletes a key; thread 1 takes a snapshot and reads it twice.
pub(super) fn change(deletes: bool, help: Help) -> Program<ConcurrentSkipList> {
    Program::new(move || holding(if deletes { b"k" } else { b"a" }))
        .thread(move |list| assert!(if deletes { list.delete(b"k") } else { list.insert(b"k", b"") }))
        .thread(|list| {
            let snapshot = list.snapshot();
            format!("{} {}", look(&snapshot), look(&snapshot))
        })
        .threads(help as usize, |list, _| _ = list.get(b"k"))
        .at_rest(move |list| {
            list.validate();
            assert_eq!(look(&list.snapshot()), if deletes { "dead" } else { "live" });
        })
        .expects(if deletes { &["dead dead", "live live"] } else { &["absent absent", "live live"] })
}

/// Thread 0 inserts and deletes; thread 1 reads, takes a snapshot, and reads it; thread 2 takes snapshots, so that stamps differ.
pub(super) fn seen_before() -> Program<ConcurrentSkipList> {
    Program::new(|| holding(b"a"))
        .thread(|list| assert!(list.insert(b"k", b"") && list.delete(b"k")))
        .thread(|list| {
            let seen = shown(list.get(b"k").map(|(_, is_tombstone)| is_tombstone));
            format!("{seen} {}", look(&list.snapshot()))
        })
        .thread(|list| _ = list.snapshot())
        .at_rest(ConcurrentSkipList::validate)
        .expects(&["absent absent", "absent dead", "absent live", "dead dead", "live dead", "live live"])
}

/// Two threads delete one key: exactly one call succeeds.
pub(super) fn two_deletions() -> Program<ConcurrentSkipList> {
    Program::new(|| holding(b"k"))
        .threads(2, |list, _| {
            let deleted = list.delete(b"k");
            assert_eq!(list.get(b"k"), Some((&b""[..], true)), "deleted, by whichever call");
            deleted.to_string()
        })
        .at_rest(|list| {
            list.validate();
            assert_eq!((list.len(), list.stats().tombstones), (0, 1));
        })
        .expects(&["false | true", "true | false"])
}

/// A list, and a word of data outside of the list.
pub(super) type Witnessed = (ConcurrentSkipList, AtomicU32);

/// Thread 0 writes the other word, then deletes; a thread that sees the deletion also sees that write.
pub(super) fn witness(help: Help) -> Program<Witnessed> {
    Program::new(|| (holding(b"k"), AtomicU32::new(0)))
        .thread(|(list, written): &Witnessed| {
            written.store(1, Ordering::Relaxed);
            assert!(list.delete(b"k"));
        })
        .thread(|(list, written)| {
            let deleted = list.get_live(b"k").is_none();
            let written = written.load(Ordering::Relaxed) == 1;
            assert!(written || !deleted, "deleted, and what came before is not there");
            if deleted { "dead" } else { "live" }
        })
        .threads(help as usize, |(list, _), _| _ = list.get(b"k"))
        .at_rest(|(list, _)| list.validate())
        .expects(&["dead", "live"])
}
