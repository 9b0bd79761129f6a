//! Concurrent readers and writers, with flushes and compactions running all the time.

use crate::support::*;

#[test]
fn rule_12_a_snapshot_at_seqno_s_sees_exactly_the_first_s_writes() {
    // Catches sequence numbers that become visible out of order or before their entries, and a view older than its sequence number.
    const WRITERS: u64 = 3;
    const EACH: u64 = 3000;
    let (_dir, db) = opened(|b| b.memtable_bytes(16 << 10).l0_trigger(2).block_bytes(512));
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
    // Catches a sequence number published in the middle of a batch, and an iterator or a snapshot that grows while it is read.
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
    // Catches a reader that loads the visible sequence number before it pins a view: a compaction may drop the version of
    // that number in between, and the view then has only newer versions.
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
