//! I7: what was acknowledged is in the frozen table, what was refused is not, and nothing comes later.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::sync::{AtomicU32, Ordering};
use crate::{ConcurrentSkipList, InsertError, Memtable, Op};

fn keys(list: &ConcurrentSkipList) -> String {
    list.iter().flat_map(|entry| entry.key).copied().map(char::from).collect()
}

/// Thread 0 inserts twice, the last thread freezes and looks. With `SHARED`, one more writer goes through the same
/// gate.
pub(super) struct Seal<const SHARED: bool>(ConcurrentSkipList);

impl<const SHARED: bool> Program for Seal<SHARED> {
    const THREADS: usize = 2 + SHARED as usize;

    fn new() -> Self {
        let list: ConcurrentSkipList = table(config(1));
        through(0, || assert!(list.insert(b"a", b"")));
        Self(list)
    }

    fn thread(&self, number: usize) -> String {
        let Self(list) = self;
        if number == Self::THREADS - 1 {
            list.freeze();
            let frozen = keys(list);
            assert!(list.is_sealed());
            return frozen;
        }
        // One shard: every number goes through the same gate.
        let inserts: &[&[u8]] = if SHARED { &[&[b'k' + number as u8]] } else { &[b"k", b"l"] };
        let stored = inserts.iter().take_while(|key| match list.try_insert(key, b"") {
            Ok(()) => true,
            Err(refusal) => {
                assert_eq!(refusal, InsertError::Sealed);
                false
            }
        });
        stored.flat_map(|key| key.iter().copied()).map(char::from).collect()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.0.try_insert(b"z", b""), Err(InsertError::Sealed));
        keys(&self.0)
    }
}

/// What was stored, what the freezing thread found, what is there in the end.
pub(super) const SEAL: &[&str] = &["a | a", "k | ak | ak", "kl | akl | akl"];
/// Both writers' keys.
pub(super) const SEAL_SHARED: &[&str] = &["a | a", "k | ak | ak", "k | l | akl | akl", "l | al | al"];

/// Thread 0 writes a batch or, with `DROPS`, drops its reservation; thread 1 freezes. With `BOTH`, so does thread 2. The
/// batch is searched for as a group or, with `RUN`, follows what its shard stored before.
pub(super) struct Drain<const DROPS: bool, const BOTH: bool, const RUN: bool>(Memtable);

impl<const DROPS: bool, const BOTH: bool, const RUN: bool> Program for Drain<DROPS, BOTH, RUN> {
    const THREADS: usize = 2 + BOTH as usize;

    fn new() -> Self {
        let memtable: Memtable = table(config(2));
        // A run, or what is behind all that comes, so that a batch follows none.
        let keys: [&[u8]; 2] = if RUN { [b"a", b"b"] } else { [b"b", b"z"] };
        through(0, || keys.iter().for_each(|key| memtable.put(key, 1, b"").expect("the table has room")));
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        let Self(memtable) = self;
        if number > 0 {
            let frozen = memtable.freeze();
            let count = frozen.all_versions().count();
            assert_eq!(frozen.all_versions().count(), count, "I7 broken: the frozen table changed");
            return count.to_string();
        }
        let batch = [Op::Put { key: b"k", value: b"v" }, Op::Delete { key: b"l" }];
        match memtable.reserve(&batch) {
            Err(refusal) => {
                assert_eq!(refusal, InsertError::Sealed);
                "refused".to_owned()
            }
            Ok(_) if DROPS => "dropped".to_owned(),
            Ok(reservation) => {
                assert_eq!(reservation.apply(2), 2);
                "applied".to_owned()
            }
        }
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert!(self.0.is_frozen());
        String::new()
    }
}

pub(super) const DRAIN: &[&str] = &["applied | 4", "refused | 2"];
pub(super) const DRAIN_DROPPED: &[&str] = &["dropped | 2", "refused | 2"];
pub(super) const DRAIN_BOTH: &[&str] = &["applied | 4 | 4", "refused | 2 | 2"];

/// Thread 0 publishes something, as an engine does its next table, and freezes. Thread 1 writes, or with `ASKS` asks
/// whether the table is frozen; if so, it sees what was published.
pub(super) struct Successor<const ASKS: bool> {
    memtable: Memtable,
    published: AtomicU32,
}

impl<const ASKS: bool> Program for Successor<ASKS> {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self { memtable: table(config(2)), published: AtomicU32::new(0) }
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            self.published.store(1, Ordering::Relaxed);
            self.memtable.freeze();
            return String::new();
        }
        let frozen = if ASKS { self.memtable.is_frozen() } else { self.memtable.put(b"k", 1, b"").is_err() };
        if !frozen {
            return "open".to_owned();
        }
        assert!(self.memtable.is_frozen(), "I7 broken: refused as frozen, and said not to be");
        assert_eq!(self.published.load(Ordering::Relaxed), 1, "I7 broken: frozen, and what led to it is not there");
        "frozen".to_owned()
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        String::new()
    }
}

pub(super) const SUCCESSOR: &[&str] = &["frozen", "open"];
