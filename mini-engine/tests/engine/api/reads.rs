//! Point reads: many at once against one at a time, and what the engine counts about them.

use mini_engine::{Compression, Db, MemtableKind, Slice, Snapshot, TableReads};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::scratch::TempDir;
use crate::support::key;

fn small(dir: &TempDir) -> mini_engine::Builder {
    Db::builder(dir.path()).memtable_bytes(64 << 10).block_bytes(512).partition_bytes(1024).l0_trigger(1000)
}

#[derive(Clone, Debug)]
enum Step {
    Insert(u64, usize),
    Remove(u64),
    /// Of ten keys.
    RemoveRange(u64),
    Flush,
    TakeSnapshot,
    /// Keys to ask for, some of them twice, some that were never written.
    Ask(Vec<u64>),
}

fn step() -> impl Strategy<Value = Step> {
    let n = || 0u64..60;
    prop_oneof![
        20 => (n(), 0usize..300).prop_map(|(n, len)| Step::Insert(n, len)),
        6 => n().prop_map(Step::Remove),
        1 => n().prop_map(Step::RemoveRange),
        3 => Just(Step::Flush),
        1 => Just(Step::TakeSnapshot),
        4 => vec(0u64..80, 0..40).prop_map(Step::Ask),
    ]
}

fn singly(get: impl Fn(&str) -> mini_engine::Result<Option<Slice>>, keys: &[String]) -> Vec<Option<Slice>> {
    keys.iter().map(|key| get(key).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn many_reads_at_once_find_what_single_reads_find(
        steps in vec(step(), 1..150), filter in prop_oneof![Just(0u32), Just(10)],
        reads in prop_oneof![Just(TableReads::Pread), Just(TableReads::Mmap)], limit in 0usize..400,
        memtable in prop_oneof![Just(MemtableKind::SkipList), Just(MemtableKind::Vector)],
    ) {
        // Catches values in another order than their keys, an older source that overrules a newer one, a removed key
        // that is found in an older table, a key that is asked for twice and answered once; a limit that is passed by more than a value,
        // or that leaves a key without an answer before it is reached.
        let dir = TempDir::new().unwrap();
        let db = small(&dir).filter_bits_per_key(filter).table_reads(reads).memtable_kind(memtable).open().unwrap();
        let mut snapshots: Vec<Snapshot> = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Insert(n, len) => db.insert(key(n), vec![at as u8; len]).unwrap(),
                Step::Remove(n) => db.remove(key(n)).unwrap(),
                Step::RemoveRange(n) => db.remove_range(key(n)..key(n + 10)).unwrap(),
                Step::Flush => db.flush().unwrap(),
                Step::TakeSnapshot => snapshots.push(db.snapshot()),
                Step::Ask(asked) => {
                    let keys: Vec<String> = asked.into_iter().map(key).collect();
                    let values = singly(|key| db.get(key), &keys);
                    prop_assert_eq!(&db.get_many(&keys).unwrap(), &values);
                    let gets = db.metrics().gets;
                    let of_db = db.get_many_up_to(limit, &keys).unwrap();
                    prop_assert_eq!(db.metrics().gets - gets, of_db.iter().flatten().count() as u64);
                    // Which keys have answers within the limit depends on where they are, which a flush or a compaction changes.
                    for answers in [of_db, db.snapshot().get_many_up_to(limit, &keys).unwrap()] {
                        let answered = answers.iter().zip(&values).filter_map(|(answer, value)| Some((answer.as_ref()?, value)));
                        prop_assert!(answered.clone().all(|(answer, value)| answer == value));
                        let lens = || answered.clone().filter_map(|(_, value)| Some(value.as_ref()?.len()));
                        let (bytes, longest) = (lens().sum::<usize>(), lens().max().unwrap_or(0));
                        prop_assert!(bytes < limit.max(1) + longest, "{} bytes, at most {} and {}", bytes, limit, longest);
                        prop_assert!(bytes >= limit || !answers.contains(&None), "{} bytes of {}", bytes, limit);
                    }
                    for snapshot in &snapshots {
                        prop_assert_eq!(snapshot.get_many(&keys).unwrap(), singly(|key| snapshot.get(key), &keys));
                        for key in &keys {
                            let there = snapshot.get(key).unwrap().is_some();
                            prop_assert_eq!(snapshot.contains_key(key).unwrap(), there);
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn a_block_that_holds_several_of_the_keys_is_looked_for_once() {
    // Catches a batch that is only a loop over single reads.
    let dir = TempDir::new().unwrap();
    let db = small(&dir).memtable_bytes(1 << 20).open().unwrap();
    for n in 0..1000 {
        db.insert(key(n), [0; 20]).unwrap();
    }
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
fn filters_are_counted_by_whether_they_were_of_use() {
    // Catches a hit figure that counts every question, and a false positive that nobody sees.
    let dir = TempDir::new().unwrap();
    let db = small(&dir).memtable_bytes(1 << 20).filter_bits_per_key(4).open().unwrap();
    // The figures below are those of these keys.
    let key = |n: u64| format!("key/{n:06}");
    for n in 0..2000 {
        db.insert(key(2 * n), [0; 20]).unwrap();
    }
    db.flush().unwrap();
    for n in 0..2000 {
        assert!(db.get(key(2 * n)).unwrap().is_some());
    }
    let metrics = db.metrics();
    assert_eq!((metrics.filter_negatives, metrics.filter_false_positives), (0, 0));
    let absent: Vec<String> = (0..1999).map(|n| key(2 * n + 1)).collect();
    for key in &absent {
        assert_eq!(db.get(key).unwrap(), None);
    }
    let metrics = db.metrics();
    assert_eq!(metrics.filter_negatives + metrics.filter_false_positives, 1999);
    // 15 % at 4 bits.
    assert!((200..400).contains(&metrics.filter_false_positives), "{metrics:?}");
    assert!(db.get_many(&absent).unwrap().iter().all(Option::is_none));
    let both = db.metrics();
    assert_eq!(both.filter_negatives, 2 * metrics.filter_negatives);
    assert_eq!(both.filter_false_positives, 2 * metrics.filter_false_positives);
}

#[test]
fn memory_of_the_cache_and_of_open_tables_is_accounted_for() {
    // Catches metadata that grows unseen beside the cache, and a cache that reports entries for bytes.
    let dir = TempDir::new().unwrap();
    let db = small(&dir).memtable_bytes(1 << 20).cache_bytes(64 << 10).compression(Compression::None).open().unwrap();
    assert_eq!((db.metrics().cache_bytes, db.metrics().table_memory_bytes), (0, 0));
    for n in 0..5000 {
        db.insert(key(n), [0; 100]).unwrap();
    }
    db.flush().unwrap();
    // Of some 25 partitions with filters and fences of about 1250 blocks, 30 KB, only the root: key, end, offset and head of each.
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
    let options = || small(&dir).memtable_bytes(4 << 20);
    let db = options().open().unwrap();
    (0..20_000).for_each(|n| db.insert(key(n), [0; 100]).unwrap());
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
fn reads_of_mapped_tables_go_on_while_merges_delete_them() {
    // Catches a mapping that is gone while an iterator or a value uses it, handles that mapped tables keep, and blocks in the cache.
    let dir = TempDir::new().unwrap();
    let options = small(&dir).compression(Compression::None).table_reads(TableReads::Mmap);
    let db = options.open().unwrap();
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
