//! Opens of directories without a database, with an incomplete or a removed one, or with a newer format.

use crate::formats::checksum;

use crate::support::*;

#[test]
fn a_directory_that_is_not_a_database_is_refused_and_left_alone() {
    // Catches an accidental open that adds files to a directory with foreign files or, worse, uses it as a database.
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("letter.txt"), "dear").unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::NotADatabase { path, .. } if path == dir.path()), "{error}");
    assert!(error.to_string().contains("letter.txt"), "{error}");
    assert_eq!(files(dir.path(), ""), ["letter.txt"]);
    let error = Db::open(dir.path().join("letter.txt")).unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
}

#[test]
fn an_empty_path_is_refused_as_one() {
    // Catches an error without a path, such as "could not find : cannot make an empty path absolute".
    let (dir, db) = fresh();
    let refused = [Db::open("").err(), Db::builder("").salvage().err(), db.checkpoint("").err()];
    drop(db);
    let salvaged = Db::builder(dir.path()).salvage().unwrap().write_to("").err();
    for error in refused.into_iter().chain([salvaged]).map(Option::unwrap) {
        let expected = "invalid argument: expected the path of a directory, found an empty one";
        assert!(matches!(error, Error::InvalidArgument(_)) && error.to_string() == expected, "{error}");
    }
}

#[test]
fn create_if_missing_false_creates_nothing() {
    // Catches a mistyped path that becomes an empty database.
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing");
    for path in [dir.path(), &missing] {
        // A read-only open does not create a database either, whatever the option.
        for builder in [Db::builder(path).create_if_missing(false), Db::builder(path).read_only(true)] {
            let error = builder.open().unwrap_err();
            assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
        }
    }
    assert!(files(dir.path(), "").is_empty());
    Db::open(&missing).unwrap().insert("a", "1").unwrap();
    assert!(Db::builder(&missing).create_if_missing(false).open().unwrap().contains_key("a").unwrap());
}

#[test]
fn a_newer_format_version_is_unsupported_and_nothing_is_changed() {
    // Catches a newer database reported as damaged, or opened and rewritten in the old format.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    drop(db);
    let listing = files(dir.path(), "");
    let current = dir.path().join("CURRENT");
    let line = fs::read_to_string(&current).unwrap();
    let flipped = line.replacen("mini-engine 1", "mini-engine 2", 1);
    fs::write(&current, &flipped).unwrap();
    // The checksum does not match the new version: this is a damaged version 1.
    assert!(matches!(Db::open(dir.path()), Err(Error::Corruption { file, .. }) if file == current));
    // The rest of the line may differ in a newer version.
    let text = "mini-engine 2 something else";
    fs::write(&current, format!("{text} {:016x}\n", checksum(text.as_bytes(), 0))).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(
        matches!(&error, Error::UnsupportedVersion { file, found: 2, supported: 1 } if *file == current),
        "{error}"
    );
    fs::write(&current, line).unwrap();
    let manifest = dir.path().join(&files(dir.path(), "MANIFEST")[0]);
    let good = fs::read(&manifest).unwrap();
    let mut newer = good.clone();
    newer[8] = 9;
    fs::write(&manifest, &newer).unwrap();
    assert!(matches!(Db::open(dir.path()), Err(Error::Corruption { file, .. }) if file == manifest));
    let sum = checksum(&newer[..24], 0).to_le_bytes();
    newer[24..32].copy_from_slice(&sum);
    fs::write(&manifest, newer).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::UnsupportedVersion { file, found: 9, .. } if *file == manifest), "{error}");
    fs::write(&manifest, good).unwrap();
    assert_eq!(files(dir.path(), ""), listing);
    assert!(Db::open(dir.path()).unwrap().contains_key("a").unwrap());
}

#[test]
fn a_lost_current_is_corruption_and_not_a_new_database() {
    // Catches a directory without the pointer file that is taken for an empty one: all its files would be removed as orphans.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    drop(db);
    let current = dir.path().join("CURRENT");
    let lose = || {
        let line = fs::read(&current).unwrap();
        fs::remove_file(&current).unwrap();
        let listing = files(dir.path(), "");
        let error = Db::open(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::Corruption { file, .. } if *file == current), "{error}");
        assert_eq!(files(dir.path(), ""), listing);
        fs::write(&current, line).unwrap();
    };
    // The write is only in a log here, and only in a table below.
    lose();
    let db = Db::open(dir.path()).unwrap();
    assert!(db.contains_key("a").unwrap());
    db.close().unwrap();
    lose();
    assert!(Db::open(dir.path()).unwrap().contains_key("a").unwrap());
}

#[test]
fn files_of_others_in_a_database_are_left_alone() {
    // Catches a removal of orphans that also matches similar names of foreign files.
    let dir = TempDir::new().unwrap();
    drop(Db::open(dir.path()).unwrap());
    for name in ["notes.txt", "1.log", "000001.sst.bak"] {
        fs::write(dir.path().join(name), "mine").unwrap();
    }
    Db::open(dir.path()).unwrap().close().unwrap();
    for name in ["notes.txt", "1.log", "000001.sst.bak"] {
        assert_eq!(fs::read_to_string(dir.path().join(name)).unwrap(), "mine");
    }
}

/// Opens a database in `dir` with small memtables and tables, so that files are made and removed all the time.
#[cfg(unix)]
fn busy(dir: &Path) -> Db {
    Db::builder(dir).memtable_bytes(1 << 16).open().unwrap()
}

/// Writes `key00000` to `key00999` with this value several times, into tables, and compacts them.
#[cfg(unix)]
fn churn(db: &Db, value: &str) -> mini_engine::Result<()> {
    for n in 0..4000 {
        db.insert(key(n % 1000), value.repeat(20))?;
    }
    db.flush()?;
    db.compact_range(..)
}

/// Checks that all thousand keys have this value.
#[cfg(unix)]
#[track_caller]
fn check_holds(db: &Db, value: &str) {
    let entries: Vec<_> = db.iter().map(Result::unwrap).collect();
    assert_eq!(entries.len(), 1000);
    assert!(entries.iter().all(|(_, found)| **found == *value.repeat(20).as_bytes()), "not all are {value}");
}

#[cfg(unix)]
#[test]
fn a_database_whose_directory_is_moved_goes_on_in_it_beside_another_at_its_old_name() {
    // Catches files that are made, replaced and removed by path, and so in the directory of another database: 30,000 acknowledged inserts were once
    // lost that way.
    let dir = TempDir::new().unwrap();
    let [old, moved, copy, repaired] = ["db", "moved", "copy", "repaired"].map(|name| dir.path().join(name));
    let (first, reader) = (busy(&old), dir.path().join("reader"));
    churn(&first, "before").unwrap();
    first.checkpoint(&reader).unwrap();
    let reading = Db::builder(&reader).read_only(true).open().unwrap();
    let salvage = Db::builder(&reader).salvage().unwrap();
    let snapshot = first.snapshot();
    fs::rename(&old, &moved).unwrap();
    fs::rename(&reader, dir.path().join("read")).unwrap();
    let (second, other) = (busy(&old), busy(&reader));
    churn(&second, "second").unwrap();
    churn(&other, "other").unwrap();
    churn(&first, "first").unwrap();
    first.checkpoint(&copy).unwrap();
    assert!(matches!(Db::open(&moved), Err(Error::Locked { .. })));
    check_holds(&first, "first");
    check_holds(&reading, "before");
    assert_eq!(snapshot.get(key(7)).unwrap().as_deref(), Some("before".repeat(20).as_bytes()));
    assert!(salvage.write_to(&repaired).unwrap().is_complete());
    first.close().unwrap();
    drop((snapshot, reading));
    for (db, value) in [(second, "second"), (other, "other")] {
        check_holds(&db, value);
        assert!(db.verify().unwrap().into_result().is_ok());
        db.close().unwrap();
    }
    for (path, value) in
        [(&moved, "first"), (&old, "second"), (&reader, "other"), (&copy, "first"), (&repaired, "before")]
    {
        let db = Db::open(path).unwrap();
        check_holds(&db, value);
        assert!(db.verify().unwrap().into_result().is_ok());
    }
}

#[cfg(unix)]
#[test]
fn a_database_whose_directory_is_removed_gets_errors_and_leaves_another_at_its_name_alone() {
    // Catches a process whose directory was removed by `rm -r` and that goes on in a new directory of the same name.
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("db");
    let first = busy(&path);
    churn(&first, "first").unwrap();
    fs::remove_dir_all(&path).unwrap();
    let second = busy(&path);
    churn(&second, "second").unwrap();
    // The log of a flushed memtable is removed in the background.
    wait_while(|| files(&path, ".log").len() > 1);
    let before = files(&path, "");
    let error = churn(&first, "lost").unwrap_err();
    assert!(matches!(error, Error::Io { .. } | Error::ReadOnly { .. } | Error::Stalled { .. }), "{error}");
    drop(first);
    assert_eq!(files(&path, ""), before);
    check_holds(&second, "second");
    second.close().unwrap();
    check_holds(&Db::open(&path).unwrap(), "second");
}

/// The name of a test's directory.
fn name_of(dir: &TempDir) -> String {
    dir.path().file_name().unwrap().to_str().unwrap().to_owned()
}

#[test]
fn rule_4_the_name_of_a_directory_is_synced_by_each_open_until_there_is_a_database() {
    // Catches a directory whose name was never synced, so that a power cut removes it with all synced writes. The directory was made by an open
    // that ended before it synced the name, or by another program.
    for made_by_open in [true, false] {
        let (dir, fs) = (TempDir::new().unwrap(), unmapped());
        let (above, path) = (name_of(&dir), dir.path().join("db"));
        if made_by_open {
            let above = above.clone();
            fs.set(
                move |event| if event.is(Op::SyncDir, &above) { Answer::Fail(ErrorKind::Other) } else { Answer::Go },
            );
            assert!(matches!(Db::builder(&path).file_system(fs.arc()).open(), Err(Error::Io { op: "sync", .. })));
            assert!(path.exists());
            fs.clear();
            fs.take();
        } else {
            fs::create_dir(&path).unwrap();
        }
        Db::builder(&path).file_system(fs.arc()).open().unwrap();
        let events = fs.take();
        let named = position(&events, 0, Op::SyncDir, &above);
        assert!(named < position(&events, 0, Op::Create, ""), "{events:?}");
    }
}

#[test]
fn rule_4_directories_above_are_created_one_by_one_each_synced_before_the_next() {
    // Catches a later open that takes existing parent directories for durable.
    let names = ["a", "b", "c"];
    let count = {
        let fs = unmapped();
        let dir = TempDir::new().unwrap();
        Db::builder(dir.path().join("a/b/c")).file_system(fs.arc()).open().unwrap();
        fs.mutations()
    };
    for index in 0..=count {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("a/b/c");
        let fs = unmapped();
        fs.fail_mutation(index, Fault::Device, Repeat::FromThenOn);
        drop(Db::builder(&path).file_system(fs.arc()).open());
        fs.heal();
        drop(Db::builder(&path).file_system(fs.arc()).open().unwrap());
        let events = fs.take();
        let mut above = name_of(&dir);
        for (at, name) in names.iter().enumerate() {
            let created = events.iter().rposition(|event| is(event, Op::CreateDir, name)).expect("created");
            let synced = created + events[created..].iter().position(|event| is(event, Op::SyncDir, &above)).unwrap();
            let next = match names.get(at + 1) {
                Some(next) => events.iter().position(|event| is(event, Op::CreateDir, next)).unwrap(),
                None => events.iter().position(|event| event.is(Op::RenameTo, "CURRENT")).unwrap(),
            };
            assert!(synced < next, "operation {index}, {name}: {events:?}");
            above = (*name).to_owned();
        }
    }
}

/// Whether this is `op` on a file or directory with exactly this name.
fn is(event: &Event, op: Op, name: &str) -> bool {
    event.op == op && event.name() == name
}

#[test]
fn a_directory_above_that_may_not_be_read_is_no_reason_to_refuse_the_one_below() {
    // Catches a database that cannot be made in `/home/me` because the user may traverse `/home` but not list it.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let above = name_of(&dir);
    let path = dir.path().join("db");
    fs::create_dir(&path).unwrap();
    fs.answer_where(Answer::Fail(ErrorKind::PermissionDenied), move |event| event.is(Op::SyncDir, &above));
    Db::builder(&path).file_system(fs.arc()).open().unwrap();
}

#[test]
fn the_top_of_a_fresh_file_system_may_become_a_database() {
    // Catches a directory that is refused although `lost+found` is its only file.
    let dir = TempDir::new().unwrap();
    fs::create_dir(dir.path().join("lost+found")).unwrap();
    Db::open(dir.path()).unwrap().insert("a", "1").unwrap();
    assert!(Db::open(dir.path()).unwrap().contains_key("a").unwrap());
    assert_eq!(files(dir.path(), "lost+found"), ["lost+found"]);
}
