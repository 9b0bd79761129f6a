//! The memtable for loads that write and do not read: reads are right all the same.

use std::sync::atomic::{AtomicU64, Ordering};

use mini_engine::{Db, Durability, MemtableKind, WriteBatch};

use crate::scratch::TempDir;
use crate::support::Map;

fn open(dir: &TempDir, kind: MemtableKind) -> Db {
    let builder = Db::builder(dir.path()).memtable_kind(kind).memtable_bytes(16 << 10).immutable_memtables(3);
    builder.l0_trigger(2).open().unwrap()
}

fn read(db: &Db) -> Map {
    let entry = |entry: mini_engine::Result<(mini_engine::Slice, mini_engine::Slice)>| entry.unwrap();
    let forward: Map = db.iter().map(entry).map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert!(db.iter().rev().map(entry).map(|(key, _)| key.to_vec()).eq(forward.keys().rev().cloned()));
    for (key, value) in &forward {
        assert_eq!(db.get(key).unwrap().as_deref(), Some(&value[..]));
    }
    forward
}

#[test]
fn a_vector_memtable_loads_reads_flushes_and_recovers_as_a_skip_list_does() {
    // Catches entries that reach a table unsorted, reads before the flush that miss a write, and a log that needs its kind.
    let dir = TempDir::new().unwrap();
    let mut db = open(&dir, MemtableKind::Vector);
    let mut model = Map::new();
    for n in 0..3000u32 {
        // In no order, and each key several times.
        let key = format!("key{:04}", n.wrapping_mul(2_654_435_761) % 701).into_bytes();
        if n % 7 == 3 {
            db.remove(&key).unwrap();
            model.remove(&key);
        } else {
            db.insert(&key, n.to_be_bytes()).unwrap();
            model.insert(key, n.to_be_bytes().to_vec());
        }
        if n % 500 == 250 {
            assert_eq!(read(&db), model, "after {n}");
        }
        if n % 1000 == 999 {
            drop(db);
            let kind = if n == 1999 { MemtableKind::SkipList } else { MemtableKind::Vector };
            db = open(&dir, kind);
            assert_eq!(read(&db), model, "reopened after {n}");
        }
    }
    db.flush().unwrap();
    assert_eq!(read(&db), model);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn snapshots_and_readers_beside_a_writer_see_whole_batches_of_a_vector_memtable() {
    // Catches a batch shown in part, an iterator that grows while it is read, and a snapshot that does.
    let dir = TempDir::new().unwrap();
    let db = open(&dir, MemtableKind::Vector);
    let written = AtomicU64::new(0);
    const BATCHES: u64 = 600;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=BATCHES {
                let mut batch = WriteBatch::new();
                for key in ["left", "right", &format!("own{n:04}")] {
                    batch.insert(key, n.to_be_bytes()).unwrap();
                }
                db.write(batch, Durability::Buffered).unwrap();
                written.store(n, Ordering::SeqCst);
            }
        });
        let mut seen = 0;
        while seen < BATCHES {
            let at_least = written.load(Ordering::SeqCst);
            let snapshot = db.snapshot();
            let number = |key: &str| {
                let value = snapshot.get(key).unwrap();
                value.map_or(0, |value| u64::from_be_bytes(value[..].try_into().unwrap()))
            };
            seen = number("left");
            assert!(seen >= at_least && seen == number("right") && 3 * seen == snapshot.seqno());
            assert_eq!(snapshot.prefix("own").count() as u64, seen);
        }
    });
}
