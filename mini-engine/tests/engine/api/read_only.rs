//! Read-only opens: no file changes, several readers work at the same time, and a write gets an error with the reason.

use crate::support::*;

/// Every file below `dir`: its name, bytes and time of its last change.
fn state(dir: &Path) -> Vec<(String, Vec<u8>, std::time::SystemTime)> {
    let read = |name: String| {
        let path = dir.join(&name);
        let changed = fs::metadata(&path).unwrap().modified().unwrap();
        (name, fs::read(path).unwrap(), changed)
    };
    files(dir, "").into_iter().map(read).collect()
}

fn reader(dir: &Path) -> Builder {
    Db::builder(dir).read_only(true)
}

/// Writes tables on two levels, and then, in logs, overwrites, removals and new keys.
fn fill(builder: Builder) -> Map {
    let db = builder.block_bytes(512).l0_trigger(100).open().unwrap();
    let mut model = Map::new();
    for round in 0..4u8 {
        for n in 0..60u8 {
            let (key, value) = (vec![b'k', n.wrapping_mul(round + 1) % 90], vec![round; usize::from(n)]);
            if (n + round) % 7 == 6 {
                db.remove(&key).unwrap();
                model.remove(&key);
            } else {
                db.insert(&key, &value).unwrap();
                model.insert(key, value);
            }
        }
        match round {
            0 => db.compact_range(..).unwrap(),
            1 | 2 => db.flush().unwrap(),
            _ => db.persist(Durability::Synced).unwrap(),
        }
    }
    model
}

/// Asserts that `db` shows `model` by every kind of read.
#[track_caller]
fn check_reads(db: &Db, model: &Map) {
    assert_holds(db, model, (0..=255).map(|n| [b'k', n]));
}

/// Asserts that every way to write is refused, with the reason.
fn check_writes_are_refused(db: &Db, model: &Map) {
    let refusals = [
        db.insert("new", "").err(),
        db.remove("k").err(),
        put(db, "new", "", Durability::Synced).err(),
        db.write(WriteBatch::new(), Durability::Buffered).err(),
        db.persist(Durability::Synced).err(),
        db.flush().err(),
        db.ingest([("new", "")]).err(),
        db.compact_range(..).err(),
        db.wait_for_compactions().err(),
        db.drop_quarantined(1).err(),
        db.compare_and_swap("absent", None, Some(b"")).err(),
        db.pop_last().err(),
    ];
    for (at, refusal) in refusals.into_iter().enumerate() {
        let Some(Error::ReadOnly { cause }) = &refusal else { panic!("write {at}: {refusal:?}") };
        assert_eq!(cause, "it was opened read-only");
    }
    // A condition that does not hold is no write.
    let (key, value) = model.first_key_value().unwrap();
    let differs = db.compare_and_swap(key, Some(b"wrong"), None).unwrap().unwrap_err();
    assert_eq!(differs.current.as_deref(), Some(&value[..]));
}

#[test]
fn a_read_only_open_reads_everything_and_changes_nothing() {
    // Catches a read-only open that makes a log, a manifest, a lock or a table, or that accepts writes in memory.
    for kind in ["tables and a log", "a log alone"] {
        let fs = MemFs::default();
        let open = || in_memory(&fs);
        let mut model = Map::new();
        if kind == "a log alone" {
            open().open().unwrap().insert("k", "1").unwrap();
            model.insert(b"k".to_vec(), b"1".to_vec());
        } else {
            model = fill(open());
        }
        // Orphans of an interrupted flush and an interrupted open, which only another open may remove.
        for orphan in ["/db/000900.sst", "/db/CURRENT.tmp", "/db/SPARE", "/db/MANIFEST-000901"] {
            fs.create_new(Path::new(orphan)).unwrap().write_all_at(b"half", 0).unwrap();
        }
        fs.record();
        let sealed = FaultFs::new(Arc::new(fs.clone()));
        sealed.mount_read_only();
        let db = Db::builder(DB).file_system(Arc::new(sealed.clone())).l0_trigger(1).read_only(true).open().unwrap();
        assert!(db.recovery().read_only && db.recovery().findings().is_empty(), "{}", db.recovery());
        assert_eq!((db.recovery().logs_replayed, db.recovery().orphans_removed), (1, 0));
        check_reads(&db, &model);
        check_writes_are_refused(&db, &model);
        assert!(matches!(db.checkpoint("/copy"), Err(Error::ReadOnly { .. })));
        assert_eq!(db.verify().unwrap().problems.len(), 0);
        let snapshot = db.snapshot();
        assert_eq!(snapshot.seqno(), db.recovery().last_seqno);
        let other = db.clone();
        db.close().unwrap();
        assert!(matches!(other.get("k"), Err(Error::Closed)));
        assert_eq!(snapshot.iter().count(), model.len());
        drop((snapshot, other));
        assert_eq!(sealed.mutations(), 0, "{kind}");
        assert_eq!(fs.take_record().len(), 0, "{kind}");
        // The next writer finds all data.
        let db = open().open().unwrap();
        assert_eq!((entries(&db), db.recovery().orphans_removed > 0), (model, true));
    }
}

#[test]
fn readers_go_beside_each_other_and_not_beside_a_writer() {
    // Catches a reader that keeps out other readers, and one that reads files which a writer is about to remove.
    let dir = TempDir::new().unwrap();
    let model = fill(Db::builder(dir.path()));
    let (one, two) = (reader(dir.path()).open().unwrap(), reader(dir.path()).open().unwrap());
    check_reads(&one, &model);
    check_reads(&two, &model);
    let error = Db::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::Locked { path, .. } if path.ends_with("LOCK")), "{error}");
    drop(one);
    // An iterator still reads, so it keeps writers out like a handle.
    let mut iter = two.iter();
    drop(two);
    assert!(matches!(Db::open(dir.path()), Err(Error::Locked { .. })));
    assert_eq!(iter.by_ref().count(), model.len());
    drop(iter);
    let writer = Db::open(dir.path()).unwrap();
    let error = reader(dir.path()).open().unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    let words = format!("is still there (process {})", std::process::id());
    assert!(error.to_string().contains("is locked: this process has the database open: "), "{error}");
    assert!(error.to_string().ends_with(&words), "{error}");
    drop(writer);
    check_reads(&reader(dir.path()).open().unwrap(), &model);
}

#[test]
fn a_copy_without_a_lock_file_is_read_without_making_one() {
    // Catches a lock file that appears in a backup, and a backup that cannot be read because it has no lock file.
    let (dir, sealed) = (TempDir::new().unwrap(), FaultFs::of_system());
    let model = fill(Db::builder(dir.path()));
    fs::remove_file(dir.path().join("LOCK")).unwrap();
    let before = state(dir.path());
    sealed.mount_read_only();
    let db = reader(dir.path()).file_system(Arc::new(sealed.clone())).open().unwrap();
    check_reads(&db, &model);
    drop(db);
    assert_eq!((state(dir.path()), sealed.mutations()), (before, 0));
}

#[test]
fn a_torn_log_is_reported_and_left_as_it_is() {
    // Catches a reader that truncates a log, or whose report of lost writes differs from a writer's.
    let (dir, db) = opened(|b| b.memtable_bytes(4096).immutable_memtables(8));
    db.insert("a", "1").unwrap();
    db.insert("torn", "2").unwrap();
    drop(db);
    let log = dir.path().join(&files(dir.path(), ".log")[0]);
    let len = fs::metadata(&log).unwrap().len();
    fs::File::options().write(true).open(&log).unwrap().set_len(len - 3).unwrap();
    let before = state(dir.path());
    let mut found = None;
    for _ in 0..2 {
        let db = reader(dir.path()).open().unwrap();
        assert_eq!(entries(&db), Map::from([(b"a".to_vec(), b"1".to_vec())]));
        let report = db.recovery();
        assert!(report.torn.is_some() && report.set_aside.is_empty());
        let findings = report.findings();
        assert!(findings.len() == 2 && findings[1].contains("opened read-only"), "{findings:?}");
        found = report.torn.clone();
        drop(db);
        assert_eq!(state(dir.path()), before);
    }
    let db = Db::open(dir.path()).unwrap();
    let mut torn = db.recovery().torn.clone().unwrap();
    // A reader does not keep the torn bytes.
    assert_eq!(torn.kept.take().as_slice(), db.recovery().set_aside);
    assert_eq!(Some(torn), found);
    assert_eq!(entries(&db), Map::from([(b"a".to_vec(), b"1".to_vec())]));
}

#[test]
fn logs_that_need_more_memory_than_allowed_are_refused_and_kept() {
    // Catches a reader of large logs that takes all memory, and one that shows only their first part as if it were complete.
    let (dir, db) = fresh();
    for n in 0..400u32 {
        db.insert(n.to_be_bytes(), [7; 1000]).unwrap();
    }
    drop(db);
    let before = state(dir.path());
    let error = reader(dir.path()).replay_memory_bytes(300 << 10).open().unwrap_err();
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(error.to_string().contains("once, which writes them to tables, or raise"), "{error}");
    assert_eq!(state(dir.path()), before);
    // A small memtable size must not lead to many memtables.
    let db = reader(dir.path()).replay_memory_bytes(3 << 20).memtable_bytes(4096).open().unwrap();
    assert_eq!(db.iter().count(), 400);
}

#[test]
fn a_handle_that_failed_says_something_else_than_one_that_was_opened_to_read() {
    // Catches an error whose cause does not distinguish a failed disk from a read-only open.
    let (dir, fs) = (TempDir::new().unwrap(), FaultFs::of_system());
    let db = Db::builder(dir.path()).file_system(Arc::new(fs.clone())).open().unwrap();
    fs.mount_read_only();
    assert!(matches!(db.insert("a", "1"), Err(Error::Io { .. })));
    let error = db.insert("a", "1").unwrap_err();
    let Error::ReadOnly { cause } = &error else { panic!("{error}") };
    assert!(cause.contains("could not append to") && error.to_string().starts_with("the database is read-only: could"));
}
