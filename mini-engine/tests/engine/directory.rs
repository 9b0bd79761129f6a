//! Directories that are no database, not yet one, not one any more, or a newer one.

use std::fs;

use mini_engine::{Db, Error};
use tempfile::TempDir;

use crate::hook::files;

#[test]
fn a_directory_that_is_not_a_database_is_refused_and_left_alone() {
    // Catches an open by mistake that litters, or worse takes over, somebody's directory.
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
fn create_if_missing_false_creates_nothing() {
    // Catches a mistyped path that becomes an empty database.
    let dir = TempDir::new().unwrap();
    let missing = dir.path().join("missing");
    for path in [dir.path(), &missing] {
        let error = Db::builder(path).create_if_missing(false).open().unwrap_err();
        assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
    }
    assert!(files(dir.path(), "").is_empty());
    Db::open(&missing).unwrap().insert("a", "1").unwrap();
    assert!(Db::builder(&missing).create_if_missing(false).open().unwrap().contains_key("a").unwrap());
}

#[test]
fn directories_above_are_created_too() {
    // Catches a create that knows one level only.
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a/b/c");
    Db::open(&path).unwrap().insert("a", "1").unwrap();
    assert!(Db::open(&path).unwrap().contains_key("a").unwrap());
}

#[test]
fn a_newer_format_version_is_unsupported_and_nothing_is_changed() {
    // Catches a newer database reported as damaged, or opened and rewritten in the old format.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.insert("a", "1").unwrap();
    drop(db);
    let listing = files(dir.path(), "");
    let current = dir.path().join("CURRENT");
    let line = fs::read_to_string(&current).unwrap();
    fs::write(&current, line.replacen("mini-engine 1", "mini-engine 2", 1)).unwrap();
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
    fs::write(&manifest, newer).unwrap();
    let error = Db::open(dir.path()).unwrap_err();
    assert!(matches!(&error, Error::UnsupportedVersion { file, found: 9, .. } if *file == manifest), "{error}");
    fs::write(&manifest, good).unwrap();
    assert_eq!(files(dir.path(), ""), listing);
    assert!(Db::open(dir.path()).unwrap().contains_key("a").unwrap());
}

#[test]
fn a_lost_current_is_corruption_and_not_a_new_database() {
    // Catches a missing pointer taken for an empty directory: everything in it would be removed as orphans.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path()).unwrap();
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
    // The write is in a log only, then in a table only.
    lose();
    let db = Db::open(dir.path()).unwrap();
    assert!(db.contains_key("a").unwrap());
    db.close().unwrap();
    lose();
    assert!(Db::open(dir.path()).unwrap().contains_key("a").unwrap());
}

#[test]
fn files_of_others_in_a_database_are_left_alone() {
    // Catches an orphan removal that goes by less than our exact names.
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
