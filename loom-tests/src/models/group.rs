//! I1, I3, I4: batches and lookups whose searches are interleaved, beside other writers.

use crate::check::Program;
use crate::models::table::{config, table, through};
use crate::sync::{AtomicU64, Ordering};
use crate::{BatchError, ConcurrentSkipList, Lookup, Memtable, Op};

/// Two threads store batches whose keys alternate, each through a shard of its own, then each looks for the other's.
pub(super) struct Groups(Memtable);

const KEYS: [[&[u8]; 2]; 2] = [[b"b", b"e"], [b"c", b"f"]];

impl Program for Groups {
    const THREADS: usize = 2;

    fn new() -> Self {
        // The last node of each shard is behind all that comes, so that no batch follows a run. No search walks far.
        let memtable: Memtable = table(config(2));
        through(0, || memtable.put(b"d", 1, b"")).expect("the table has room");
        through(0, || memtable.put(b"y", 1, b"")).expect("the table has room");
        through(1, || memtable.put(b"z", 1, b"")).expect("the table has room");
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        let batch = KEYS[number].map(|key| Op::Put { key, value: b"v" });
        assert_eq!(self.0.reserve(&batch).expect("the table has room").apply(1), 2);
        let met = self.0.get_many(&KEYS[1 - number], 9).into_iter().filter(|found| *found == Lookup::Value(b"v"));
        met.count().to_string()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        let keys: Vec<_> = self.0.all_versions().flat_map(|version| version.key).copied().collect();
        assert_eq!(keys, b"bcdefyz");
        String::new()
    }
}

/// How many each met of the other's. Who misses one looked before the other linked it, behind what it had linked itself: so
/// the other met both.
pub(super) const GROUPS: &[&str] = &["0 | 2", "1 | 2", "2 | 0", "2 | 1", "2 | 2"];

/// Two threads store the same keys in one batch each.
pub(super) struct SameKeys(ConcurrentSkipList);

impl Program for SameKeys {
    const THREADS: usize = 2;

    fn new() -> Self {
        let list: ConcurrentSkipList = table(config(2));
        through(0, || assert!(list.insert(b"y", b"")));
        through(1, || assert!(list.insert(b"z", b"")));
        Self(list)
    }

    fn thread(&self, number: usize) -> String {
        let value = [number as u8];
        match self.0.insert_batch(&[(b"k", value), (b"l", value)]) {
            Ok(stored) => stored,
            Err(BatchError::PartialFailure { succeeded, .. }) => succeeded,
        }
        .to_string()
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.0.len(), 4);
        String::new()
    }
}

/// Each key has one winner.
pub(super) const SAME_KEYS: &[&str] = &["0 | 2", "1 | 1", "2 | 0"];

/// Thread 0 stores an entry; thread 1 looks for it twice, among more keys than are searched for at once.
pub(super) struct Lookups(Memtable);

impl Lookups {
    fn look(&self) -> &'static str {
        match self.0.get_many(&["a", "k", "x", "z"], 9)[..] {
            [Lookup::Value(b""), Lookup::Value(b"a longer value"), Lookup::Absent, Lookup::Value(b"")] => "there",
            [Lookup::Value(b""), Lookup::Absent, Lookup::Absent, Lookup::Value(b"")] => "absent",
            ref other => panic!("I4 broken: {other:?}"),
        }
    }
}

impl Program for Lookups {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(1));
        through(0, || [b"a", b"z"].iter().for_each(|key| memtable.put(*key, 1, b"").expect("the table has room")));
        Self(memtable)
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            self.0.put(b"k", 1, b"a longer value").expect("the table has room");
            return String::new();
        }
        format!("{} {}", self.look(), self.look())
    }

    fn at_rest(&self) -> String {
        self.0.validate();
        assert_eq!(self.look(), "there");
        String::new()
    }
}

pub(super) const LOOKUPS: &[&str] = &["absent absent", "absent there", "there there"];

/// Thread 0 applies a batch and publishes its last number, as an engine does; thread 1 reads at the number that it finds
/// published. The batch is searched for as a group or, with `RUN`, follows what its shard stored before.
pub(super) struct Batch<const RUN: bool> {
    memtable: Memtable,
    published: AtomicU64,
}

impl<const RUN: bool> Batch<RUN> {
    fn look(&self, seqno: u64) -> String {
        let scanned = self.memtable.iter(seqno);
        let scanned: String = scanned.flat_map(|v| v.key.iter().chain(v.value)).copied().map(char::from).collect();
        let found = self.memtable.get_many(&["a", "k"], seqno);
        match (&*scanned, &found[..]) {
            ("a1z" | "Aa1", [Lookup::Value(b"1"), Lookup::Absent]) => "before",
            ("ak2z" | "Aak2", [Lookup::Tombstone, Lookup::Value(b"2")]) => "whole",
            other => panic!("at number {seqno}: {other:?}"),
        }
        .to_owned()
    }
}

impl<const RUN: bool> Program for Batch<RUN> {
    const THREADS: usize = 2;

    fn new() -> Self {
        let memtable: Memtable = table(config(1));
        // A run, or what is behind all that comes, so that the batch follows none.
        let keys: [(&[u8], &[u8]); 2] = if RUN { [(b"A", b""), (b"a", b"1")] } else { [(b"a", b"1"), (b"z", b"")] };
        let put = |(key, value)| memtable.put(key, 1, value).expect("the table has room");
        through(0, || keys.into_iter().for_each(put));
        Self { memtable, published: AtomicU64::new(1) }
    }

    fn thread(&self, number: usize) -> String {
        if number == 0 {
            let batch = [Op::Put { key: b"k", value: b"2" }, Op::Delete { key: b"a" }];
            assert_eq!(self.memtable.reserve(&batch).expect("the table has room").apply(2), 2);
            self.published.store(3, Ordering::Release);
            return String::new();
        }
        self.look(self.published.load(Ordering::Acquire))
    }

    fn at_rest(&self) -> String {
        self.memtable.validate();
        assert_eq!((self.look(1), self.look(3)), ("before".to_owned(), "whole".to_owned()));
        String::new()
    }
}

pub(super) const BATCH: &[&str] = &["before", "whole"];
