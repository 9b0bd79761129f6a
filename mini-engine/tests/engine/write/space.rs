//! Rule 8: a full disk during flushes and merges is waited out; and how writers wait for workers.

use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mini_engine::{Db, Durability, Error};

use crate::hook::{Answer, Event, HookFs, Op, count, files, on_merge_thread, position};
use crate::recovery::{copy, keys};
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
fn rule_8_writers_that_choose_so_wait_while_a_flush_has_no_space_and_go_on_by_themselves() {
    // Catches an engine that turns read-only, or grows without bound, or never tries again.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let builder = Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(4096);
    let db = builder.wait_for_space(true).open().unwrap();
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
        // All tables overlap: none can be moved, which needs no space.
        db.insert(written.reverse_bits().to_be_bytes(), [7; 400]).unwrap();
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
fn rule_8_a_write_without_space_in_the_log_goes_on_in_the_next_log() {
    // Catches a log that goes on behind a write that failed for want of space (rule 7), and an engine that never writes again.
    for durability in [Durability::Buffered, Durability::Synced] {
        for part in [0, 100] {
            let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
            let db = Db::builder(dir.path()).file_system(fs.arc()).durability(durability).open().unwrap();
            db.insert("a", "1").unwrap();
            // A part of the frame gets into the file, and no more.
            let had = AtomicUsize::new(0);
            fs.set(move |event| match (event.is(Op::Write, "000001.log"), had.fetch_add(1, Ordering::SeqCst)) {
                (true, 0) if part > 0 => Answer::Short(part),
                (true, _) => Answer::Fail(ErrorKind::StorageFull),
                _ => Answer::Go,
            });
            fs.take();
            db.insert("b", [7; 300]).unwrap();
            let events = fs.take();
            let cut = position(&events, 0, Op::Truncate, "000001.log");
            let synced = position(&events, cut, Op::Sync, "000001.log");
            let next = position(&events, synced, Op::Write, "000003.log");
            assert_eq!(count(&events[next..], Op::Write, "000001.log"), 0, "{events:?}");
            fs.clear();
            db.insert("c", "3").unwrap();
            // As a killed process leaves it; a copy is of one moment only while nothing is written.
            while db.metrics().immutable_memtables + db.metrics().logs_being_made + db.metrics().flushes_running > 0 {
                std::thread::yield_now();
            }
            let left = copy(dir.path());
            for db in [&Db::open(left.path()).unwrap(), &db] {
                assert_eq!(keys(db), ["a", "b", "c"]);
                assert!(db.recovery().findings().is_empty(), "{:?}", db.recovery().findings());
            }
            db.close().unwrap();
        }
    }
}

#[test]
fn rule_8_a_write_that_finds_space_nowhere_is_refused_and_later_ones_go_on() {
    // Catches a refused write that comes back at a reopen, and one that leaves the engine read-only.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    db.insert("a", "1").unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, ".log"));
    for _ in 0..3 {
        let error = db.insert("b", "2").unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
    }
    assert!(refused.load(Ordering::SeqCst) >= 3);
    assert_eq!((keys(&db), files(dir.path(), ".log").len()), (vec!["a".to_owned()], 1));
    let left = copy(dir.path());
    full.store(false, Ordering::SeqCst);
    db.insert("c", "3").unwrap();
    let killed = Db::open(left.path()).unwrap();
    assert_eq!((keys(&killed), killed.recovery().findings().len()), (vec!["a".to_owned()], 0));
    assert_eq!(keys(&db), ["a", "c"]);
    db.close().unwrap();
    assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a", "c"]);
}

#[test]
fn rule_8_an_edit_without_space_is_written_later_and_leaves_no_table() {
    // Catches a manifest that goes on behind a part of an edit, one that is read-only for good, and a table more for each try.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    db.insert("a", "1").unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, "MANIFEST"));
    for _ in 0..2 {
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull), "{error}");
    }
    db.insert("b", "2").unwrap();
    let left = copy(dir.path());
    assert_eq!(keys(&Db::open(left.path()).unwrap()), ["a", "b"]);
    while refused.load(Ordering::SeqCst) < 6 {
        std::thread::yield_now();
    }
    // The one that is being written, and one that a thread is about to remove.
    assert!(files(dir.path(), ".sst").len() <= 2);
    full.store(false, Ordering::SeqCst);
    while db.metrics().flushes == 0 {
        std::thread::yield_now();
    }
    // The old manifest was closed.
    assert_eq!(files(dir.path(), "MANIFEST").len(), 1);
    assert_ne!(files(dir.path(), "MANIFEST"), ["MANIFEST-000002"]);
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!((keys(&db), db.recovery().findings().len()), (vec!["a".to_owned(), "b".to_owned()], 0));
}

#[cfg(unix)]
#[test]
fn a_rotation_or_an_edit_without_file_handles_is_done_later() {
    // Catches a database that is read-only for good since another part of the process had many files open for a moment.
    let handles: [fn(&Event) -> bool; 4] = [
        |event| event.is(Op::Create, ".log"),
        |event| event.op == Op::SyncDir,
        |event| event.is(Op::Create, "MANIFEST"),
        |event| event.is(Op::Create, "CURRENT"),
    ];
    for (n, wants_handle) in handles.into_iter().enumerate() {
        let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
        let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
        db.insert("a", "1").unwrap();
        if n >= 2 {
            // The edit then needs a new manifest.
            full_disk(&fs, &Arc::new(AtomicBool::new(true)), |event| event.is(Op::Write, "MANIFEST"));
            db.flush().unwrap_err();
        }
        fs.set(move |event| if wants_handle(event) { Answer::FailOs(24) } else { Answer::Go });
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(24)), "{n}: {error}");
        db.insert("b", "2").unwrap();
        fs.clear();
        db.flush().unwrap();
        assert_eq!(files(dir.path(), "CURRENT"), ["CURRENT"], "{n}");
        db.close().unwrap();
        let db = Db::open(dir.path()).unwrap();
        assert_eq!((keys(&db).len(), db.recovery().batches_replayed), (2, 0), "{n}");
    }
}

#[cfg(unix)]
#[test]
fn a_new_manifest_becomes_durable_though_the_last_handle_is_reserved_for_that() {
    // Catches a reserve that is let go before it is needed: another thread could take it, and the database would be read-only.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let db = Db::builder(dir.path()).file_system(fs.arc()).open().unwrap();
    db.insert("a", "1").unwrap();
    // The next edit then needs a new manifest.
    full_disk(&fs, &Arc::new(AtomicBool::new(true)), |event| event.is(Op::Write, "MANIFEST"));
    db.flush().unwrap_err();
    let (renamed, refused) = (AtomicBool::new(false), Arc::new(AtomicUsize::new(0)));
    let counter = refused.clone();
    fs.set(move |event| {
        let is_pointer = event.is(Op::RenameTo, "CURRENT") && !renamed.swap(true, Ordering::SeqCst);
        let is_next = event.op == Op::SyncDir && renamed.load(Ordering::SeqCst);
        match is_next && !is_pointer && counter.fetch_add(1, Ordering::SeqCst) == 0 {
            true => Answer::FailOs(24),
            false => Answer::Go,
        }
    });
    db.flush().unwrap();
    assert!(refused.load(Ordering::SeqCst) >= 2);
    db.insert("b", "2").unwrap();
    db.close().unwrap();
    assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a", "b"]);
}

#[test]
fn a_rotation_exchanges_logs_and_waits_for_no_device() {
    // Catches a log that is created, or synced, by the thread that writes, or under the lock that all writers need.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let builder = Db::builder(dir.path()).memtable_bytes(64 << 10).immutable_memtables(8).l0_trigger(100);
    let db = builder.file_system(fs.arc()).open().unwrap();
    let (on_writer, refused) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicBool::new(false)));
    let (counter, ahead) = (on_writer.clone(), refused.clone());
    let writer = std::thread::current().id();
    fs.set(move |event| {
        let waits = matches!(event.op, Op::Create | Op::Sync | Op::SyncDir | Op::Rename);
        counter.fetch_add((waits && std::thread::current().id() == writer).into(), Ordering::SeqCst);
        match ahead.load(Ordering::SeqCst) && event.is(Op::Create, ".log") {
            true => Answer::Fail(ErrorKind::StorageFull),
            false => Answer::Go,
        }
    });
    let logs = || files(dir.path(), ".log");
    let write_until = |done: &dyn Fn() -> bool| {
        for n in 0u64.. {
            db.insert(n.to_be_bytes(), [7; 400]).unwrap();
            if done() {
                return;
            }
        }
    };
    write_until(&|| db.metrics().logs_being_made > 0 || logs().len() > 1);
    while db.metrics().logs_being_made > 0 {
        std::thread::yield_now();
    }
    // The next rotation takes what is ready, though no log could be created now.
    refused.store(true, Ordering::SeqCst);
    let next = dir.path().join(logs().pop().unwrap());
    let is_used = || std::fs::read(&next).map_or(true, |bytes| bytes.iter().skip(64).any(|byte| *byte != 0));
    assert!(!is_used() && std::fs::metadata(&next).unwrap().len() > 32 << 10);
    write_until(&is_used);
    assert_eq!(on_writer.load(Ordering::SeqCst), 0);
    refused.store(false, Ordering::SeqCst);
    db.close().unwrap();
    // Nothing that was made ahead is left.
    assert_eq!((logs().len(), files(dir.path(), "SPARE").len()), (1, 0));
}

#[test]
fn a_wait_for_the_next_log_is_counted_and_timed() {
    // Catches writers that are held up while every counter of waits says that nobody waits.
    let (dir, fs) = (TempDir::new().unwrap(), HookFs::new());
    let builder = Db::builder(dir.path()).memtable_bytes(64 << 10).immutable_memtables(8).l0_trigger(100);
    let db = builder.file_system(fs.arc()).open().unwrap();
    let (arrivals, go) = fs.hold(Op::Create, ".log", Answer::Go);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| (0..400u64).try_for_each(|n| db.insert(n.to_be_bytes(), [7; 400])));
        arrivals.recv().unwrap();
        while db.metrics().log_waits == 0 && !writer.is_finished() {
            std::thread::yield_now();
        }
        let metrics = db.metrics();
        assert_eq!((metrics.log_waits, metrics.log_wait_time.is_zero(), metrics.stalls), (1, true, 0));
        drop(go);
        writer.join().unwrap().unwrap();
    });
    assert!(!db.metrics().log_wait_time.is_zero());
}
