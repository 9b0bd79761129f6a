//! The cost of point reads, by the engine's own counters.

use crate::support::*;

fn small(builder: Builder) -> Builder {
    builder.memtable_bytes(1 << 20).block_bytes(512).partition_bytes(1024).l0_trigger(1000)
}

#[test]
fn a_block_that_holds_several_of_the_keys_is_looked_for_once() {
    // Catches a batch that is only a loop over single reads.
    let (_dir, db) = opened(small);
    fill(&db, 0..1000, [0; 20]);
    db.flush().unwrap();
    let looked = |db: &Db| db.metrics().cache_hits + db.metrics().cache_misses;
    let before = looked(&db);
    let keys: Vec<String> = (0..1000).rev().map(key).collect();
    assert!(db.get_many(&keys).unwrap().iter().all(Option::is_some));
    let together = looked(&db) - before;
    assert!((50..=110).contains(&together), "{together} blocks of about 12 entries were looked for 1000 keys");
    assert_eq!(db.metrics().gets, 1000);
}

#[test]
fn keys_may_come_from_an_iterator_that_writes() {
    // Catches a view from before the last key was requested: the read must see all writes that were acknowledged by then.
    let (_dir, db) = opened(small);
    let write = |n: u64| {
        db.insert(key(n), "there").unwrap();
        key(n)
    };
    assert!(db.get_many((0..10).map(write)).unwrap().iter().all(Option::is_some));
    assert!(db.get_many_up_to(1000, (10..20).map(write)).unwrap().iter().all(|answer| matches!(answer, Some(Some(_)))));
}

#[test]
fn memory_of_the_cache_and_of_open_tables_is_accounted_for() {
    // Catches metadata that grows unnoticed beside the cache, and a cache that reports entries instead of bytes.
    let (_dir, db) = opened(|b| small(b).cache_bytes(64 << 10).compression(Compression::None));
    assert_eq!((db.metrics().cache_bytes, db.metrics().table_memory_bytes), (0, 0));
    fill(&db, 0..5000, [0; 100]);
    db.flush().unwrap();
    // Only the roots with about 25 partitions stay in memory. The partitions' filters and fence pointers for about 1250 blocks take 30 KB: key, end,
    // offset and head of each.
    let memory = db.metrics().table_memory_bytes;
    assert!((500..2500).contains(&memory), "{memory}");
    assert_eq!(db.iter().count(), 5000);
    let cached = db.metrics().cache_bytes;
    assert!((32 << 10..=64 << 10).contains(&cached), "{cached}");
}

#[test]
fn a_get_of_a_database_that_was_just_opened_reads_two_blocks_at_most() {
    // Catches an open that reads filters and indexes, and a read that needs more than a partition and a data block.
    let dir = TempDir::new().unwrap();
    let options = || small(Db::builder(dir.path())).memtable_bytes(4 << 20);
    let db = options().open().unwrap();
    fill(&db, 0..20_000, [0; 100]);
    db.close().unwrap();
    let reads = |db: &Db| (db.metrics().partition_reads, db.metrics().block_reads);
    for n in [0, 7, 9_999, 19_999] {
        let db = options().open().unwrap();
        assert_eq!(reads(&db), (0, 0));
        assert!(db.get(key(n)).unwrap().is_some());
        assert_eq!((reads(&db), db.metrics().levels[0].tables), ((1, 1), 1), "key {n}");
        assert!(db.get(key(n)).unwrap().is_some());
        assert_eq!((reads(&db), db.metrics().partition_hits), ((1, 1), 1), "key {n}, again");
    }
}

#[test]
fn reads_of_mapped_tables_go_on_while_compactions_delete_them() {
    // Catches a mapping that is unmapped while an iterator or a value uses it, file handles that mapped tables keep, and blocks of such tables
    // in the cache.
    let dir = TempDir::new().unwrap();
    let db = small(Db::builder(dir.path()))
        .memtable_bytes(64 << 10)
        .compression(Compression::None)
        .table_reads(TableReads::Mmap)
        .open()
        .unwrap();
    let value = |n: u64| n.to_le_bytes().repeat(20);
    for n in 0..3000 {
        db.insert(key(n), value(n)).unwrap();
    }
    db.flush().unwrap();
    let kept: Vec<Slice> = (0..3000).map(|n| db.get(key(n)).unwrap().unwrap()).collect();
    assert_eq!((db.metrics().open_files, db.metrics().cache_hits), (0, 0));
    let mut half_way = db.iter();
    assert_eq!(half_way.by_ref().take(1000).map(Result::unwrap).count(), 1000);
    (0..3000).step_by(2).for_each(|n| db.remove(key(n)).unwrap());
    db.compact_range(..).unwrap();
    assert_eq!((db.iter().count(), half_way.map(Result::unwrap).count()), (1500, 2000));
    let snapshot = db.snapshot();
    assert_eq!(snapshot.get(key(1)).unwrap().as_deref(), Some(&value(1)[..]));
    assert!(db.verify().unwrap().problems.is_empty());
    drop(snapshot);
    db.close().unwrap();
    assert!((0..).zip(&kept).all(|(n, kept)| **kept == *value(n)));
}
