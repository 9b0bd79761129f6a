//! Opens after a close: their syncs, and the note by which they go on (`manifest/close_note.rs`).

use crate::support::*;

fn open(dir: &Path, fs: &FaultFs) -> Db {
    Db::builder(dir).file_system(fs.arc()).memtable_bytes(64 << 10).open().unwrap()
}

/// Makes an entry durable.
fn put_synced(db: &Db, key: &str) {
    put(db, key, "value", Durability::Synced).unwrap();
}

fn syncs(fs: &FaultFs) -> usize {
    let events = fs.take();
    count(&events, Op::Sync, "") + count(&events, Op::SyncDir, "")
}

/// A directory with the writes of two closed sessions: "a" in one log; "b" and "c", as long, in the next.
fn closed_twice() -> (TempDir, FaultFs) {
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    for session in [&["a"][..], &["b", "c"]] {
        let db = open(dir.path(), &fs);
        session.iter().for_each(|key| put_synced(&db, key));
        db.close().unwrap();
    }
    syncs(&fs);
    (dir, fs)
}

#[test]
fn a_closed_database_is_opened_written_and_closed_with_three_syncs() {
    // Catches files that are written anew although a close has left them durable, a flush of a few bytes, logs that are never flushed or that stay
    // after their flush, and a note that is used although the database was written to since.
    let (dir, fs) = closed_twice();
    let db = open(dir.path(), &fs);
    db.remove_range("b".."c").unwrap();
    db.close().unwrap();
    // The log, its name, and at the close its frame.
    assert_eq!(syncs(&fs), 3);
    open(dir.path(), &fs).close().unwrap();
    assert_eq!((syncs(&fs), files(dir.path(), ".log").len()), (2, 3));
    let mut expected = vec!["a".to_owned(), "c".to_owned()];
    let mut dear = 0;
    for n in 10..60 {
        let db = open(dir.path(), &fs);
        expected.push(format!("n{n}"));
        put_synced(&db, &expected[expected.len() - 1]);
        assert_eq!(keys(&db), expected);
        assert_sound(&db);
        db.close().unwrap();
        dear += usize::from(syncs(&fs) > 3);
        assert!(files(dir.path(), ".log").len() < 40);
    }
    assert!((1..=2).contains(&dear), "{dear} sessions have flushed");
    let db = open(dir.path(), &fs);
    db.flush().unwrap();
    // The files are removed after the flush.
    wait_while(|| files(dir.path(), ".log").len() > 1);
    assert_eq!((files(dir.path(), ".log").len(), files(dir.path(), "MANIFEST").len()), (1, 1));
    put_synced(&db, "z");
    drop(db);
    syncs(&fs);
    let db = open(dir.path(), &fs);
    assert!(syncs(&fs) >= 6, "a table, a log, a manifest, a pointer, and their names");
    expected.push("z".to_owned());
    assert_eq!(keys(&db), expected);
    db.insert("big", vec![0; 20_000]).unwrap();
    let tables = files(dir.path(), ".sst").len();
    db.close().unwrap();
    assert!(files(dir.path(), ".sst").len() > tables, "a close flushes more than a few bytes");
}

#[test]
fn what_is_missing_behind_a_close_is_reported() {
    // Catches a log or a manifest that has lost its end, at a whole record, and passes for one that ended there.
    let (original, _) = closed_twice();
    let logs = paths(original.path(), ".log");
    let frame = (fs::metadata(&logs[1]).unwrap().len() - 56) / 2;
    let db = Db::open(original.path()).unwrap();
    db.keyspace("first").unwrap();
    let manifest = the_file(original.path(), "MANIFEST");
    let shorter = fs::metadata(&manifest).unwrap().len();
    db.keyspace("second").unwrap();
    db.close().unwrap();
    for (file, len) in [(&logs[0], 56), (&logs[1], 56), (&logs[1], 56 + frame), (&logs[1], 90), (&manifest, shorter)] {
        let dir = copy(original.path());
        let cut = dir.path().join(file.file_name().unwrap());
        fs::OpenOptions::new().write(true).open(&cut).unwrap().set_len(len).unwrap();
        let before = files(dir.path(), "");
        let builder = || Db::builder(dir.path());
        // Also once more: an open that fails leaves the note.
        for opened in [builder().read_only(true).open(), builder().reader().open(), builder().open(), builder().open()]
        {
            let error = opened.expect_err("something is missing");
            assert!(matches!(error, Error::Corruption { .. }), "{error}");
            assert_eq!(files(dir.path(), ""), before);
        }
        let new = TempDir::new().unwrap();
        let report = builder().salvage().unwrap().write_to(new.path().join("new")).unwrap();
        let is_lost = report.lost_writes.iter().any(|lost| !lost.may_be_torn);
        assert_eq!((is_lost, report.damage.len()), (file != &manifest, usize::from(file == &manifest)), "{report}");
        let quarantine = builder().recovery_mode(RecoveryMode::Quarantine).open();
        assert!(quarantine.map_or(file == &manifest, |db| !db.recovery().damage.is_empty()), "{}", cut.display());
    }
    fs::remove_file(original.path().join("CURRENT")).unwrap();
    for name in [".log", "MANIFEST"] {
        paths(original.path(), name).iter().for_each(|path| fs::remove_file(path).unwrap());
    }
    let error = Db::open(original.path()).unwrap_err();
    assert!(error.to_string().contains("CLOSED exists"), "{error}");
}

#[test]
fn a_copy_is_recovered_and_a_linked_backup_stays_as_it_was() {
    // Catches files of a copy that count as synced, and an open that writes to files which a backup shares.
    let (dir, fs) = closed_twice();
    let copied = copy(dir.path());
    let linked = TempDir::new().unwrap();
    for name in files(dir.path(), "") {
        fs::hard_link(dir.path().join(&name), linked.path().join(&name)).unwrap();
    }
    for dir in [&copied, &dir] {
        let db = open(dir.path(), &fs);
        put_synced(&db, "d");
        db.flush().unwrap();
        put_synced(&db, "e");
        db.close().unwrap();
        assert!(syncs(&fs) > 5);
        assert_eq!(keys(&open(dir.path(), &fs)), ["a", "b", "c", "d", "e"]);
        syncs(&fs);
    }
    assert_eq!(keys(&open(linked.path(), &fs)), ["a", "b", "c"]);
}

#[test]
fn a_note_that_is_stale_lost_or_not_written_does_no_harm() {
    // Catches a note that hides what was written after it, by this version or by an older one that does not know it; and a close that fails for the note.
    let (dir, fs) = closed_twice();
    let note = dir.path().join("CLOSED");
    let stale = fs::read(&note).unwrap();
    // As an older version would: the logs become a table, with a new log and manifest.
    fs::remove_file(&note).unwrap();
    let db = open(dir.path(), &fs);
    put_synced(&db, "d");
    drop(db);
    fs::write(&note, &stale).unwrap();
    let db = open(dir.path(), &fs);
    assert_eq!(keys(&db), ["a", "b", "c", "d"]);
    fs.fail(Op::Write, "CLOSED", ErrorKind::StorageFull);
    db.close().unwrap();
    fs.clear();
    syncs(&fs);
    let db = open(dir.path(), &fs);
    assert_eq!((keys(&db).len(), syncs(&fs) >= 5), (4, true));
    db.close().unwrap();
    // If the new log cannot be made, nothing has happened.
    let before = files(dir.path(), "");
    fs.fail(Op::Create, ".log", ErrorKind::PermissionDenied);
    let failed = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap_err();
    assert!(matches!(failed, Error::Io { .. }), "{failed}");
    fs.clear();
    syncs(&fs);
    assert_eq!(files(dir.path(), ""), before);
    let db = open(dir.path(), &fs);
    assert_eq!((keys(&db).len(), syncs(&fs)), (4, 2));
    db.close().unwrap();
    // The same after any read that fails.
    let mut failed = 0;
    for read in 0..40 {
        let (before, fs) = (files(dir.path(), ""), unmapped());
        fs.fail_read(read, Fault::Device, Repeat::Once);
        match Db::builder(dir.path()).file_system(fs.arc()).open() {
            Ok(db) => db.close().unwrap(),
            Err(_) => assert_eq!((files(dir.path(), ""), failed += 1), (before, ()), "{read}"),
        }
    }
    assert!(failed > 2, "{failed}");
}

#[test]
fn the_last_handle_of_a_closed_database_changes_no_file() {
    // Catches a file that is made again in a directory that is being removed.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path()).unwrap();
    let other = db.clone();
    db.insert("a", vec![0; 1 << 20]).unwrap();
    db.close().unwrap();
    let reserve = dir.path().join("RESERVE");
    std::fs::remove_file(&reserve).unwrap();
    drop(other);
    assert!(!reserve.exists());
}
