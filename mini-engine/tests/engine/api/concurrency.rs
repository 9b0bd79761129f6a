//! Readers and writers together, with flushes and merges under way all the time.

use crate::support::*;

const KEYS: u64 = 200;

fn open(dir: &TempDir) -> Db {
    Db::builder(dir.path()).memtable_bytes(16 << 10).l0_trigger(2).block_bytes(512).open().unwrap()
}

/// A value that says which key and generation it belongs to, and carries a checksum of that.
fn value(n: u64, generation: u64) -> Vec<u8> {
    let mut value = [n.to_le_bytes(), generation.to_le_bytes(), checksum(n, generation)].concat();
    value.resize(24 + (generation % 50) as usize, generation as u8);
    value
}

fn checksum(n: u64, generation: u64) -> [u8; 8] {
    let mut hasher = DefaultHasher::new();
    (n, generation).hash(&mut hasher);
    hasher.finish().to_le_bytes()
}

/// Checks a value against its key and returns its generation.
fn check(key_bytes: &[u8], value_bytes: &[u8]) -> u64 {
    let word = |at: usize| u64::from_le_bytes(value_bytes[at..at + 8].try_into().unwrap());
    let (n, generation) = (word(0), word(8));
    assert_eq!(key_bytes, key(n).as_bytes(), "a value under another key");
    assert_eq!(value_bytes, value(n, generation), "a damaged value");
    generation
}

#[test]
fn an_iterator_never_misses_what_was_there_when_it_was_made() {
    // Catches a view that is swapped under a reader: a key would be missing while its memtable becomes a table.
    let dir = TempDir::new().unwrap();
    let db = open(&dir);
    for n in 0..KEYS {
        db.insert(key(n), value(n, 0)).unwrap();
    }
    let running = AtomicU64::new(2);
    thread::scope(|scope| {
        for writer in 0..2 {
            let (db, running) = (&db, &running);
            scope.spawn(move || {
                for generation in 1..60 {
                    // Each key has one writer, so that its generations come in order.
                    for n in (0..KEYS).filter(|n| n % 2 == writer) {
                        db.insert(key(n), value(n, generation)).unwrap();
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        for reader in 0..2 {
            let (db, running) = (&db, &running);
            scope.spawn(move || {
                let mut newest: HashMap<Vec<u8>, u64> = HashMap::new();
                let mut rounds = 0;
                while rounds < 3 || running.load(Ordering::SeqCst) > 0 {
                    read_all(db, reader == 1, &mut newest);
                    rounds += 1;
                }
            });
        }
    });
    let metrics = db.metrics();
    assert!(metrics.flushes > 10, "{metrics:?}");
    assert_eq!(db.verify().unwrap().problems.len(), 0);
}

/// Reads everything by an iterator, then by point reads; generations never go back.
fn read_all(db: &Db, backward: bool, newest: &mut HashMap<Vec<u8>, u64>) {
    let mut entries: Vec<_> = match backward {
        false => db.iter().map(Result::unwrap).collect(),
        true => db.iter().rev().map(Result::unwrap).collect(),
    };
    if backward {
        entries.reverse();
    }
    let keys: Vec<Vec<u8>> = entries.iter().map(|(key, _)| key.to_vec()).collect();
    assert_eq!(keys, (0..KEYS).map(|n| key(n).into_bytes()).collect::<Vec<_>>());
    let gets = keys.iter().map(|key| db.get(key).unwrap().expect("a key that is never removed"));
    let values = entries.iter().map(|(_, value)| value.clone()).chain(gets);
    for (key, value) in keys.iter().cycle().zip(values) {
        let generation = check(key, &value);
        let seen = newest.entry(key.clone()).or_default();
        assert!(generation >= *seen, "generation {generation} of {key:?} after {seen}");
        *seen = generation;
    }
}

#[test]
fn rule_12_a_snapshot_at_seqno_s_sees_exactly_the_first_s_writes() {
    // Catches numbers that become visible out of order or before their entries, and a view older than its number.
    const WRITERS: u64 = 3;
    const EACH: u64 = 3000;
    let dir = TempDir::new().unwrap();
    let db = open(&dir);
    let running = AtomicU64::new(WRITERS);
    thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (db, running) = (&db, &running);
            scope.spawn(move || {
                for n in 0..EACH {
                    // A key of its own for each write: the number of keys is the number of writes.
                    db.insert(key(n * WRITERS + writer), "").unwrap();
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        scope.spawn(|| {
            let mut before = 0;
            loop {
                let last = running.load(Ordering::SeqCst) == 0;
                let snapshot = db.snapshot();
                let seen = snapshot.iter().map(Result::unwrap).count() as u64;
                assert_eq!(seen, snapshot.seqno());
                assert!(seen >= before);
                before = seen;
                if last {
                    break;
                }
            }
            assert_eq!(before, WRITERS * EACH);
        });
    });
}

#[test]
fn rule_12_a_batch_is_seen_whole_or_not_at_all() {
    // Catches a number published in the middle of a batch, and an iterator or a snapshot that grows while it is read.
    for kind in [MemtableKind::SkipList, MemtableKind::Vector] {
        let (_dir, db) = opened(|b| b.memtable_kind(kind).memtable_bytes(16 << 10).l0_trigger(2).block_bytes(512));
        let writing = AtomicBool::new(true);
        thread::scope(|scope| {
            scope.spawn(|| {
                for generation in 1..=1500u64 {
                    let all = batch(["a", "m", "z"].map(|key| (key, generation.to_le_bytes())));
                    db.write(all, Durability::Buffered).unwrap();
                }
                writing.store(false, Ordering::SeqCst);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    let mut rounds = 0;
                    while rounds < 10 || writing.load(Ordering::SeqCst) {
                        let values = db.get_many(["a", "m", "z"]).unwrap();
                        assert!(values[0] == values[1] && values[1] == values[2], "{values:?}");
                        let snapshot = db.snapshot();
                        let newest = (snapshot.seqno() / 3).to_le_bytes();
                        let seen = pairs(snapshot.iter());
                        assert!(seen.iter().all(|(_, value)| **value == newest), "{seen:?}");
                        assert_eq!(seen.len(), if snapshot.seqno() == 0 { 0 } else { 3 });
                        rounds += 1;
                    }
                });
            }
        });
    }
}

#[test]
fn rule_16_a_key_that_is_overwritten_all_the_time_is_never_missing() {
    // Catches a reader that loads the visible number first: a merge drops the version of that number, and the view that
    // is pinned after it has only newer ones.
    let (_dir, db) = opened(|b| b.memtable_bytes(4096).l0_trigger(1));
    db.insert("k", 0u64.to_le_bytes()).unwrap();
    let writing = AtomicBool::new(true);
    thread::scope(|scope| {
        scope.spawn(|| {
            for generation in 1..20_000u64 {
                db.insert("k", generation.to_le_bytes()).unwrap();
            }
            writing.store(false, Ordering::SeqCst);
        });
        for point in [true, false] {
            let (db, writing) = (&db, &writing);
            scope.spawn(move || {
                let (mut before, mut rounds) = (0, 0);
                while rounds < 10 || writing.load(Ordering::SeqCst) {
                    let found =
                        if point { db.get("k").unwrap() } else { db.iter().next().map(|entry| entry.unwrap().1) };
                    let found = u64::from_le_bytes(found.expect("the key is always there")[..].try_into().unwrap());
                    assert!(found >= before);
                    before = found;
                    rounds += 1;
                }
            });
        }
    });
    assert!(db.metrics().flushes > 20);
}
