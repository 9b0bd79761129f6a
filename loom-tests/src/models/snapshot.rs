//! I5: a snapshot shows the same whenever it is looked at, and has what its thread saw before it; a deletion brings
//! with it what came before.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::sync::{AtomicU32, Ordering};
use crate::{ConcurrentSkipList, Snapshot};

/// What `snapshot` says of the key "k": in a scan, and by itself.
fn look(snapshot: &Snapshot<'_>) -> &'static str {
    let scanned = snapshot.iter().find(|entry| entry.key == b"k").map(|entry| entry.is_tombstone);
    let found = snapshot.get(b"k").map(|(_, is_tombstone)| is_tombstone);
    assert_eq!(scanned, found, "I5 broken: a scan, and a lookup after it");
    match found {
        None => "absent",
        Some(false) => "live",
        Some(true) => "dead",
    }
}

fn holding(keys: &[&[u8]]) -> ConcurrentSkipList {
    let list: ConcurrentSkipList = table(config(1));
    through(0, || keys.iter().for_each(|key| assert!(list.insert(key, b""))));
    list
}

/// Thread 0 inserts; thread 1 takes a snapshot and looks twice. With `HELP`, thread 2 looks meanwhile, and so stamps
/// the entry where the writer has not yet.
pub(super) struct Insertion<const HELP: bool>(ConcurrentSkipList);

impl<const HELP: bool> Program for Insertion<HELP> {
    const THREADS: usize = 2 + HELP as usize;

    fn new() -> Self {
        Self(holding(&[b"a"]))
    }

    fn thread(&self, number: usize) -> String {
        let Self(list) = self;
        match number {
            0 => assert!(list.insert(b"k", b"")),
            1 => {
                let snapshot = list.snapshot();
                return format!("{} {}", look(&snapshot), look(&snapshot));
            }
            _ => drop(list.get(b"k")),
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(look(&self.0.snapshot()), "live");
        String::new()
    }
}

pub(super) const INSERTION: &[&str] = &["absent absent", "live live"];

/// As [`Insertion`], with a deletion.
pub(super) struct Deletion<const HELP: bool>(ConcurrentSkipList);

impl<const HELP: bool> Program for Deletion<HELP> {
    const THREADS: usize = 2 + HELP as usize;

    fn new() -> Self {
        Self(holding(&[b"k"]))
    }

    fn thread(&self, number: usize) -> String {
        let Self(list) = self;
        match number {
            0 => assert!(list.delete(b"k")),
            1 => {
                let snapshot = list.snapshot();
                return format!("{} {}", look(&snapshot), look(&snapshot));
            }
            _ => drop(list.get(b"k")),
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(look(&self.0.snapshot()), "dead");
        String::new()
    }
}

pub(super) const DELETION: &[&str] = &["dead dead", "live live"];

/// Thread 0 inserts and deletes; thread 1 looks, takes a snapshot, and looks there; thread 2 takes snapshots, so that
/// stamps differ.
pub(super) struct SeenBefore(ConcurrentSkipList);

impl Program for SeenBefore {
    const THREADS: usize = 3;

    fn new() -> Self {
        Self(holding(&[b"a"]))
    }

    fn thread(&self, number: usize) -> String {
        let Self(list) = self;
        match number {
            0 => {
                assert!(list.insert(b"k", b"") && list.delete(b"k"));
                String::new()
            }
            1 => {
                let seen = match list.get(b"k") {
                    None => "absent",
                    Some((_, false)) => "live",
                    Some((_, true)) => "dead",
                };
                format!("{seen} {}", look(&list.snapshot()))
            }
            _ => {
                let _ = list.snapshot();
                String::new()
            }
        }
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        String::new()
    }
}

pub(super) const SEEN_BEFORE: &[&str] =
    &["absent absent", "absent dead", "absent live", "dead dead", "live dead", "live live"];

/// Two threads delete one key: one call does it.
pub(super) struct TwoDeletions(ConcurrentSkipList);

impl Program for TwoDeletions {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(holding(&[b"k"]))
    }

    fn thread(&self, _: usize) -> String {
        let deleted = self.0.delete(b"k");
        assert_eq!(self.0.get(b"k"), Some((&b""[..], true)), "deleted, by whichever call");
        deleted.to_string()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!((self.0.len(), self.0.stats().tombstones), (0, 1));
        String::new()
    }
}

pub(super) const TWO_DELETIONS: &[&str] = &["false | true", "true | false"];

/// Thread 0 writes something elsewhere, then deletes; who sees the deletion sees that too. With `HELP`, thread 2 looks
/// meanwhile, and so stamps the deletion where thread 0 has not yet.
pub(super) struct Witness<const HELP: bool> {
    list: ConcurrentSkipList,
    written: AtomicU32,
}

impl<const HELP: bool> Program for Witness<HELP> {
    const THREADS: usize = 2 + HELP as usize;

    fn new() -> Self {
        Self { list: holding(&[b"k"]), written: AtomicU32::new(0) }
    }

    fn thread(&self, number: usize) -> String {
        match number {
            0 => {
                self.written.store(1, Ordering::Relaxed);
                assert!(self.list.delete(b"k"));
            }
            1 => {
                let deleted = self.list.get_live(b"k").is_none();
                let written = self.written.load(Ordering::Relaxed) == 1;
                assert!(written || !deleted, "deleted, and what came before is not there");
                return if deleted { "dead" } else { "live" }.to_owned();
            }
            _ => drop(self.list.get(b"k")),
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        self.list.validate();
        String::new()
    }
}

pub(super) const WITNESS: &[&str] = &["dead", "live"];
