//! Merges that are held up, by damage, by each other or by loads: what waits for them, and what becomes of it.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mini_engine::{Compression, Db, Durability, Error, WriteBatch};

use crate::hook::{Answer, HookFs, Op, files, on_merge_thread};
use crate::scratch::TempDir;

fn key(n: u64) -> String {
    format!("key{:04}", n * 7 % 400)
}

fn level_0(db: &Db) -> u64 {
    db.metrics().levels.first().map_or(0, |level| level.tables)
}

#[test]
fn loads_wait_for_level_0_as_writers_do() {
    // Catches a loop of loads that builds up level 0 beyond the stop.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).l0_trigger(2).l0_slowdown(1000).l0_stop(8).file_system(fs.arc()).open().unwrap();
    let (_arrivals, go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_merge_thread());
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..40u32 {
                db.ingest([("a", n.to_be_bytes()), ("z", n.to_be_bytes())]).unwrap();
            }
        });
        while db.metrics().stalls == 0 && !writer.is_finished() {
            thread::yield_now();
        }
        let tables = level_0(&db);
        drop(go);
        assert!(tables <= 8, "{tables} tables");
    });
}

#[test]
fn what_a_callers_merge_has_read_again_is_no_error_any_more() {
    // Catches an error of a merge that nothing will try again, since a caller's merge has done it.
    let dir = TempDir::new().unwrap();
    let small = || Db::builder(dir.path()).compression(Compression::None).l0_trigger(2).l0_stop(8);
    let db = small().l0_trigger(100).open().unwrap();
    for n in 0..100 {
        db.insert(key(n), "base").unwrap();
    }
    db.flush().unwrap();
    let damaged = dir.path().join(&files(dir.path(), ".sst")[0]);
    for _ in 0..2 {
        for n in 0..100 {
            db.insert(key(n), "over").unwrap();
        }
        db.flush().unwrap();
    }
    db.close().unwrap();
    let sound = fs::read(&damaged).unwrap();
    let mut bytes = sound.clone();
    bytes[2] ^= 4;
    fs::write(&damaged, &bytes).unwrap();
    let db = small().open().unwrap();
    while db.metrics().damaged_files.is_empty() {
        thread::yield_now();
    }
    fs::write(&damaged, &sound).unwrap();
    db.compact_range(..).unwrap();
    assert!(db.metrics().damaged_files.is_empty());
    db.wait_for_compactions().unwrap();
}

#[test]
fn a_move_does_not_tell_that_a_table_can_be_read() {
    // Catches damage that is forgotten although nobody has read the table.
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
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[2] ^= 4;
    fs::write(&damaged, &bytes).unwrap();
    let db = open(1);
    while db.metrics().damaged_files.is_empty() {
        thread::yield_now();
    }
    // The table is moved down, and nobody reads it there: it holds nothing that could be left out.
    db.compact_range("b00"..="b01").unwrap();
    assert_eq!(db.metrics().damaged_files, [damaged]);
}

#[test]
fn writers_wait_for_a_merge_that_is_in_the_way_of_level_0() {
    // Catches writers that are refused over damage elsewhere while a merge of what level 0 overlaps is under way.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let small = || {
        Db::builder(dir.path())
            .memtable_bytes(4096)
            .block_bytes(512)
            .compression(Compression::None)
            .l0_trigger(2)
            .l0_slowdown(1000)
            .l0_stop(6)
            .table_file_bytes(4096)
    };
    let db = small().open().unwrap();
    db.ingest((0..40).map(|n| (format!("a{n:03}"), [1; 60]))).unwrap();
    // A version that a snapshot has kept is something to leave out.
    let snapshot = db.snapshot();
    db.insert("a000", "again").unwrap();
    db.compact_range("a000"..="a039").unwrap();
    drop(snapshot);
    db.ingest((0..40).map(|n| (format!("z{n:03}"), [1; 60]))).unwrap();
    db.close().unwrap();
    let mut tables = files(dir.path(), ".sst");
    tables.sort();
    assert_eq!(tables.len(), 2);
    let damaged = dir.path().join(&tables[1]);
    let mut bytes = fs::read(&damaged).unwrap();
    bytes[2] ^= 4;
    fs::write(&damaged, &bytes).unwrap();
    let held = Arc::new(AtomicBool::new(false));
    let (arrivals, go) = fs.hold_where(Answer::Go, move |event| {
        event.is(Op::Create, ".sst") && thread::current().name() == Some("caller") && !held.swap(true, Ordering::SeqCst)
    });
    let db = small().file_system(fs.arc()).open().unwrap();
    // Level 0 learns of the damage.
    for n in 0..3 {
        db.insert("z000", format!("{n}")).unwrap();
        db.insert("z039", format!("{n}")).unwrap();
        db.flush().unwrap();
    }
    while db.metrics().damaged_files.is_empty() {
        thread::yield_now();
    }
    let caller = {
        let db = db.clone();
        thread::Builder::new().name("caller".into()).spawn(move || db.compact_range("a000"..="a039")).unwrap()
    };
    arrivals.recv().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..12u32 {
                let mut batch = WriteBatch::new();
                batch.insert("a000", n.to_be_bytes()).unwrap();
                batch.insert("a020", vec![n as u8; 24_000]).unwrap();
                batch.insert("a039", n.to_be_bytes()).unwrap();
                db.write(batch, Durability::Buffered)?;
                db.flush()?;
            }
            Ok::<(), Error>(())
        });
        while db.metrics().stalls == 0 && !writer.is_finished() {
            thread::yield_now();
        }
        drop(go);
        writer.join().unwrap().unwrap();
    });
    caller.join().unwrap().unwrap();
}
