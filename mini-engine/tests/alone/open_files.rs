//! A process with a limit of 64 open files, and a database of many more tables.

use std::fs;

use mini_engine::{Db, Durability, WriteBatch};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use proof::TempDir;

const HANDLES: u64 = 64;
const TABLES: u32 = 500;

fn open(dir: &TempDir) -> Db {
    // Automatic compaction is off, so each table is a run, and a scan reads all tables at once.
    Db::builder(dir.path().join("db")).l0_trigger(1000).l0_slowdown(1000).l0_stop(1000).cache_bytes(0).open().unwrap()
}

fn open_files() -> usize {
    fs::read_dir("/dev/fd").unwrap().count()
}

fn key(table: u32, n: u32) -> [u8; 8] {
    let key = u64::from(n * 7919 % 10) << 32 | u64::from(table);
    key.to_be_bytes()
}

/// Checks that every kind of read sees the entries of all tables.
fn check(db: &Db, changed: u32) {
    let value = |table: u32| if table < changed { b"new".to_vec() } else { table.to_be_bytes().to_vec() };
    let keys: Vec<_> = (0..TABLES).map(|table| key(table, table % 10)).collect();
    for (table, found) in (0..).zip(db.get_many(&keys).unwrap()) {
        assert_eq!(found.as_deref(), Some(&value(table)[..]), "table {table}");
        assert_eq!(db.get(keys[table as usize]).unwrap().as_deref(), Some(&value(table)[..]), "table {table}");
    }
    assert_eq!(db.iter().map(Result::unwrap).count(), TABLES as usize * 10);
    assert_eq!(db.iter().rev().map(Result::unwrap).count(), TABLES as usize * 10);
    let report = db.verify().unwrap();
    assert!(report.problems.is_empty() && report.tables >= 1, "{report:?}");
    assert!(open_files() <= HANDLES as usize);
}

pub(crate) fn a_process_with_64_handles_reads_writes_and_compacts_500_tables() {
    // Catches a handle for each table, and one for each run of an iterator.
    let limit = Rlimit { current: Some(HANDLES), ..getrlimit(Resource::Nofile) };
    setrlimit(Resource::Nofile, limit).unwrap();
    let dir = TempDir::new().unwrap();
    let db = open(&dir);
    for table in 0..TABLES {
        let mut batch = WriteBatch::new();
        (0..10).for_each(|n| batch.insert(key(table, n), table.to_be_bytes()).unwrap());
        db.write(batch, Durability::Buffered).unwrap();
        db.flush().unwrap();
    }
    assert_eq!(db.metrics().levels[0].tables, u64::from(TABLES));
    check(&db, 0);
    drop(db);
    let db = open(&dir);
    check(&db, 0);
    // The engine must go on even if another part of the process has opened as many files as it can.
    let taken: Vec<fs::File> = std::iter::from_fn(|| fs::File::open("/dev/null").ok()).skip(6).collect();
    check_few(&db);
    drop(taken);
    let (snapshot, mut half_way) = (db.snapshot(), db.iter());
    assert_eq!(half_way.by_ref().take(700).map(Result::unwrap).count(), 700);
    (0..100).for_each(|table| db.insert(key(table, table % 10), "new").unwrap());
    db.checkpoint(dir.path().join("copy")).unwrap();
    db.compact_range(..).unwrap();
    check(&db, 100);
    assert_eq!(half_way.map(Result::unwrap).count(), TABLES as usize * 10 - 700);
    assert_eq!(snapshot.get(key(1, 1)).unwrap().as_deref(), Some(&1u32.to_be_bytes()[..]));
    drop(snapshot);
    db.close().unwrap();
    let copy = Db::builder(dir.path().join("copy")).l0_trigger(1000).open().unwrap();
    check(&copy, 100);
}

/// Reads while others have taken nearly all handles.
fn check_few(db: &Db) {
    for table in 0..TABLES {
        assert!(db.get(key(table, 3)).unwrap().is_some(), "table {table}");
    }
}
