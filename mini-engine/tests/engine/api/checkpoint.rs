//! Copies of a database, made while it is in use.

use crate::support::*;

/// Opens an existing database.
fn open(path: &Path) -> Result<Db, Error> {
    Db::builder(path).create_if_missing(false).open()
}

/// A database with two tables, and writes that are in no table yet.
fn filled(path: &Path, hook: &FaultFs) -> Db {
    let db = Db::builder(path).file_system(hook.arc()).l0_trigger(8).open().unwrap();
    for n in 0..300 {
        db.insert(format!("key{:03}", n % 200), format!("value {n}")).unwrap();
        if n % 100 == 99 {
            db.flush().unwrap();
        }
    }
    db.remove("key000").unwrap();
    db.insert("last", "in the log").unwrap();
    db
}

#[test]
fn a_checkpoint_by_links_opens_no_table() {
    // Catches a checkpoint of many tables that evicts open files from the cache, and one that needs a file handle for each table.
    let (dir, hook) = (TempDir::new().unwrap(), unmapped());
    filled(&dir.path().join("db"), &hook).flush().unwrap();
    let db = open(&dir.path().join("db")).unwrap();
    db.checkpoint(dir.path().join("copy")).unwrap();
    assert_eq!(db.metrics().open_files, 0);
    assert_eq!(entries(&open(&dir.path().join("copy")).unwrap()), entries(&db));
}

#[test]
fn a_checkpoint_holds_all_that_was_written_and_is_a_database_of_its_own() {
    // Catches a copy without the newest writes, a copy that changes with the original, and a copy that the original can destroy.
    let (dir, hook) = (TempDir::new().unwrap(), unmapped());
    let (source, copy) = (dir.path().join("db"), dir.path().join("copies/monday"));
    let db = filled(&source, &hook);
    let expected = entries(&db);
    db.checkpoint(&copy).unwrap();
    db.insert("later", "not in the copy").unwrap();
    let copied = open(&copy).unwrap();
    assert_eq!(entries(&copied), expected);
    assert_eq!(copied.snapshot().seqno() + 1, db.snapshot().seqno());
    assert!(copied.recovery().findings().is_empty());
    copied.insert("own", "not in the original").unwrap();
    copied.close().unwrap();
    assert!(db.contains_key("later").unwrap() && !db.contains_key("own").unwrap());
    db.close().unwrap();
    fs::remove_dir_all(&source).unwrap();
    let copied = open(&copy).unwrap();
    assert!(copied.verify().unwrap().problems.is_empty());
    assert_eq!(entries(&copied).len(), expected.len() + 1);
}

#[test]
fn an_empty_database_has_an_empty_checkpoint() {
    // Catches a copy without tables that is no database.
    let dir = TempDir::new().unwrap();
    let copy = dir.path().join("copy");
    Db::open(dir.path().join("db")).unwrap().checkpoint(&copy).unwrap();
    assert_eq!(entries(&open(&copy).unwrap()), Map::new());
}

#[cfg(unix)]
#[test]
fn tables_of_a_checkpoint_are_links_where_that_can_be_and_copies_elsewhere() {
    // Catches files that are copied although they could be linked, and a checkpoint that fails on another disk.
    use std::os::unix::fs::MetadataExt;

    for linked in [true, false] {
        let (dir, hook) = (TempDir::new().unwrap(), unmapped());
        let (source, copy) = (dir.path().join("db"), dir.path().join("copy"));
        let db = filled(&source, &hook);
        if !linked {
            hook.answer_where(Answer::Fail(ErrorKind::CrossesDevices), |event| event.op == Op::Link);
        }
        hook.take();
        db.checkpoint(&copy).unwrap();
        let events = hook.take();
        let tables = files(&copy, ".sst");
        assert_eq!((tables.len(), &tables), (4, &files(&source, ".sst")));
        for name in &tables {
            let [a, b] = [&source, &copy].map(|at| fs::metadata(at.join(name)).unwrap().ino());
            assert_eq!(a == b, linked, "{name}");
            assert_eq!(fs::read(source.join(name)).unwrap(), fs::read(copy.join(name)).unwrap());
        }
        assert_eq!(count(&events, Op::Link, ".sst"), if linked { 4 } else { 0 });
        // One table comes from the flush before.
        assert_eq!(count(&events, Op::Create, ".sst"), if linked { 1 } else { 5 });
        assert_eq!(entries(&open(&copy).unwrap()), entries(&db));
    }
}

#[test]
fn rule_4_all_of_a_checkpoint_is_synced_before_its_pointer_is() {
    // Catches a checkpoint that opens after a power cut without all of its tables.
    for linked in [true, false] {
        let (dir, hook) = (TempDir::new().unwrap(), unmapped());
        let db = filled(&dir.path().join("db"), &hook);
        db.flush().unwrap();
        hook.set(move |event| match event.op {
            Op::Link if !linked => Answer::Fail(ErrorKind::CrossesDevices),
            _ => Answer::Go,
        });
        hook.take();
        db.checkpoint(dir.path().join("copy")).unwrap();
        let events = hook.take();
        let above = dir.path().file_name().unwrap().to_str().unwrap();
        let last = |op: Op, part: &str| events.iter().rposition(|event| event.is(op, part)).unwrap();
        let tables = if linked { last(Op::Link, ".sst") } else { last(Op::Sync, ".sst") };
        let tables_named = position(&events, tables, Op::SyncDir, "copy");
        let log = position(&events, tables_named, Op::Sync, ".log");
        let manifest = position(&events, position(&events, log, Op::SyncDir, "copy"), Op::Sync, "MANIFEST");
        let pointer = position(&events, position(&events, manifest, Op::SyncDir, "copy"), Op::Rename, "CURRENT.tmp");
        // The rename is the last step.
        let renamed = position(&events, pointer, Op::Rename, "copy.incomplete");
        position(&events, renamed, Op::SyncDir, above);
        assert_eq!(position(&events, 0, Op::RenameTo, "CURRENT"), position(&events, pointer, Op::RenameTo, "CURRENT"));
        assert!((pointer..renamed).contains(&position(&events, pointer, Op::SyncDir, "copy")));
    }
}

#[test]
fn a_name_that_is_taken_is_refused_and_left_alone() {
    // Catches a checkpoint into an existing directory, also into an older checkpoint.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.insert("a", "1").unwrap();
    let [empty, full, file] = ["empty", "full", "file"].map(|name| dir.path().join(name));
    fs::create_dir(&empty).unwrap();
    fs::create_dir(&full).unwrap();
    for path in [&full.join("letter.txt"), &file] {
        fs::write(path, "dear").unwrap();
    }
    for path in [&empty, &full, &file, &dir.path().join("db")] {
        let error = db.checkpoint(path).unwrap_err();
        let named = error.to_string().contains(&path.display().to_string());
        assert!(matches!(error, Error::InvalidArgument(_)) && named, "{error}");
    }
    assert_eq!((files(&empty, "").len(), files(&full, "")), (0, vec!["letter.txt".to_owned()]));
    let copy = dir.path().join("copy");
    db.checkpoint(&copy).unwrap();
    assert!(matches!(db.checkpoint(&copy), Err(Error::InvalidArgument(_))));
    assert_eq!(entries(&open(&copy).unwrap()).len(), 1);
}

#[test]
fn checkpoints_of_a_database_in_full_use_are_each_a_moment_of_it() {
    // Catches a table that a compaction unlinks before the checkpoint links it, and a version without its last sequence number.
    const WRITES: u32 = 4000;
    let dir = TempDir::new().unwrap();
    let open_small = |path: &Path| Db::builder(path).memtable_bytes(8 << 10).l0_trigger(1).open().unwrap();
    let db = open_small(&dir.path().join("db"));
    let (done, mut copies) = (AtomicBool::new(false), 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..WRITES {
                db.insert(format!("key{:02}", n % 50), n.to_be_bytes()).unwrap();
            }
            done.store(true, Ordering::SeqCst);
        });
        while copies < 3 || !done.load(Ordering::SeqCst) {
            let copy = dir.path().join(format!("copy{copies}"));
            let before = db.snapshot().seqno();
            db.checkpoint(&copy).unwrap();
            copies += 1;
            let copied = open_small(&copy);
            let seqno = copied.snapshot().seqno();
            assert!(seqno >= before, "{seqno} after {before}");
            // The copy has the last write of each key up to that sequence number, and nothing else.
            let found = entries(&copied);
            let first = (seqno as u32).saturating_sub(50);
            let mut newest: Vec<u32> =
                found.values().map(|value| u32::from_be_bytes(value[..].try_into().unwrap())).collect();
            newest.sort_unstable();
            assert!(newest.into_iter().eq(first..seqno as u32), "copy {copies} at {seqno}");
            assert!(copied.verify().unwrap().problems.is_empty());
        }
    });
}

#[test]
fn what_an_interrupted_checkpoint_left_is_named_and_removed_unless_it_is_not_ours_or_in_use() {
    // Catches a leftover that stops the next checkpoint or is reported as damage, and a removal of foreign files or of a copy in progress.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path().join("db")).unwrap();
    db.insert("a", "1").unwrap();
    let (copy, left) = (dir.path().join("copy"), dir.path().join("copy.incomplete"));
    db.checkpoint(&left).unwrap();
    // A complete database that happens to have such a name.
    assert!(matches!(db.checkpoint(&copy), Err(Error::InvalidArgument(_))));
    fs::remove_file(left.join("CURRENT")).unwrap();
    assert!(matches!(db.checkpoint(&copy), Err(Error::InvalidArgument(_))));
    assert_eq!(files(&left, ".sst").len(), 1);
    // The leftover of a kill.
    fs::write(left.join("INCOMPLETE"), "").unwrap();
    let kinds = [Db::builder(&left).open().unwrap_err(), Db::builder(&left).read_only(true).open().unwrap_err()];
    for error in kinds.into_iter().chain(Db::builder(&left).salvage().err()) {
        let is_named = error.to_string().contains("an interrupted checkpoint or repair has left it");
        assert!(matches!(error, Error::NotADatabase { .. }) && is_named, "{error}");
    }
    fs::write(left.join("letter.txt"), "dear").unwrap();
    assert!(matches!(db.checkpoint(&copy), Err(Error::InvalidArgument(_))));
    assert_eq!(files(&left, ".sst").len(), 1);
    fs::remove_file(left.join("letter.txt")).unwrap();
    let held = fs::File::open(left.join("LOCK")).unwrap();
    held.lock().unwrap();
    let error = db.checkpoint(&copy).unwrap_err();
    assert!(error.to_string().contains("another checkpoint or repair is writing there"), "{error}");
    assert_eq!(files(&left, ".sst").len(), 1);
    drop(held);
    db.checkpoint(&copy).unwrap();
    assert!(!left.exists() && files(&copy, "INCOMPLETE").is_empty());
    assert_eq!(entries(&open(&copy).unwrap()).len(), 1);
    // A copy with its pointer is complete, and an open for writing makes it an ordinary database.
    fs::write(copy.join("INCOMPLETE"), "").unwrap();
    assert_eq!(entries(&open(&copy).unwrap()).len(), 1);
    assert!(files(&copy, "INCOMPLETE").is_empty());
}
