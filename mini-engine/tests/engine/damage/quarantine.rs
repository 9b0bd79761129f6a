//! Databases that are opened without their damaged or missing files.

use crate::support::*;

fn open_in(dir: &Path, mode: RecoveryMode) -> Result<Db, Error> {
    // The two modes also cover the two ways to read tables.
    let reads = if mode == RecoveryMode::Quarantine { TableReads::Mmap } else { TableReads::Pread };
    Db::builder(dir).recovery_mode(mode).table_reads(reads).block_bytes(512).l0_trigger(100).open()
}

fn quarantining(dir: &Path) -> Db {
    open_in(dir, RecoveryMode::Quarantine).unwrap()
}

fn reading(dir: &Path) -> Db {
    Db::builder(dir).recovery_mode(RecoveryMode::Quarantine).read_only(true).open().unwrap()
}

/// Makes three tables: old values of a to z; then new m1 and m3, with m2 removed; then newer m3 and x. Returns their paths.
fn three_tables(dir: &Path) -> Vec<PathBuf> {
    let db = open_in(dir, RecoveryMode::Strict).unwrap();
    for key in ["a", "m1", "m2", "m3", "z"] {
        put(&db, key, "old", Durability::Synced).unwrap();
    }
    db.flush().unwrap();
    put(&db, "m1", "new", Durability::Synced).unwrap();
    db.remove("m2").unwrap();
    put(&db, "m3", "new", Durability::Synced).unwrap();
    db.flush().unwrap();
    put(&db, "m3", "newest", Durability::Synced).unwrap();
    put(&db, "x", "newest", Durability::Synced).unwrap();
    db.flush().unwrap();
    paths(dir, ".sst")
}

fn is_refused<T>(result: &Result<T, Error>, aside: &Path) -> bool {
    matches!(result, Err(Error::Corruption { file, .. }) if file == aside)
}

/// Checks the results of reads while the second of three tables is quarantined as `aside`.
fn check_reads(db: &Db, aside: &Path) {
    let value = |key: &str| db.get(key).unwrap().map(|value| String::from_utf8(value.to_vec()).unwrap());
    assert_eq!(
        (value("a").as_deref(), value("z").as_deref(), value("x").as_deref()),
        (Some("old"), Some("old"), Some("newest"))
    );
    // Keys that were written after the table are right, whatever the table contained.
    assert_eq!(value("m3").as_deref(), Some("newest"));
    for key in ["m1", "m2", "m15"] {
        assert!(is_refused(&db.get(key), aside) && is_refused(&db.contains_key(key), aside), "{key}");
        assert!(is_refused(&db.get_many(["a", key]), aside), "{key}");
    }
    assert_eq!(db.get_many(["a", "z", "m3"]).unwrap().iter().flatten().count(), 3);
    assert_eq!(db.get_many_up_to(1, ["a", "z", "m3"]).unwrap().iter().flatten().count(), 1);
    let keys = |iter: mini_engine::Iter| {
        let keys: Result<Vec<_>, Error> = iter.map(|entry| Ok(entry?.0.to_vec())).collect();
        keys
    };
    // A scan, from either side, fails when it reaches the table's range, and not before.
    for (iter, first) in [(db.iter(), "a"), (db.range("a"..), "a")] {
        let yielded: Vec<_> = iter.collect();
        assert_eq!(yielded.len(), 2, "{yielded:?}");
        assert_eq!(&*yielded[0].as_ref().unwrap().0, first.as_bytes());
        assert!(is_refused(&yielded[1], aside));
    }
    let backward: Vec<_> = db.iter().rev().collect();
    assert_eq!(backward.len(), 3, "{backward:?}");
    assert!(is_refused(&backward[2], aside));
    assert!(is_refused(&keys(db.range("m2"..="m25")), aside) && is_refused(&keys(db.prefix("m")), aside));
    for (range, count) in
        [(db.range("a".."m1"), 1), (db.range("m4"..), 2), (db.prefix("x"), 1), (db.range("n".."w"), 0)]
    {
        assert_eq!(keys(range).unwrap().len(), count);
    }
    let mut cursor = db.cursor();
    cursor.seek("x").unwrap();
    assert!(is_refused(&cursor.retreat(), aside) && !cursor.valid());
    assert!(is_refused(&cursor.seek("b"), aside));
    cursor.seek_to_last().unwrap();
    assert_eq!(cursor.key(), b"z");
}

#[test]
fn rule_10_reads_in_the_range_of_a_quarantined_table_fail_until_it_is_dropped() {
    // Catches an older value, or a removed key, that is shown in place of the data of a damaged table, also after a later open.
    for damage in ["block", "footer", "missing"] {
        let dir = TempDir::new().unwrap();
        let tables = three_tables(dir.path());
        assert_eq!(tables.len(), 3);
        match damage {
            "block" => drop(flip(&tables[1], 3)),
            "footer" => drop(flip(&tables[1], fs::metadata(&tables[1]).unwrap().len() as usize - 30)),
            _ => fs::remove_file(&tables[1]).unwrap(),
        }
        let aside = tables[1].with_extension("sst.aside");
        let bytes = fs::read(&tables[1]).ok();
        // A read-only open sets no file aside, and names the existing file.
        if damage != "missing" {
            check_reads(&reading(dir.path()), &tables[1]);
            assert!(!aside.exists());
        }
        let db = quarantining(dir.path());
        let report = db.recovery();
        assert_eq!((report.damage.len(), report.quarantined.len()), (1, 1), "{report}");
        assert_eq!(report.set_aside.contains(&aside), damage != "missing");
        let words = report.findings().join("\n");
        for part in ["drop", "\"m1\" to \"m3\"", &tables[1].display().to_string()] {
            assert!(words.contains(part), "{part} in {words}");
        }
        // The file is never deleted.
        assert_eq!(fs::read(&aside).ok(), bytes);
        check_reads(&db, &aside);
        assert_eq!(db.verify().unwrap().problems.len(), 1);
        drop(db);
        // The quarantine persists in every mode, and is not reported again. A file that a user put back is not touched.
        fs::write(&tables[1], "from a copy").unwrap();
        for mode in [RecoveryMode::Strict, RecoveryMode::Quarantine] {
            let db = open_in(dir.path(), mode).unwrap();
            assert_eq!((db.recovery().damage.len(), db.recovery().quarantined.len()), (0, 1));
            check_reads(&db, &aside);
            assert!(tables[1].exists());
        }
        if damage != "missing" {
            check_reads(&reading(dir.path()), &aside);
        }
        let db = open_in(dir.path(), RecoveryMode::Strict).unwrap();
        // A value written now is newer than any in the table.
        put(&db, "m1", "written anew", Durability::Synced).unwrap();
        assert_eq!(db.get("m1").unwrap().as_deref(), Some(&b"written anew"[..]));
        let number = db.quarantined()[0].number;
        assert!(matches!(db.drop_quarantined(number + 1000), Err(Error::InvalidArgument(_))));
        let (before, mut iter) = (db.snapshot(), db.range("m2".."n"));
        db.drop_quarantined(number).unwrap();
        // The same holds after compactions of the other tables.
        db.compact_range(..).unwrap();
        assert!(is_refused(&before.get("m2"), &aside) && is_refused(&before.get_many(["a", "m2"]), &aside));
        assert!(is_refused(&iter.next().unwrap(), &aside));
        assert!(is_refused(&before.prefix("m2").next().unwrap(), &aside));
        assert_eq!(before.get("x").unwrap().as_deref(), Some(&b"newest"[..]));
        drop(iter);
        assert!(matches!(db.drop_quarantined(number), Err(Error::InvalidArgument(_))));
        assert_eq!(db.get("m2").unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(db.iter().map(Result::unwrap).count(), 6);
        drop(before);
        db.close().unwrap();
        let db = open_in(dir.path(), RecoveryMode::Strict).unwrap();
        assert!(db.quarantined().is_empty() && db.verify().unwrap().problems.is_empty());
        assert_eq!(db.iter().map(Result::unwrap).count(), 6);
        assert_eq!(fs::read(&aside).ok(), bytes);
    }
}

#[test]
fn a_sound_database_is_opened_as_ever_and_strict_is_the_default() {
    // Catches a mode that drops undamaged data, and a mode that is on by default.
    let dir = TempDir::new().unwrap();
    let tables = three_tables(dir.path());
    let db = quarantining(dir.path());
    assert!(db.recovery().findings().is_empty() && db.quarantined().is_empty());
    assert_eq!(db.iter().map(Result::unwrap).count(), 5);
    drop(db);
    flip(&tables[0], fs::metadata(&tables[0]).unwrap().len() as usize - 30);
    let db = Db::open(dir.path()).unwrap();
    let error = db.iter().find_map(Result::err).expect("the scan meets the table");
    assert!(matches!(error, Error::Corruption { file, .. } if file == tables[0]));
    assert!(db.quarantined().is_empty() && tables[0].exists());
}

#[test]
fn of_a_damaged_log_the_writes_before_the_damage_are_kept_and_the_rest_is_set_aside() {
    // Catches lost synced writes before the damage, a log that is deleted with its contents, and a loss that is not reported.
    let original = TempDir::new().unwrap();
    let db = open_in(original.path(), RecoveryMode::Strict).unwrap();
    for n in 0..6 {
        put(&db, &format!("key{n}"), &"value ".repeat(20), Durability::Synced).unwrap();
    }
    drop(db);
    let name = files(original.path(), ".log").pop().unwrap();
    let len = fs::metadata(original.path().join(&name)).unwrap().len() as usize;
    // Damage in the header, damage in the third frame, and a missing log.
    for (at, kept) in [(Some(20), 0), (Some(len * 5 / 12), 2), (None, 0)] {
        let dir = copy(original.path());
        let log = dir.path().join(&name);
        match at {
            Some(at) => drop(flip(&log, at)),
            None => fs::remove_file(&log).unwrap(),
        }
        let bytes = fs::read(&log).ok();
        assert!(
            matches!(open_in(dir.path(), RecoveryMode::Strict), Err(Error::Corruption { file, .. }) if file == log)
        );
        let db = quarantining(dir.path());
        assert_eq!(db.iter().map(Result::unwrap).count(), kept, "{at:?}");
        let report = db.recovery();
        assert_eq!((report.logs_end_at, report.damage.len()), (Some(kept as u64), 1), "{report}");
        assert!(report.findings().iter().any(|finding| finding.contains("are lost")), "{report}");
        assert_eq!(fs::read(log.with_extension("log.aside")).ok(), bytes, "{at:?}");
        put(&db, "next", "value", Durability::Synced).unwrap();
        drop(db);
        let db = open_in(dir.path(), RecoveryMode::Strict).unwrap();
        assert_eq!((db.iter().map(Result::unwrap).count(), db.recovery().logs_end_at), (kept + 1, None));
        assert_eq!(fs::read(log.with_extension("log.aside")).ok(), bytes, "{at:?}");
    }
}

#[test]
fn an_open_that_quarantines_may_end_at_any_operation_and_loses_nothing_more() {
    // Catches a damaged log that is renamed before its recovered entries are durable elsewhere, or that is deleted.
    let original = TempDir::new().unwrap();
    let tables = three_tables(original.path());
    let db = open_in(original.path(), RecoveryMode::Strict).unwrap();
    for n in 0..4 {
        put(&db, &format!("z{n}"), "in the log", Durability::Synced).unwrap();
    }
    drop(db);
    let name = files(original.path(), ".log").pop().unwrap();
    let log = original.path().join(&name);
    let len = fs::metadata(&log).unwrap().len() as usize;
    flip(&log, len - 100);
    flip(&tables[1], 3);
    let [damaged_log, damaged_table] = [&log, &tables[1]].map(|path| fs::read(path).unwrap());
    let open = |dir: &Path, faults: &FaultFs| {
        let builder = Db::builder(dir).file_system(faults.arc()).l0_trigger(100).block_bytes(512);
        builder.recovery_mode(RecoveryMode::Quarantine).open()
    };
    for (index, dir) in failed_opens(original.path(), open) {
        let db = quarantining(dir.path());
        let aside = dir.path().join(tables[1].file_name().unwrap()).with_extension("sst.aside");
        assert_eq!(db.get("z1").unwrap().as_deref(), Some(&b"in the log"[..]), "operation {index}");
        assert!(is_refused(&db.get("m1"), &aside), "operation {index}");
        assert_eq!(fs::read(&aside).unwrap(), damaged_table, "operation {index}");
        let log = dir.path().join(&name).with_extension("log.aside");
        assert_eq!(fs::read(log).unwrap(), damaged_log, "operation {index}");
    }
}

#[test]
fn a_checkpoint_of_a_database_with_a_quarantined_table_refuses_what_that_refuses() {
    // Catches a checkpoint that loses the quarantine, and shows older versions.
    let dir = TempDir::new().unwrap();
    let source = dir.path().join("db");
    fs::create_dir(&source).unwrap();
    let tables = three_tables(&source);
    flip(&tables[1], 3);
    let db = quarantining(&source);
    db.checkpoint(dir.path().join("copy")).unwrap();
    let copied = open_in(&dir.path().join("copy"), RecoveryMode::Strict).unwrap();
    assert!(matches!(copied.get("m1"), Err(Error::Corruption { .. })));
    assert_eq!(copied.get("a").unwrap().as_deref(), Some(&b"old"[..]));
}

#[test]
fn a_key_removed_since_a_table_was_quarantined_reads_as_removed_after_a_compaction_to_the_bottom() {
    // Catches a tombstone that is dropped because no table but the quarantined one has its key.
    let dir = TempDir::new().unwrap();
    let tables = three_tables(dir.path());
    flip(&tables[1], 3);
    let db = quarantining(dir.path());
    db.remove("m1").unwrap();
    db.compact_range(..).unwrap();
    assert_eq!(db.get("m1").unwrap(), None);
    db.get("m2").unwrap_err();
    let dropped = db.drop_quarantined(db.quarantined()[0].number).unwrap();
    db.compact_range(..).unwrap();
    // As long as the file exists, removed keys in it must not be salvaged.
    assert_eq!(db.verify().unwrap().entries, 6);
    fs::remove_file(&dropped.file).unwrap();
    db.close().unwrap();
    let db = quarantining(dir.path());
    db.compact_range(..).unwrap();
    // Now the tombstone is obsolete. The other removed key, whose tombstone was only in the dropped table, is back.
    assert_eq!(db.verify().unwrap().entries, 5);
    assert_eq!(db.get("m2").unwrap().as_deref(), Some(&b"old"[..]));
}

#[test]
fn two_callers_that_drop_one_quarantined_table_do_not_end_the_engine() {
    // Catches a drop whose check another caller's edit can invalidate before its own edit.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let db = Db::open(dir.path()).unwrap();
    db.insert("a", "b").unwrap();
    db.flush().unwrap();
    drop(db);
    std::fs::remove_file(dir.path().join(&files(dir.path(), ".sst")[0])).unwrap();
    let builder = Db::builder(dir.path()).file_system(fs.arc());
    let db = builder.recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    let number = db.quarantined()[0].number;
    let (arrivals, go) = fs.hold(Op::Sync, "MANIFEST", Answer::Go);
    let (first, second) = thread::scope(|scope| {
        let first = scope.spawn(|| db.drop_quarantined(number));
        arrivals.recv().unwrap();
        let second = scope.spawn(|| db.drop_quarantined(number));
        drop(go);
        (first.join().unwrap(), second.join().unwrap())
    });
    first.unwrap();
    assert!(matches!(second, Err(Error::InvalidArgument(_))), "{second:?}");
    db.insert("later", "").unwrap();
}
