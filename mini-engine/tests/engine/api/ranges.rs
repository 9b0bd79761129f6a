//! Range removals: their cost, their visibility to readers, and their compaction through the levels.

use crate::support::*;

/// Options with which a few hundred keys make several levels, and compactions run in pieces.
fn small(dir: &TempDir) -> Builder {
    let builder = Db::builder(dir.path()).memtable_bytes(4096).block_bytes(512).compression(Compression::None);
    builder.l0_trigger(2).size_ratio(2).level1_bytes(4096).table_file_bytes(1024).max_compaction_bytes(2048)
}

/// The keys of these numbers.
fn named(numbers: impl IntoIterator<Item = u64>) -> Vec<String> {
    numbers.into_iter().map(key).collect()
}

#[test]
fn a_range_may_end_with_the_longest_key() {
    // Catches an unreadable table whose smallest key is the successor of the longest key, which is no valid key.
    let dir = TempDir::new().unwrap();
    let longest = vec![b'k'; mini_engine::MAX_KEY_LEN];
    let db = small(&dir).memtable_bytes(1 << 20).open().unwrap();
    db.insert("z", "").unwrap();
    db.insert(&longest, "").unwrap();
    db.remove_range(.."z").unwrap();
    db.remove_range((std::ops::Bound::Unbounded, std::ops::Bound::Included(&longest))).unwrap();
    db.flush().unwrap();
    assert_eq!(keys(&db), ["z"]);
    db.insert(&longest, "").unwrap();
    db.compact_range(..).unwrap();
    drop(db);
    let db = small(&dir).open().unwrap();
    assert_eq!(db.iter().count(), 2);
    assert!(db.contains_key(&longest).unwrap() && db.contains_key("z").unwrap());
    assert!(db.verify().unwrap().problems.is_empty());
}

fn ranges(db: &Db) -> u64 {
    sum(&db.metrics(), |level| level.range_tombstones)
}

#[test]
fn a_million_keys_are_removed_by_one_frame_and_compacted_away_without_being_read() {
    // Catches a removal that costs a step for each key, in the log, in the memtable, in tables or in the compaction.
    let (dir, db) = opened(|b| b.table_file_bytes(1 << 17));
    db.ingest((0..1_000_000u32).map(|n| (n.to_be_bytes(), "value"))).unwrap();
    let before = db.metrics();
    assert!(sum(&before, |level| level.tables) > 10);
    db.remove_range(10u32.to_be_bytes()..).unwrap();
    let after = db.metrics();
    assert_eq!(after.writes - before.writes, 1);
    let frame = after.wal_bytes - before.wal_bytes;
    assert!((1..=100).contains(&frame), "{frame} bytes of log");
    assert_eq!(db.iter().count(), 10);
    assert_eq!(db.get(11u32.to_be_bytes()).unwrap(), None);
    // A scan does not even open wholly covered tables: it reads the blocks of one table.
    let read = db.metrics().block_reads - after.block_reads;
    let blocks = db.verify().unwrap().blocks;
    assert!(read < blocks / 10, "{read} of {blocks} blocks read");
    db.flush().unwrap();
    assert_eq!((ranges(&db), db.verify().unwrap().entries), (1, 1_000_001));
    db.compact_range(..).unwrap();
    let compacted = db.metrics();
    let (size, read) = (sum(&before, |level| level.bytes), compacted.compaction_bytes_read);
    assert!(read > 0 && read < size / 5, "{read} of {size} bytes read");
    assert_eq!((ranges(&db), db.verify().unwrap().entries, db.iter().count()), (0, 10, 10));
    assert_eq!(files(dir.path(), ".sst").len(), 1);
}

#[test]
fn a_range_without_an_end_does_not_take_the_keys_to_come() {
    // Catches a table that spans all keys up to the last possible one, so that every later load in key order would overlap it.
    let (_dir, db) = opened(|b| b.l0_trigger(100));
    db.ingest((0..100).map(|n| (key(n), ""))).unwrap();
    db.remove_range(key(50)..).unwrap();
    db.insert(key(70), "again").unwrap();
    db.flush().unwrap();
    db.ingest((100..200).map(|n| (key(n), ""))).unwrap();
    let levels = db.metrics().levels;
    assert_eq!((levels[0].tables, levels.last().map(|level| level.tables)), (1, Some(2)), "{levels:?}");
    // A load that overlaps the table goes to a level above.
    db.ingest((80..90).map(|n| (key(n), ""))).unwrap();
    assert_eq!(db.metrics().levels[0].tables, 2);
    let left: Vec<u64> = (0..50).chain([70]).chain(80..90).chain(100..200).collect();
    assert_eq!(keys(&db), named(left.clone()));
    db.compact_range(..).unwrap();
    assert_eq!(keys(&db), named(left));
}

#[test]
fn a_range_that_covers_nothing_costs_no_table_its_place() {
    // Catches an empty range whose removal, in an empty database, leads to a table without entries, or to an unreadable one.
    let (dir, db) = fresh();
    db.remove_range(..).unwrap();
    db.remove_range("x"..).unwrap();
    db.remove_range("z".."a").unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!((db.snapshot().seqno(), keys(&db).len()), (2, 0));
    assert!(db.verify().unwrap().problems.is_empty());
    db.compact_range(..).unwrap();
    assert_eq!(sum(&db.metrics(), |level| level.tables), 0);
}

#[test]
fn a_memtable_takes_many_ranges() {
    // Catches a flush for every few hundred ranges, and lost or enlarged ranges among many overlapping ones or several in a batch.
    let (_dir, db) = opened(|b| b.l0_trigger(100));
    fill(&db, 0..1000, "");
    for n in (0..1000).step_by(2) {
        db.remove_range(key(n)..key(n + 1)).unwrap();
    }
    assert_eq!(keys(&db), named((1..1000).step_by(2)));
    db.flush().unwrap();
    assert_eq!((db.metrics().flushes, ranges(&db)), (1, 500));
    assert_eq!(keys(&db), named((1..1000).step_by(2)));
    let mut batch = WriteBatch::new();
    (0..400).for_each(|n| batch.remove_range(key(n)..key(1000 - n)).unwrap());
    db.write(&batch, Durability::Buffered).unwrap();
    db.flush().unwrap();
    assert_eq!(keys(&db), [""; 0]);
    db.compact_range(..).unwrap();
    assert_eq!(sum(&db.metrics(), |level| level.tables), 0);
}

#[test]
fn a_scan_opens_the_tables_that_it_reaches_and_no_other() {
    // Catches a scan that reads range tombstones of tables at its start, although it may never reach their keys.
    let dir = TempDir::new().unwrap();
    let db = small(&dir).memtable_bytes(1 << 20).max_compaction_bytes(1 << 30).open().unwrap();
    db.ingest((0..2000).map(|n| (key(n), "v".repeat(30)))).unwrap();
    let snapshot = db.snapshot();
    (0..200).for_each(|n| db.remove_range(key(10 * n + 3)..key(10 * n + 6)).unwrap());
    // The removed data stays, and each table gets the ranges of its keys.
    db.compact_range(..).unwrap();
    let tables = sum(&db.metrics(), |level| level.tables);
    assert!(tables > 50 && ranges(&db) >= 200, "{tables} tables, {} ranges", ranges(&db));
    drop(snapshot);
    db.close().unwrap();
    let fs = Arc::new(FaultFs::of_system());
    // The open and the close in between compact nothing.
    let db =
        small(&dir).l0_trigger(100).memtable_bytes(1 << 20).file_system(fs.clone()).read_only(true).open().unwrap();
    let (before, left) = (fs.reads(), |n: &u64| !(3..6).contains(&(n % 10)));
    assert_eq!(
        db.iter().take(3).map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>(),
        [0, 1, 2].map(|n| key(n).into_bytes())
    );
    assert_eq!(db.iter().next_back().unwrap().unwrap().0.to_vec(), key(1999).into_bytes());
    assert_eq!(db.range(key(1003)..).next().unwrap().unwrap().0.to_vec(), key(1006).into_bytes());
    let reads = fs.reads() - before;
    assert!(reads < tables / 2, "{reads} reads of {tables} tables");
    assert_eq!(keys(&db), named((0..2000).filter(left)));
    assert_eq!(db.iter().rev().count(), 1400);
}

#[test]
fn a_quarantined_table_hides_the_keys_of_its_ranges() {
    // Catches keys that return because the table with their range tombstone cannot be read.
    let dir = TempDir::new().unwrap();
    let builder = || Db::builder(dir.path()).l0_trigger(100);
    let db = builder().open().unwrap();
    fill(&db, 0..100, "");
    db.flush().unwrap();
    db.remove_range(key(20)..=key(59)).unwrap();
    db.flush().unwrap();
    drop(db);
    flip(&newest_table(dir.path()), 3);
    let db = builder().recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    assert_eq!(db.quarantined().len(), 1);
    assert!(db.get(key(19)).unwrap().is_some() && db.get(key(60)).unwrap().is_some());
    for n in [20, 40, 59] {
        assert!(matches!(db.get(key(n)), Err(Error::Corruption { .. })), "{n}");
    }
    // For keys that are removed again, a read finds the new tombstone.
    db.remove_range(key(20)..key(50)).unwrap();
    assert_eq!(db.get(key(40)).unwrap(), None);
    assert!(matches!(db.get(key(55)), Err(Error::Corruption { .. })));
    db.drop_quarantined(db.quarantined()[0].number).unwrap();
    assert!(db.get(key(55)).unwrap().is_some());
}
