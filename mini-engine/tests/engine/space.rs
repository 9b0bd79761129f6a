//! Rule 8: a full disk during flushes and merges is waited out; and how writers wait for workers.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mini_engine::{Db, Error};

use crate::hook::{Answer, Event, HookFs, Op, files, on_merge_thread};
use crate::scratch::TempDir;

/// A disk without room for tables as long as the flag is set.
fn full_disk(
    fs: &HookFs,
    full: &Arc<AtomicBool>,
    hit: impl Fn(&Event) -> bool + Send + Sync + 'static,
) -> Arc<AtomicUsize> {
    let (full, refused) = (full.clone(), Arc::new(AtomicUsize::new(0)));
    let counter = refused.clone();
    fs.set(move |event| {
        if full.load(Ordering::SeqCst) && hit(event) {
            counter.fetch_add(1, Ordering::SeqCst);
            return Answer::Fail(ErrorKind::StorageFull);
        }
        Answer::Go
    });
    refused
}

#[test]
fn rule_8_writers_wait_while_a_flush_has_no_space_and_go_on_by_themselves() {
    // Catches an engine that turns read-only, or grows without bound, or never tries again.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(4096).open().unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, ".sst"));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200u64 {
                db.insert(n.to_be_bytes(), [7; 400]).unwrap();
            }
        });
        // A writer waits, and the flush has been tried more than once meanwhile.
        while db.metrics().stalls == 0 || refused.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        // Reads go on, memory is bounded by two memtables, and nothing partial keeps space.
        assert!(db.get(0u64.to_be_bytes()).unwrap().is_some());
        assert!(db.snapshot().seqno() < 30);
        assert!(db.metrics().flushes == 0 && files(dir.path(), ".sst").len() <= 1);
        full.store(false, Ordering::SeqCst);
    });
    assert_eq!(db.iter().map(Result::unwrap).count(), 200);
    assert!(db.metrics().stall_time.as_nanos() > 0);
    db.close().unwrap();
}

#[test]
fn rule_8_a_flush_without_space_is_reported_to_who_asked_for_it_and_done_later() {
    // Catches a `flush` that waits for ever, and one whose failure loses the memtable.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    let full = Arc::new(AtomicBool::new(true));
    // At the sync, when a file system allocates late.
    full_disk(&fs, &full, |event| event.is(Op::Sync, ".sst"));
    db.insert("a", "1").unwrap();
    for _ in 0..2 {
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
    }
    db.insert("b", "2").unwrap();
    full.store(false, Ordering::SeqCst);
    while db.metrics().flushes == 0 {
        std::thread::yield_now();
    }
    db.flush().unwrap();
    assert_eq!(db.iter().map(Result::unwrap).count(), 2);
    assert_eq!(db.metrics().levels[0].tables, 2);
    assert_eq!(files(dir.path(), ".sst").len(), 2);
}

#[cfg(unix)]
#[test]
fn a_flush_without_file_handles_is_done_later() {
    // Catches a database that is read-only for good since another part of the process had many files open for a moment.
    for number in [23, 24] {
        let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
        let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
        fs.set(move |event| if event.is(Op::Create, ".sst") { Answer::FailOs(number) } else { Answer::Go });
        db.insert("a", "1").unwrap();
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(number)), "{error}");
        db.insert("b", "2").unwrap();
        fs.clear();
        while db.metrics().flushes == 0 {
            std::thread::yield_now();
        }
        db.close().unwrap();
        assert_eq!(Db::open(dir.path()).unwrap().recovery().batches_replayed, 0);
    }
}

#[test]
fn rule_8_a_merge_without_space_keeps_its_inputs_and_is_done_later() {
    // Catches inputs that go before the output is there, a merge that is never tried again, and writers that wait for a
    // merge that makes no progress.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(4096).l0_trigger(1).open().unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, ".sst") && on_merge_thread());
    let mut written = 0u64;
    while db.metrics().flushes < 12 || refused.load(Ordering::SeqCst) < 2 {
        db.insert(written.to_be_bytes(), [7; 400]).unwrap();
        written += 1;
    }
    assert!(db.metrics().levels[0].tables >= 12);
    assert_eq!(db.iter().map(Result::unwrap).count() as u64, written);
    full.store(false, Ordering::SeqCst);
    while db.metrics().levels[0].tables > 1 {
        std::thread::yield_now();
    }
    assert_eq!(db.iter().map(Result::unwrap).count() as u64, written);
    db.close().unwrap();
}

#[test]
fn writers_wait_for_merges_that_fall_behind_so_that_reads_stay_bounded() {
    // Catches a level 0 that grows without end while a merge is slow: each read asks each of its tables.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    // The queue takes more memtables than are filled here: it is never what a writer waits for.
    let builder = Db::builder(dir.path()).memtable_bytes(4096).l0_trigger(1).l0_stop(4).immutable_memtables(64);
    let db = builder.file_system(fs.arc()).open().unwrap();
    let (_arrivals, go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_merge_thread());
    // Up to the stop.
    for n in 0..4u64 {
        db.insert(n.to_be_bytes(), "").unwrap();
        db.flush().unwrap();
    }
    assert_eq!((db.metrics().levels[0].tables, db.metrics().stalls), (4, 0));
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 4..300u64 {
                db.insert(n.to_be_bytes(), [7; 400]).unwrap();
            }
        });
        while db.metrics().stalls == 0 && !writer.is_finished() {
            std::thread::yield_now();
        }
        assert_eq!((db.metrics().levels[0].tables, db.metrics().stalls), (4, 1));
        drop(go);
    });
    assert_eq!(db.iter().map(Result::unwrap).count(), 300);
    assert!(db.metrics().compactions > 0);
}

#[test]
fn no_space_in_the_log_makes_the_engine_read_only() {
    // Catches rule 8 taken too far: a log that goes on behind a write that failed for want of space.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    db.insert("a", "1").unwrap();
    let full = Arc::new(AtomicBool::new(true));
    full_disk(&fs, &full, |event| event.is(Op::Write, ".log"));
    assert!(matches!(db.insert("b", "2"), Err(Error::Io { .. })));
    full.store(false, Ordering::SeqCst);
    assert!(matches!(db.insert("c", "3"), Err(Error::ReadOnly { .. })));
    drop(db);
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.iter().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>(), [b"a"]);
}
