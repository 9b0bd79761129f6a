//! Compactions of a damaged table: they keep the table, and report it until it can be read.

use crate::support::*;

#[test]
fn rule_9_a_compaction_never_drops_a_table_that_it_could_not_read() {
    // Catches a compaction that skips unreadable data and unlinks its inputs.
    let (dir, db) = opened(|b| b.l0_trigger(100));
    for key in ["a", "b"] {
        db.insert(key, "value").unwrap();
        // Overlaps the damaged table: tables without overlap would be compacted without it.
        db.insert("m", key).unwrap();
        db.flush().unwrap();
    }
    db.close().unwrap();
    let damaged = dir.path().join(&files(dir.path(), ".sst")[0]);
    flip(&damaged, 2);
    let before = files(dir.path(), ".sst");
    // The open starts the compaction.
    let db = Db::builder(dir.path()).l0_trigger(1).open().unwrap();
    let error = db.wait_for_compactions().unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == damaged), "{error}");
    assert!(matches!(db.get("a"), Err(Error::Corruption { .. })));
    assert!(db.get("b").unwrap().is_some());
    db.insert("c", "value").unwrap();
    db.close().unwrap();
    let after = files(dir.path(), ".sst");
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
}

#[test]
fn what_a_callers_compaction_has_read_again_is_no_error_any_more() {
    // Catches an error that is reported for ever although a caller's compaction has since done the work.
    let dir = TempDir::new().unwrap();
    let small = || Db::builder(dir.path()).compression(Compression::None).l0_trigger(2).l0_stop(8);
    let db = small().l0_trigger(100).open().unwrap();
    fill(&db, 0..100, "base");
    db.flush().unwrap();
    let damaged = dir.path().join(&files(dir.path(), ".sst")[0]);
    for _ in 0..2 {
        fill(&db, 0..100, "over");
        db.flush().unwrap();
    }
    db.close().unwrap();
    let sound = flip(&damaged, 2);
    let db = small().open().unwrap();
    wait_while(|| db.metrics().damaged_files.is_empty());
    fs::write(&damaged, &sound).unwrap();
    db.compact_range(..).unwrap();
    assert!(db.metrics().damaged_files.is_empty());
    db.wait_for_compactions().unwrap();
}

#[test]
fn a_move_does_not_tell_that_a_table_can_be_read() {
    // Catches damage that is no longer reported although the table was not read since.
    let dir = TempDir::new().unwrap();
    let open = |trigger| {
        Db::builder(dir.path())
            .compression(Compression::None)
            .table_file_bytes(4096)
            .block_bytes(512)
            .l0_trigger(trigger)
            .open()
            .unwrap()
    };
    let db = open(100);
    for n in 0..60 {
        db.insert(format!("b{n:02}"), [7; 100]).unwrap();
    }
    db.flush().unwrap();
    let damaged = dir.path().join(&files(dir.path(), ".sst")[0]);
    for n in 30..90 {
        db.insert(format!("b{n:02}"), [8; 100]).unwrap();
    }
    db.flush().unwrap();
    db.close().unwrap();
    flip(&damaged, 2);
    let db = open(1);
    wait_while(|| db.metrics().damaged_files.is_empty());
    // The table is moved down without a read, because it has no obsolete entries.
    db.compact_range("b00"..="b01").unwrap();
    assert_eq!(db.metrics().damaged_files, [damaged]);
}
