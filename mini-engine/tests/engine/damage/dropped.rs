//! Quarantined tables that were dropped: salvage reads their readable part, and they do not bring removed data back.

use crate::support::*;

fn open(dir: &Path, mode: RecoveryMode) -> Db {
    let builder = Db::builder(dir).recovery_mode(mode).block_bytes(512).l0_trigger(100);
    builder.compression(Compression::None).open().unwrap()
}

fn n(at: usize) -> String {
    format!("n{at:03}")
}

/// Makes a database in `dir` with two tables: one with old values, and one with new values and removals. Damages a block in the middle of the
/// newer table, and returns the path of that table.
fn damaged(dir: &Path) -> PathBuf {
    let db = open(dir, RecoveryMode::Strict);
    for key in ["a", "m1", "m2", "m3", "m4", "m5", "r1", "r2", "z"] {
        db.insert(key, "old").unwrap();
    }
    db.flush().unwrap();
    for key in ["m1", "m3", "m4", "m5"] {
        db.insert(key, "new").unwrap();
    }
    db.remove("m2").unwrap();
    db.remove_range("r1".."r2").unwrap();
    (0..100).for_each(|at| db.insert(n(at), "v".repeat(100)).unwrap());
    db.close().unwrap();
    let table = newest_table(dir);
    let blocks = blocks(&table);
    flip(&table, blocks[blocks.len() / 2].0 + 3);
    table
}

/// The contents and the report of a salvage.
fn salvaged(dir: &Path) -> (SalvageReport, Texts) {
    let new = TempDir::new().unwrap();
    let report = Db::builder(dir).salvage().unwrap().write_to(new.path().join("new")).unwrap();
    (report, texts(&Db::open(new.path().join("new")).unwrap()))
}

/// Checks that salvage finds everything except the keys of the damaged block, each in its newest version. Returns the number of lost keys.
#[track_caller]
fn check(dir: &Path) {
    let (report, mut found) = salvaged(dir);
    assert!(!report.is_complete() && report.lost_keys.len() == 1, "{report}");
    let lost = (0..100).filter(|&at| found.remove(&n(at)).is_none()).inspect(|&at| {
        assert!(report.lost_keys[0].contains(n(at)), "{at}: {report}");
    });
    assert!((1..10).contains(&lost.count()), "{report}");
    let expected = [("a", "old"), ("m1", "new"), ("m3", "newest"), ("r2", "old"), ("z", "old")];
    assert_eq!(found, expected.map(|(key, value)| (key.to_owned(), value.to_owned())).into());
}

#[test]
fn what_is_sound_of_a_dropped_table_is_salvaged_and_no_older_or_removed_key_returns() {
    // Catches a table of many entries that is lost because of one damaged block, and a compaction that drops later tombstones of the table's
    // keys once reads no longer use the table.
    let dir = TempDir::new().unwrap();
    let table = damaged(dir.path());
    let aside = table.with_extension("sst.aside");
    let db = open(dir.path(), RecoveryMode::Quarantine);
    // Later writes: a removal of a key and of a range, and an overwrite.
    db.insert("m3", "newest").unwrap();
    db.remove("m4").unwrap();
    db.remove_range("m5".."m6").unwrap();
    db.flush().unwrap();
    let [quarantined] = &db.quarantined()[..] else { panic!("{:?}", db.quarantined()) };
    assert_eq!((quarantined.entries, &quarantined.file), (106, &aside));
    let number = quarantined.number;
    check_after(dir.path(), db, |db| {
        assert_eq!(db.drop_quarantined(number).unwrap().entries, 106);
        db.compact_range(..).unwrap();
    });
    // The same holds after further opens and compactions.
    for _ in 0..2 {
        check_after(dir.path(), open(dir.path(), RecoveryMode::Strict), |db| {
            assert_eq!(texts(db).len(), 7, "{:?}", texts(db));
            db.insert("z", "old").unwrap();
            db.flush().unwrap();
            db.compact_range(..).unwrap();
        });
    }
    // The same holds without the manifest.
    let manifest = the_file(dir.path(), "MANIFEST");
    let bytes = fs::read(&manifest).unwrap();
    fs::write(&manifest, [&bytes[..], b"torn"].concat()).unwrap();
    let (report, found) = salvaged(dir.path());
    assert!(report.manifest.is_none() && found.len() > 90 && !found.contains_key("m4"), "{report}");
    fs::write(&manifest, bytes).unwrap();

    // Once the table's file is gone, no tombstone is kept because of it.
    let db = open(dir.path(), RecoveryMode::Strict);
    assert!(db.verify().unwrap().entries > 7);
    fs::remove_file(&aside).unwrap();
    db.close().unwrap();
    let (report, found) = salvaged(dir.path());
    assert!(report.is_complete() && found.len() == 7, "{report}");
    let db = open(dir.path(), RecoveryMode::Strict);
    db.insert("z", "old").unwrap();
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    assert_eq!((db.verify().unwrap().entries, texts(&db)), (7, found));
}

/// Runs `work`, closes the database, and checks the result of a salvage.
#[track_caller]
fn check_after(dir: &Path, db: Db, work: impl FnOnce(&Db)) {
    work(&db);
    db.close().unwrap();
    check(dir);
}

#[test]
fn whole_batches_in_a_log_that_was_set_aside_are_told_of() {
    // Catches a repair that reports a log as complete although an open has cut it in two: behind damage that a later sync proves, or a
    // possible tear.
    for (mode, durability, aside) in [
        (RecoveryMode::Quarantine, Durability::Synced, "log.aside"),
        (RecoveryMode::Strict, Durability::Buffered, "log.tail.aside"),
    ] {
        let dir = TempDir::new().unwrap();
        let db = open(dir.path(), RecoveryMode::Strict);
        for at in 0..6 {
            put(&db, &n(at), "value", durability).unwrap();
        }
        drop(db);
        let log = dir.path().join(files(dir.path(), ".log").pop().unwrap());
        flip(&log, fs::read(&log).unwrap().windows(4).position(|part| part == b"n002").unwrap());
        assert_eq!(salvaged(dir.path()).1.len(), 5);
        drop(open(dir.path(), mode));
        let (report, found) = salvaged(dir.path());
        assert_eq!(found.len(), 2, "{report}");
        let [left] = &report.left_out[..] else { panic!("{report}") };
        assert!(!report.is_complete() && left.holds_batches && left.file == log.with_extension(aside), "{report}");
    }
}
