//! Files that were set aside: the kept ones, the listed ones, and their removal.

use crate::support::*;

/// Writes the keys `new` to the only log, and damages a byte of the first new frame, or a byte behind the last frame.
fn tear(dir: &Path, new: &[&str], at_first: bool) {
    let db = Db::open(dir).unwrap();
    new.iter().for_each(|key| db.insert(key, "value").unwrap());
    drop(db);
    let log = dir.join(files(dir, ".log").into_iter().find(|name| name.ends_with(".log")).unwrap());
    let mut bytes = fs::read(&log).unwrap();
    let end = bytes.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let at = if at_first { 56 + 50 } else { end.next_multiple_of(8) };
    bytes.resize(bytes.len().max(at + 8), 0);
    bytes[at] ^= 0x55;
    fs::write(&log, bytes).unwrap();
}

#[test]
fn torn_ends_without_a_whole_batch_are_bounded_and_the_others_stay() {
    // Catches a disk that fills with torn ends of logs because a process is killed often, and a whole batch that is deleted with them.
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
    let aside = db.set_aside().unwrap();
    assert_eq!(aside.len(), 16);
    assert!(aside.iter().all(|aside| aside.bytes > 0 && !aside.is_quarantined));
}

#[test]
fn unfinished_tables_beside_torn_manifests_are_bounded_and_the_others_stay() {
    // Catches a disk that fills with files because a process is killed repeatedly during recovery, and a whole table that is deleted with them.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    db.ingest([("b", "2")]).unwrap();
    drop(db);
    let whole = newest_table(dir.path()).with_extension("sst.aside");
    cut(&the_file(dir.path(), "MANIFEST"), 20);
    for round in 0..5 {
        for n in 0..6 {
            fs::write(dir.path().join(format!("{:06}.sst", 1000 * (round + 1) + n)), "a part of a table").unwrap();
        }
        let manifest = the_file(dir.path(), "MANIFEST");
        fs::write(&manifest, [fs::read(&manifest).unwrap(), vec![7; 5]].concat()).unwrap();
        let db = Db::open(dir.path()).unwrap();
        let report = db.recovery();
        assert!(report.set_aside.iter().all(|path| path.exists()), "round {round}: {report}");
        let aside = db.set_aside().unwrap();
        assert_eq!(aside.len(), [7, 13, 16, 16, 16][round], "round {round}: {aside:?}");
        assert!(aside.iter().any(|aside| aside.file == whole), "round {round}");
    }
    assert!(dir.path().join("005005.sst.aside").exists() && !dir.path().join("001000.sst.aside").exists());
}

#[test]
fn a_quarantined_table_is_listed_until_it_is_dropped() {
    // Catches a file that is reported as unneeded while a quarantine still needs it.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    drop(db);
    let table = the_file(dir.path(), ".sst");
    flip(&table, 3);
    let db = Db::builder(dir.path()).recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    let aside = db.set_aside().unwrap();
    assert!(aside.len() == 1 && aside[0].is_quarantined, "{aside:?}");
    db.drop_quarantined(db.quarantined()[0].number).unwrap();
    let aside = db.set_aside().unwrap();
    assert!(aside.len() == 1 && !aside[0].is_quarantined, "{aside:?}");
    fs::remove_file(&aside[0].file).unwrap();
    assert!(db.set_aside().unwrap().is_empty());
}
