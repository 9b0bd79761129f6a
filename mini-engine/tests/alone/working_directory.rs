//! A database stays in its directory even if the process changes its working directory.

use std::env;
use std::fs;
use std::path::Path;
use std::time::SystemTime;

use mini_engine::Db;

use proof::TempDir;

/// Every file with its bytes and the time of its last change.
fn state(directory: &Path) -> Vec<(std::ffi::OsString, Vec<u8>, SystemTime)> {
    let file = |entry: fs::DirEntry| {
        let changed = entry.metadata().unwrap().modified().unwrap();
        (entry.file_name(), fs::read(entry.path()).unwrap(), changed)
    };
    let mut files: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| file(entry.unwrap())).collect();
    files.sort();
    files
}

pub(crate) fn a_relative_path_is_fixed_at_open() {
    // Catches an engine that goes on in another directory after a chdir: it would write its logs and tables into a database that
    // happens to have the same name there, rename that one's `CURRENT`, and unlink its files.
    let (one, two) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let other = Db::open(two.path().join("db")).unwrap();
    other.insert("other", "1").unwrap();
    other.close().unwrap();
    let before = state(&two.path().join("db"));

    env::set_current_dir(one.path()).unwrap();
    let builder = || Db::builder("db").memtable_bytes(4096).l0_trigger(2).block_bytes(512);
    let (unopened, db) = (builder(), builder().open().unwrap());
    db.insert("first", "1").unwrap();
    env::set_current_dir(two.path()).unwrap();
    // Uses logs, tables, compactions, a manifest's edits, a verification, a checkpoint in the same parent directory, and the next open's recovery.
    for n in 0..400u32 {
        db.insert(n.to_be_bytes(), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    db.compact_range(..).unwrap();
    assert!(db.verify().unwrap().problems.is_empty());
    let snapshot = db.snapshot();
    db.checkpoint("copy").unwrap();
    let directory = db.recovery().directory.clone();
    db.close().unwrap();
    assert_eq!(snapshot.iter().count(), 401);
    drop(snapshot);
    assert_eq!(state(&two.path().join("db")), before);
    assert_eq!(directory, one.path().canonicalize().unwrap().join("db"));
    assert!(two.path().join("copy").join("CURRENT").exists());
    let db = Db::builder(one.path().join("db")).create_if_missing(false).open().unwrap();
    assert_eq!((db.get("first").unwrap().as_deref(), db.iter().count()), (Some(&b"1"[..]), 401));
    // The path is relative to the working directory at the open, not at the construction of the builder.
    assert!(unopened.open().unwrap().contains_key("other").unwrap());
}
