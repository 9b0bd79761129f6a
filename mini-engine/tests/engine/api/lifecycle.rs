//! The lifetimes of handles, snapshots, iterators and workers, and the end of a database.

use crate::support::*;

#[test]
fn second_open_gets_locked_also_in_the_same_process() {
    // Catches a lock that does not exclude other opens of the same process, like a POSIX record lock, so that two writers use one log. Also catches
    // an error that blames another process.
    let (dir, db) = fresh();
    let check_refused = || {
        let builder = || Db::builder(dir.path());
        let refused = [builder().open().err(), builder().read_only(true).open().err(), builder().salvage().err()];
        for error in refused.map(Option::unwrap) {
            assert!(matches!(error, Error::Locked { holder: Some(_), .. }), "{error}");
            assert!(error.to_string().contains("this process has the database open"), "{error}");
        }
    };
    check_refused();
    let (other, snapshot) = (db.clone(), db.snapshot());
    drop(db);
    check_refused();
    drop(other);
    check_refused();
    drop(snapshot);
    Db::open(dir.path()).unwrap();
}

#[test]
fn rule_13_lock_is_held_until_the_last_snapshot_and_iterator_is_gone() {
    // Catches a second engine that removes files as orphans although an iterator of the first engine still reads them.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    db.insert("b", "2").unwrap();
    let snapshot = db.snapshot();
    let mut iter = db.iter();
    let mut cursor = db.cursor();
    drop(db);
    assert_eq!(snapshot.iter().count(), 2);
    assert!(matches!(Db::open(dir.path()), Err(Error::Locked { .. })));
    drop(snapshot);
    assert_eq!(&*iter.next().unwrap().unwrap().0, b"a");
    assert!(matches!(Db::open(dir.path()), Err(Error::Locked { .. })));
    drop(iter);
    cursor.seek_to_last().unwrap();
    assert_eq!(cursor.key(), b"b");
    assert!(matches!(Db::open(dir.path()), Err(Error::Locked { .. })));
    drop(cursor);
    assert_eq!(Db::open(dir.path()).unwrap().iter().count(), 2);
}

#[test]
fn snapshots_and_iterators_go_on_after_close_and_may_go_to_other_threads() {
    // Catches a close that removes memtables or tables while readers use them.
    let (dir, db) = fresh();
    for n in 0..1000 {
        db.insert(format!("key{n:04}"), "value").unwrap();
    }
    let (snapshot, iter) = (db.snapshot(), db.iter());
    db.close().unwrap();
    let counted = std::thread::spawn(move || {
        (snapshot.iter().map(Result::unwrap).count(), iter.rev().map(Result::unwrap).count())
    });
    assert_eq!(counted.join().unwrap(), (1000, 1000));
    Db::open(dir.path()).unwrap();
}

#[test]
fn other_handles_get_closed_after_close() {
    // Catches an operation that does not check whether the database is closed, and would write to logs that are no longer flushed.
    let (dir, db) = fresh();
    let other = db.clone();
    db.insert("a", "1").unwrap();
    db.close().unwrap();
    let closed = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Closed)), "{result:?}");
    closed(other.get("a").map(drop));
    closed(other.get_many(["a"]).map(drop));
    closed(other.contains_key("a").map(drop));
    closed(other.insert("b", "2"));
    closed(other.remove("a"));
    closed(other.write(WriteBatch::new(), Durability::Buffered).map(drop));
    closed(put(&other, "b", "value", Durability::Synced).map(drop));
    closed(other.persist(Durability::Buffered));
    closed(other.compare_and_swap("a", Some(b"1"), None).map(drop));
    closed(other.pop_first().map(drop));
    closed(other.ingest([("z", "")]).map(drop));
    closed(other.compact_range(..));
    closed(other.wait_for_compactions());
    closed(other.checkpoint(dir.path().join("late")));
    closed(other.flush());
    closed(other.verify().map(drop));
    closed(other.snapshot().get("a").map(drop));
    closed(other.cursor().seek_to_first());
    for mut iter in [other.iter(), other.range("a"..), other.prefix("a")] {
        closed(iter.next().unwrap().map(drop));
        assert!(iter.next().is_none() && iter.next_back().is_none());
    }
    closed(other.close());
}

#[test]
fn close_leaves_nothing_to_replay_and_drop_loses_nothing() {
    // Catches a close that does not flush 20 KB, and a drop that loses buffered writes.
    let (dir, db) = fresh();
    assert!(db.recovery().created);
    db.insert("a", "1").unwrap();
    let db = reopened(db, &dir);
    assert_eq!((db.recovery().created, db.recovery().batches_replayed, db.recovery().logs_replayed), (false, 1, 1));
    db.insert("b", vec![2; 20_000]).unwrap();
    db.close().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!((db.recovery().batches_replayed, db.recovery().last_seqno), (0, 2));
    assert_eq!(db.iter().count(), 2);
    // One manifest is left, its log, and the one of this open; the files of earlier opens are gone.
    assert_eq!((files(dir.path(), ".log").len(), files(dir.path(), "MANIFEST").len()), (2, 1));
}

#[test]
fn the_last_handle_may_be_dropped_on_a_worker_thread() {
    // Catches a worker that joins itself, or waits for a lock that it holds: the shutdown would never end.
    for (op, durability) in [
        (Op::Remove, Durability::Buffered),
        // The file of a synced log is kept for another log.
        (Op::Truncate, Durability::Synced),
        (Op::Rename, Durability::Synced),
    ] {
        let (dir, fs, db) = hooked(|b| b);
        put(&db, "a", "1", durability).unwrap();
        let last = Arc::new(Mutex::new(None::<Db>));
        let (sender, dropped) = mpsc::channel();
        let ((arm, armed), held) = (mpsc::channel::<()>(), last.clone());
        let armed = Mutex::new(armed);
        fs.set(move |event| {
            if event.is(op, ".log") && armed.lock().unwrap().recv().is_ok() {
                drop(held.lock().unwrap().take());
                sender.send(thread::current().name().map(str::to_owned)).unwrap();
            }
            Answer::Go
        });
        db.flush().unwrap();
        *last.lock().unwrap() = Some(db);
        arm.send(()).unwrap();
        drop(arm);
        assert_eq!(dropped.recv().unwrap().as_deref(), Some("mini-engine-flush"), "{op:?}");
        // The lock is released when the worker ends, at some later time.
        let reopened = loop {
            match Db::open(dir.path()) {
                Err(Error::Locked { .. }) => thread::yield_now(),
                result => break result.unwrap(),
            }
        };
        assert!(reopened.contains_key("a").unwrap());
    }
}

#[test]
fn a_stalled_writer_gets_closed_and_close_reports_the_flush_that_cannot_be_done() {
    // Catches a writer that waits for space for ever although the database is closed, and a close that hides the failure.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(4096).wait_for_space(true));
    fs.fail(Op::Create, ".sst", ErrorKind::StorageFull);
    let writer = {
        let db = db.clone();
        std::thread::spawn(move || {
            for n in 0u64.. {
                if let Err(error) = db.insert(n.to_be_bytes(), [7; 500]) {
                    return (n, error);
                }
            }
            unreachable!("the writer stalls long before")
        })
    };
    wait_while(|| db.metrics().stalls == 0);
    let closed = db.close();
    assert!(matches!(&closed, Err(Error::Io { source, .. }) if source.kind() == ErrorKind::StorageFull), "{closed:?}");
    let (written, error) = writer.join().unwrap();
    assert!(matches!(error, Error::Closed), "{error}");
    fs.clear();
    let db = Db::builder(dir.path()).open().unwrap();
    assert_eq!(db.iter().map(Result::unwrap).count() as u64, written);
}

#[test]
fn a_flush_under_way_when_the_last_handle_goes_loses_nothing() {
    // Catches a drop during a flush that leaves a partial table in the version, or removes its log.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(4096));
    let (starts, go) = fs.hold(Op::Create, ".sst", Answer::Go);
    for n in 0..18u8 {
        db.insert([n], [n; 250]).unwrap();
    }
    starts.recv().unwrap();
    let dropping = std::thread::spawn(move || drop(db));
    drop(go);
    dropping.join().unwrap();
    let db = Db::open(dir.path()).unwrap();
    assert_eq!(db.iter().map(Result::unwrap).count(), 18);
}

#[test]
fn debug_output_names_the_directory_and_not_the_data() {
    // Catches a `{:?}` output that contains the data.
    let (dir, db) = fresh();
    for n in 0..1000 {
        db.insert(format!("secret{n}"), "secret").unwrap();
    }
    db.flush().unwrap();
    for text in
        [format!("{db:?}"), format!("{:?}", db.snapshot()), format!("{:?}", db.iter()), format!("{:?}", db.cursor())]
    {
        assert!(text.contains(dir.path().to_str().unwrap()) && !text.contains("secret") && text.len() < 1000, "{text}");
    }
}
