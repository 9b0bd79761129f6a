//! Files that were set aside: which are kept, which are listed, and how they go.

use std::fs;
use std::path::Path;

use mini_engine::{Db, Error, RecoveryMode};

use crate::hook::files;
use crate::recovery::{keys, the_file};
use crate::scratch::TempDir;

/// Writes `keys` to the only log, and changes a byte: of the first of them, or behind the last.
fn tear(dir: &Path, new: &[&str], at_first: bool) {
    let db = Db::open(dir).unwrap();
    new.iter().for_each(|key| db.insert(key, "value").unwrap());
    drop(db);
    let log = dir.join(files(dir, ".log").into_iter().find(|name| name.ends_with(".log")).unwrap());
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let at = if at_first { 40 + 50 } else { end.next_multiple_of(8) };
    bytes.resize(bytes.len().max(at + 8), 0);
    bytes[at] ^= 0x55;
    fs::write(&log, bytes).unwrap();
}

#[test]
fn torn_ends_without_a_whole_batch_are_bounded_and_the_others_stay() {
    // Catches a disk that fills with the torn ends of a process that is killed often, and a whole batch that goes with them.
    let dir = TempDir::new().unwrap();
    let mut whole = Vec::new();
    for round in 0..22 {
        let has_whole = round == 0 || round == 7;
        tear(dir.path(), &[&format!("first{round:02}"), &format!("second{round:02}")], has_whole);
        let db = Db::open(dir.path()).unwrap();
        let kept = db.recovery().torn.as_ref().unwrap().kept.clone().unwrap();
        assert!(kept.exists(), "round {round}");
        if has_whole {
            whole.push(kept);
        }
    }
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(keys(&db).len(), 2 * 20);
    assert!(whole.iter().all(|kept| kept.exists()));
    // A file of the same name in another directory is not this one.
    let elsewhere = Path::new("elsewhere").join(whole[0].file_name().unwrap());
    assert!(matches!(db.remove_aside(elsewhere), Err(Error::InvalidArgument(_))));
    assert!(whole[0].exists());
    let aside = db.set_aside().unwrap();
    assert_eq!(aside.len(), 16);
    assert!(aside.iter().all(|aside| aside.bytes > 0 && !aside.is_quarantined));
    db.remove_aside(&whole[0]).unwrap();
    assert!(!whole[0].exists() && whole[1].exists());
    assert!(matches!(db.remove_aside(&whole[0]), Err(Error::InvalidArgument(_))));
    assert!(matches!(db.remove_aside("CURRENT"), Err(Error::InvalidArgument(_))));
    assert_eq!(db.set_aside().unwrap().len(), 15);
}

#[test]
fn a_quarantined_table_is_listed_and_not_removed() {
    // Catches the removal of what a quarantine still stands for.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.insert("a", "1").unwrap();
    db.close().unwrap();
    let table = the_file(dir.path(), ".sst");
    let mut bytes = fs::read(&table).unwrap();
    bytes[3] ^= 1;
    fs::write(&table, bytes).unwrap();
    let db = Db::builder(dir.path()).recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    let aside = db.set_aside().unwrap();
    assert!(aside.len() == 1 && aside[0].is_quarantined, "{aside:?}");
    assert!(matches!(db.remove_aside(&aside[0].file), Err(Error::InvalidArgument(_))));
    db.drop_quarantined(db.quarantined()[0].number).unwrap();
    db.remove_aside(&aside[0].file).unwrap();
    assert!(files(dir.path(), ".aside").is_empty() && db.set_aside().unwrap().is_empty());
}
