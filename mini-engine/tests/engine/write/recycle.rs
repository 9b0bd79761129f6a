//! Reuse of log files: when tables have replaced a log, its file becomes the file of a later log.

use crate::support::*;

fn open(dir: &Path, fs: &FaultFs) -> Db {
    Db::builder(dir).file_system(fs.arc()).memtable_bytes(64 << 10).l0_trigger(100).open().unwrap()
}

/// A new database, and its contents.
fn begin() -> (TempDir, FaultFs, Db, Map) {
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let db = open(dir.path(), &fs);
    (dir, fs, db, Map::new())
}

/// One batch of two keys.
fn write(db: &Db, model: &mut Map, n: u64, len: usize, durability: Durability) -> Result<(), Error> {
    let mut batch = WriteBatch::new();
    for key in [format!("key{}", n % 13), format!("own{n}")] {
        batch.insert(&key, vec![n as u8; len]).unwrap();
        model.insert(key.into_bytes(), vec![n as u8; len]);
    }
    db.write(batch, durability).map(drop)
}

#[test]
fn rule_8_a_log_takes_over_the_file_of_one_that_was_flushed() {
    // Catches logs that do not reuse a file, more than one kept file, and a kept file that stays after a close.
    for kind in [MemtableKind::SkipList, MemtableKind::Vector] {
        let (dir, fs, mut model) = (TempDir::new().unwrap(), unmapped(), Map::new());
        let builder = Db::builder(dir.path()).file_system(fs.arc()).memtable_kind(kind).l0_trigger(100);
        let db = builder.open().unwrap();
        for round in 0..6 {
            for n in 0..20 {
                write(&db, &mut model, 20 * round + n, 100, Durability::Synced).unwrap();
            }
            flush_to_the_end(&db);
            assert_eq!(files(dir.path(), "SPARE").len(), 1, "round {round}");
        }
        // Only the first log, and the one that was begun before the first was flushed, are created.
        let events = fs.take();
        assert_eq!((count(&events, Op::Create, ".log"), db.metrics().wal_recycled), (2, 5));
        assert_eq!(count(&events, Op::Remove, ".log"), 0);
        assert_eq!(entries(&db), model);
        db.close().unwrap();
        assert!(files(dir.path(), "SPARE").is_empty());
        let db = open(dir.path(), &fs);
        assert_eq!((entries(&db), db.recovery().findings().len()), (model, 0));
    }
}

#[test]
fn rule_4_a_file_gets_a_logs_name_when_the_header_in_it_is_durable() {
    // Catches a file with the name of one log and the header of another, which would look like damage after a power cut.
    let (_dir, fs, db, mut model) = begin();
    for n in 0..2 {
        write(&db, &mut model, n, 100, Durability::Synced).unwrap();
        if n == 0 {
            flush_to_the_end(&db);
        }
    }
    fs.take();
    flush_to_the_end(&db);
    let events = fs.take();
    let steps = [(Op::Write, "SPARE"), (Op::Sync, "SPARE"), (Op::Rename, "SPARE"), (Op::SyncDir, "")];
    let [_, _, renamed, named] = in_order(&events, &steps)[..] else { unreachable!() };
    assert_eq!(position(&events, 0, Op::Rename, "SPARE"), renamed);
    assert!(named < position(&events, 0, Op::Write, "MANIFEST"), "{events:?}");
    // The old log is renamed only after the edit is durable (rule 6).
    let edit = position(&events, 0, Op::Sync, "MANIFEST");
    assert!(edit < position(&events, renamed + 2, Op::RenameTo, "SPARE"), "{events:?}");
}

#[test]
fn a_log_that_was_never_synced_is_removed() {
    // Catches old frames that a sync writes to the device although the file is only kept for its space.
    let (_dir, fs, db, mut model) = begin();
    for n in 0..3 {
        write(&db, &mut model, n, 100, Durability::Buffered).unwrap();
        flush_to_the_end(&db);
    }
    let events = fs.take();
    assert_eq!((db.metrics().wal_recycled, count(&events, Op::RenameTo, "SPARE")), (0, 0));
    assert_eq!(count(&events, Op::Remove, ".log"), 3);
}

#[test]
fn a_file_that_cannot_be_kept_is_removed_and_one_that_cannot_be_had_is_not_needed() {
    // Catches an engine that becomes read-only because an optional step, the reuse of a file, fails.
    let (dir, fs, db, mut model) = begin();
    for (n, op) in [(0, Op::Rename), (3, Op::Truncate)] {
        fs.fail(op, ".log", ErrorKind::Other);
        write(&db, &mut model, n, 100, Durability::Synced).unwrap();
        flush_to_the_end(&db);
        assert!(files(dir.path(), "SPARE").is_empty());
    }
    fs.clear();
    write(&db, &mut model, 1, 100, Durability::Synced).unwrap();
    flush_to_the_end(&db);
    std::fs::remove_file(dir.path().join("SPARE")).unwrap();
    write(&db, &mut model, 2, 100, Durability::Synced).unwrap();
    flush_to_the_end(&db);
    assert_eq!((entries(&db), db.metrics().wal_recycled), (model, 0));
    db.close().unwrap();
}

#[test]
fn rule_7_a_failed_step_of_a_rotation_on_a_kept_file_makes_the_engine_read_only() {
    // Catches writes to a log whose header or name may not be durable.
    for op in [Op::Write, Op::Sync, Op::Rename] {
        let (dir, fs, db, mut model) = begin();
        write(&db, &mut model, 0, 100, Durability::Synced).unwrap();
        flush_to_the_end(&db);
        write(&db, &mut model, 1, 100, Durability::Synced).unwrap();
        fs.fail(op, "SPARE", ErrorKind::Other);
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { path, .. } if path.ends_with("SPARE")), "{op:?}: {error}");
        fs.clear();
        let refused = db.insert("later", "");
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{op:?}: {refused:?}");
        assert!(files(dir.path(), "SPARE").is_empty(), "{op:?}");
        drop(db);
        let db = open(dir.path(), &fs);
        assert_eq!((entries(&db), db.recovery().findings().len()), (model, 0), "{op:?}");
    }
}

#[test]
fn a_log_whose_sync_is_under_way_is_not_used_again() {
    // Catches a file that two logs use at once: a sync of the old log would consume an error that the new log must see.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let db = open(dir.path(), &fs);
    db.insert("before", "").unwrap();
    db.persist(Durability::Synced).unwrap();
    let old = files(dir.path(), ".log").remove(0);
    let (arrivals, go) = fs.hold(Op::Sync, &old, Answer::Go);
    thread::scope(|scope| {
        let writer = scope.spawn(|| write(&db, &mut Map::new(), 1, 100, Durability::Synced));
        arrivals.recv().unwrap();
        flush_to_the_end(&db);
        drop(go);
        writer.join().unwrap().unwrap();
    });
    let events = fs.take();
    assert_eq!((count(&events, Op::Remove, &old), count(&events, Op::RenameTo, "SPARE")), (1, 0));
}

#[test]
fn a_batch_larger_than_a_memtable_leaves_no_huge_file() {
    // Catches a kept file that keeps the space of the largest batch ever written.
    let (dir, fs, db, mut model) = begin();
    let mut kept = 0;
    for n in 0..60 {
        // Writes too many large frames, or one that is too long.
        let len = match n {
            29 => 2 << 20,
            40..50 => 14_000,
            _ => 100,
        };
        write(&db, &mut model, n, len, Durability::Synced).unwrap();
        if n % 10 != 9 {
            continue;
        }
        flush_to_the_end(&db);
        for spare in files(dir.path(), "SPARE") {
            let len = std::fs::metadata(dir.path().join(spare)).unwrap().len();
            assert!(len <= 128 << 10, "{n}: {len} bytes are kept");
            kept += 1;
        }
    }
    assert!(kept > 3 && db.metrics().wal_recycled > 2, "{kept} kept");
    drop(db);
    assert_eq!(entries(&open(dir.path(), &fs)), model);
}

#[test]
fn a_log_whose_memtable_is_about_to_be_full_is_given_no_more_space() {
    // Catches a log whose whole length is overwritten with zeros just before its rotation, which delays the rotation.
    let (dir, fs) = (TempDir::new().unwrap(), FaultFs::of_system());
    let builder = Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(4 << 20).l0_trigger(100);
    let db = builder.open().unwrap();
    for round in 0..6 {
        for n in 0..970u32 {
            db.insert(n.to_be_bytes(), [round; 4000]).unwrap();
        }
        db.persist(Durability::Synced).unwrap();
        flush_to_the_end(&db);
        let events = fs.take();
        let zeros = [".log", "SPARE"].map(|part| count(&events, Op::Write, part)).iter().sum::<usize>() * (64 << 10);
        // At first the log bytes of a memtable are unknown. Later each file needs only the zeros behind its kept part.
        assert!(round < 3 || zeros < 2 << 20, "about {zeros} bytes in round {round}");
    }
    assert!(db.metrics().wal_recycled >= 3);
}
