//! I1, I3, I4: batches and lookups whose searches are interleaved, concurrent with other writers.

use crate::check::Program;
use crate::models::table::{config, holding, put, settled, table, through};
use crate::sync::{AtomicU64, Ordering};
use crate::{BatchError, ConcurrentSkipList, Lookup, Memtable, Op};

/// Two threads store batches with alternating keys, each in a shard of its own. Then each searches for the other's keys.
pub(super) fn groups() -> Program<Memtable> {
    const KEYS: [[&[u8]; 2]; 2] = [[b"b", b"e"], [b"c", b"f"]];
    Program::new(|| {
        // The last node of each shard is behind all later nodes, so that no batch follows a run. Searches step over few nodes.
        let memtable = holding(2, &[b"d", b"y"]);
        through(1, || put(&memtable, b"z", b""));
        memtable
    })
    .threads(2, |memtable, number| {
        let batch = KEYS[number].map(|key| Op::Put { key, value: b"v" });
        assert_eq!(memtable.reserve(&batch).expect("the table has room").apply(1).stored, 2);
        let met = memtable.get_many(&KEYS[1 - number], 9).into_iter().filter(|found| *found == Lookup::Value(b"v"));
        met.count().to_string()
    })
    .at_rest(|memtable| assert_eq!(settled(memtable), "bcdefyz"))
    // The number of the other's keys that each thread found. A thread that misses a key has searched before the other linked it, but after
    // linking its own keys. So the other thread found both keys.
    .expects(&["0 | 2", "1 | 2", "2 | 0", "2 | 1", "2 | 2"])
}

/// Two threads store the same keys in one batch each.
pub(super) fn same_keys() -> Program<ConcurrentSkipList> {
    Program::new(|| {
        let list: ConcurrentSkipList = table(config(2));
        through(0, || assert!(list.insert(b"y", b"")));
        through(1, || assert!(list.insert(b"z", b"")));
        list
    })
    .threads(2, |list, number| {
        let value = [number as u8];
        let stored = match list.insert_batch(&[(b"k", value), (b"l", value)]) {
            Ok(stored) => stored,
            Err(BatchError::PartialFailure { succeeded, .. }) => succeeded,
        };
        stored.to_string()
    })
    .at_rest(|list| {
        list.validate();
        assert_eq!(list.len(), 4);
    })
    // Each key has one winner.
    .expects(&["0 | 2", "1 | 1", "2 | 0"])
}

/// Thread 0 stores an entry; thread 1 searches for the entry twice, together with more keys than one group of searches has.
pub(super) fn lookups() -> Program<Memtable> {
    let look = |memtable: &Memtable| match memtable.get_many(&["a", "k", "x", "z"], 9)[..] {
        [Lookup::Value(b""), Lookup::Value(b"a longer value"), Lookup::Absent, Lookup::Value(b"")] => "there",
        [Lookup::Value(b""), Lookup::Absent, Lookup::Absent, Lookup::Value(b"")] => "absent",
        ref other => panic!("I4 broken: {other:?}"),
    };
    Program::new(|| holding(1, &[b"a", b"z"]))
        .thread(|memtable| put(memtable, b"k", b"a longer value"))
        .thread(move |memtable| format!("{} {}", look(memtable), look(memtable)))
        .at_rest(move |memtable| {
            memtable.validate();
            assert_eq!(look(memtable), "there");
        })
        .expects(&["absent absent", "absent there", "there there"])
}

/// A table, and the last published sequence number.
pub(super) type Published = (Memtable, AtomicU64);

/// Thread 0 applies a batch and publishes its last sequence number, as an engine does; thread 1 reads at the published number. The batch searches
/// for its places as a group or, with `run`, is appended behind the last entries of its shard.
pub(super) fn batch(run: bool) -> Program<Published> {
    Program::new(move || {
        let memtable: Memtable = table(config(1));
        // A run, or a node behind all later nodes, so that the batch does not follow a run.
        let keys: [(&[u8], &[u8]); 2] = if run { [(b"A", b""), (b"a", b"1")] } else { [(b"a", b"1"), (b"z", b"")] };
        through(0, || keys.into_iter().for_each(|(key, value)| put(&memtable, key, value)));
        (memtable, AtomicU64::new(1))
    })
    .thread(|(memtable, published): &Published| {
        let batch = [Op::Put { key: b"k", value: b"2" }, Op::Delete { key: b"a" }];
        assert_eq!(memtable.reserve(&batch).expect("the table has room").apply(2).stored, 2);
        published.store(3, Ordering::Release);
    })
    .thread(|(memtable, published)| look_at(memtable, published.load(Ordering::Acquire)))
    .at_rest(|(memtable, _)| {
        memtable.validate();
        assert_eq!((look_at(memtable, 1), look_at(memtable, 3)), ("before", "whole"));
    })
    .expects(&["before", "whole"])
}

fn look_at(memtable: &Memtable, seqno: u64) -> &'static str {
    let scanned = memtable.iter(seqno);
    let scanned: String = scanned.flat_map(|v| v.key.iter().chain(v.value)).copied().map(char::from).collect();
    let found = memtable.get_many(&["a", "k"], seqno);
    match (&*scanned, &found[..]) {
        ("a1z" | "Aa1", [Lookup::Value(b"1"), Lookup::Absent]) => "before",
        ("ak2z" | "Aak2", [Lookup::Tombstone, Lookup::Value(b"2")]) => "whole",
        other => panic!("at number {seqno}: {other:?}"),
    }
}
