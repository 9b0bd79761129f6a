//! Rule 8: writes, flushes and compactions wait until a full disk has space again, and until missing file handles are available.

use crate::support::*;

/// A disk without room for tables as long as the flag is set.
fn full_disk(
    fs: &FaultFs,
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

/// Inserts after space was missing: the insert may be refused for a moment longer, while a step uses the reserve.
fn insert_again(db: &Db, key: &str, value: &str) {
    wait_while(|| db.insert(key, value).inspect_err(|error| assert!(is_full(error), "{error}")).is_err());
}

#[test]
fn rule_8_writers_that_choose_so_wait_while_a_flush_has_no_space_and_go_on_by_themselves() {
    // Catches an engine on a full disk that becomes read-only, uses memory without limit, or never tries again.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(4096).wait_for_space(true));
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, ".sst"));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200u64 {
                db.insert(n.to_be_bytes(), [7; 400]).unwrap();
            }
        });
        // Waits until a writer waits and the flush has been tried more than once.
        wait_while(|| db.metrics().stalls == 0 || refused.load(Ordering::SeqCst) < 3);
        // Reads go on, memory is bounded by two memtables, and no partial file takes space.
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
fn rule_8_a_flush_without_space_or_handles_is_reported_to_who_asked_for_it_and_done_later() {
    // Catches a `flush` that waits for ever, a `flush` whose failure loses the memtable, and a database that stays read-only because another part of
    // the process had many files open for a moment. The cases are a sync on a file system that allocates late, ENFILE and EMFILE.
    for (op, answer) in [
        (Op::Sync, Answer::Fail(ErrorKind::StorageFull)),
        (Op::Create, Answer::FailOs(23)),
        (Op::Create, Answer::FailOs(24)),
    ] {
        let (dir, fs, db) = hooked(|b| b);
        fs.answer_where(answer, move |event| event.is(op, ".sst"));
        db.insert("a", "1").unwrap();
        for _ in 0..2 {
            let error = db.flush().unwrap_err();
            assert!(is_the_cause(&error, answer), "{error}");
        }
        insert_again(&db, "b", "2");
        fs.clear();
        wait_while(|| db.metrics().flushes == 0);
        db.flush().unwrap();
        assert_eq!((db.metrics().levels[0].tables, files(dir.path(), ".sst").len()), (2, 2));
        db.close().unwrap();
        let db = Db::open(dir.path()).unwrap();
        assert_eq!((keys(&db).len(), db.recovery().batches_replayed), (2, 0));
    }
}

#[test]
fn rule_8_a_write_without_space_in_the_log_goes_on_in_the_next_log() {
    // Catches a log that continues behind a write that failed for lack of space (rule 7), and an engine that never writes again.
    for durability in [Durability::Buffered, Durability::Synced] {
        for part in [0, 100] {
            let (dir, fs, db) = hooked(|b| b.durability(durability));
            db.insert("a", "1").unwrap();
            // Only a part of the frame gets into the file.
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
            insert_again(&db, "c", "3");
            // A copy has the files of a killed process. It is consistent only while no file is written, so this waits first.
            wait_while(|| {
                db.metrics().immutable_memtables + db.metrics().logs_being_made + db.metrics().flushes_running > 0
            });
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
    let (dir, fs, db) = hooked(|b| b);
    db.insert("a", "1").unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, ".log"));
    for _ in 0..3 {
        let error = db.insert("b", "2").unwrap_err();
        assert!(is_full(&error), "{error}");
    }
    assert!(refused.load(Ordering::SeqCst) >= 3);
    assert_eq!((keys(&db), files(dir.path(), ".log").len()), (vec!["a".to_owned()], 1));
    let left = copy(dir.path());
    full.store(false, Ordering::SeqCst);
    insert_again(&db, "c", "3");
    let killed = Db::open(left.path()).unwrap();
    assert_eq!((keys(&killed), killed.recovery().findings().len()), (vec!["a".to_owned()], 0));
    assert_eq!(keys(&db), ["a", "c"]);
    db.close().unwrap();
    assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a", "c"]);
}

#[test]
fn rule_8_an_edit_without_space_is_written_later_and_leaves_no_table() {
    // Catches a manifest that continues behind a partial edit, one that stays read-only, and an extra table for each try.
    let (dir, fs, db) = hooked(|b| b);
    db.insert("a", "1").unwrap();
    let full = Arc::new(AtomicBool::new(true));
    let refused = full_disk(&fs, &full, |event| event.is(Op::Write, "MANIFEST"));
    for _ in 0..2 {
        let error = db.flush().unwrap_err();
        assert!(is_full(&error), "{error}");
    }
    insert_again(&db, "b", "2");
    let left = copy(dir.path());
    assert_eq!(keys(&Db::open(left.path()).unwrap()), ["a", "b"]);
    wait_while(|| refused.load(Ordering::SeqCst) < 6);
    // The table that is being written, and one that a thread is about to remove.
    assert!(files(dir.path(), ".sst").len() <= 2);
    full.store(false, Ordering::SeqCst);
    wait_while(|| db.metrics().flushes == 0);
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
    // Catches a database that stays read-only because another part of the process briefly had many files open.
    let handles: [fn(&Event) -> bool; 4] = [
        |event| event.is(Op::Create, ".log"),
        |event| event.op == Op::SyncDir,
        |event| event.is(Op::Create, "MANIFEST"),
        |event| event.is(Op::Create, "CURRENT"),
    ];
    for (n, wants_handle) in handles.into_iter().enumerate() {
        let (dir, fs, db) = hooked(|b| b);
        db.insert("a", "1").unwrap();
        if n >= 2 {
            // The edit then needs a new manifest.
            full_disk(&fs, &Arc::new(AtomicBool::new(true)), |event| event.is(Op::Write, "MANIFEST"));
            db.flush().unwrap_err();
        }
        fs.answer_where(Answer::FailOs(24), wants_handle);
        let error = db.flush().unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.raw_os_error() == Some(24)), "{n}: {error}");
        insert_again(&db, "b", "2");
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
    // Catches a reserved handle that is released before it is needed: another thread could take it, and the database would be read-only.
    let (dir, fs, db) = hooked(|b| b);
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
    insert_again(&db, "b", "2");
    db.close().unwrap();
    assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a", "b"]);
}

#[test]
fn whatever_finds_no_space_and_no_handle_for_a_while_nothing_acknowledged_is_lost() {
    // Catches a write that is lost or doubled when its frame is cut off one log and written to the next, and threads that
    // wait for ever. Space and handles are missing at random times, with several writers.
    for seed in 0..4u64 {
        let (dir, fs) = (TempDir::new().unwrap(), unmapped());
        let durability = if seed % 2 == 0 { Durability::Buffered } else { Durability::Synced };
        let db = Db::builder(dir.path())
            .file_system(fs.arc())
            .durability(durability)
            .memtable_bytes(8 << 10)
            .immutable_memtables(1 + (seed % 3) as usize)
            .l0_trigger(2)
            .open()
            .unwrap();
        let state = Arc::new(Mutex::new(Random(seed << 32)));
        let (acked, refused) = (Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new()));
        let next = AtomicU64::new(0);
        for round in 0..6 {
            let dice = state.clone();
            let rate = [2, 5, 12][(round % 3) as usize];
            fs.set(move |event| {
                let roll = dice.lock().unwrap().below(100);
                if on_compaction_thread() {
                    return Answer::Go;
                }
                match event.op {
                    Op::Write if roll < rate => {
                        if roll.is_multiple_of(2) {
                            Answer::Fail(ErrorKind::StorageFull)
                        } else {
                            Answer::Short(40 + roll as usize)
                        }
                    }
                    Op::Create if roll < rate => {
                        if roll.is_multiple_of(2) {
                            Answer::Fail(ErrorKind::StorageFull)
                        } else {
                            Answer::FailOs(24)
                        }
                    }
                    _ => Answer::Go,
                }
            });
            thread::scope(|scope| {
                for thread in 0..3 {
                    let (db, acked, refused, next, state) = (&db, &acked, &refused, &next, &state);
                    scope.spawn(move || {
                        for _ in 0..60 {
                            let n = next.fetch_add(1, Ordering::SeqCst);
                            let len = [10, 200, 1000, 5000][state.lock().unwrap().index(4)];
                            match db.insert(n.to_be_bytes(), vec![7; len]) {
                                Ok(()) => {
                                    acked.lock().unwrap().insert(n);
                                }
                                Err(error) => {
                                    assert!(matches!(&error, Error::Io { .. }), "seed {seed} thread {thread}: {error}");
                                    refused.lock().unwrap().insert(n);
                                }
                            }
                            if state.lock().unwrap().one_in(40)
                                && let Err(error) = db.flush()
                            {
                                assert!(matches!(&error, Error::Io { .. }), "seed {seed} thread {thread}: {error}");
                            }
                        }
                    });
                }
            });
            let check = |db: &Db, what: &str| {
                let found: BTreeSet<u64> =
                    db.iter().map(|entry| u64::from_be_bytes(entry.unwrap().0[..].try_into().unwrap())).collect();
                let acked = acked.lock().unwrap();
                let lost: Vec<_> = acked.difference(&found).collect();
                let extra: Vec<_> = found.difference(&acked).collect();
                assert!(
                    lost.is_empty() && extra.is_empty(),
                    "seed {seed} round {round} {what}: lost {lost:?}, extra {extra:?}"
                );
            };
            check(&db, "live");
            fs.clear();
            // Waits until the engine is idle, so that the copy is consistent.
            wait_while(|| db.metrics().flushes_running > 0 || db.metrics().logs_being_made > 0);
            if round % 2 == 1 {
                let _ = db.wait_for_compactions();
            }
            db.flush().unwrap();
            db.insert(u64::MAX.to_be_bytes(), "x").unwrap();
            db.remove(u64::MAX.to_be_bytes()).unwrap();
            let report = db.verify().unwrap();
            assert!(report.problems.is_empty(), "{:?}", report.problems);
        }
        db.wait_for_compactions().ok();
        drop(db);
        let reader = Db::builder(dir.path()).read_only(true).open().unwrap();
        let found = reader.iter().count();
        drop(reader);
        let db = Db::open(dir.path()).unwrap();
        assert!(db.recovery().findings().is_empty(), "{:?}", db.recovery().findings());
        let count = acked.lock().unwrap().len();
        assert_eq!((found, db.iter().count()), (count, count), "seed {seed}");
    }
}

#[test]
fn rule_8_while_space_is_short_callers_compact_one_at_a_time() {
    // Catches two compactions that share the space for one.
    let (_dir, fs, db) = hooked(|b| b.l0_trigger(100));
    for key in ["1", "6", "2", "7"] {
        put(&db, key, "", Durability::Buffered).unwrap();
        db.flush().unwrap();
    }
    // A flush finds no space once; the reserve finds none from then on.
    let (full, was_full) = (Arc::new(AtomicBool::new(true)), AtomicBool::new(false));
    let is_reserve = |event: &Event| event.is(Op::Create, "RESERVE");
    full_disk(&fs, &full, move |event| {
        is_reserve(event) || event.is(Op::Create, ".sst") && !was_full.swap(true, Ordering::SeqCst)
    });
    put(&db, "3", "", Durability::Buffered).unwrap();
    db.flush().unwrap();
    let (writers, most) = (Mutex::new(Vec::new()), Arc::new(AtomicUsize::new(0)));
    let seen = most.clone();
    full_disk(&fs, &full, move |event| {
        let this = thread::current().id();
        if event.is(Op::Create, ".sst") {
            writers.lock().unwrap().push(this);
            (0..1000).for_each(|_| thread::yield_now());
            seen.fetch_max(writers.lock().unwrap().len(), Ordering::SeqCst);
        } else if event.is(Op::Sync, ".sst") {
            writers.lock().unwrap().retain(|writer| *writer != this);
        }
        is_reserve(event)
    });
    thread::scope(|scope| {
        let half = scope.spawn(|| db.compact_range(.."5"));
        db.compact_range("5"..).unwrap();
        half.join().unwrap().unwrap();
    });
    assert_eq!(most.load(Ordering::SeqCst), 1);
}
