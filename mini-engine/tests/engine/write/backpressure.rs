//! Level 0 stays bounded even when compactions fail, and the errors of writers state the reason.

use crate::support::*;

const STOP: u64 = 8;

fn small(builder: Builder) -> Builder {
    let builder = builder.memtable_bytes(4096).block_bytes(512).compression(Compression::None);
    builder.l0_trigger(2).l0_slowdown(1000).l0_stop(STOP as usize)
}

fn base_key(n: u64) -> String {
    format!("key{:04}", n * 7 % 400)
}

/// A database with all its data in one run, and its files.
fn base(dir: &Path) -> Vec<PathBuf> {
    let db = small(Db::builder(dir)).open().unwrap();
    for n in 0..400 {
        db.insert(base_key(n), "base").unwrap();
    }
    db.compact_range(..).unwrap();
    db.close().unwrap();
    paths(dir, ".sst")
}

/// Writes `rounds` times as many new keys as the base has, spread over its range, until a write fails. Returns the acknowledged writes, and the
/// error.
fn overwrite(db: &Db, rounds: u64) -> (u64, Option<Error>) {
    for n in 0..rounds * 400 {
        if let Err(error) = db.insert(new_key(n), n.to_string()) {
            return (n, Some(error));
        }
        assert!(level_0(db) <= STOP + 1, "{:?}", db.metrics().levels);
    }
    (rounds * 400, None)
}

fn new_key(n: u64) -> String {
    format!("{}/{n}", base_key(n))
}

fn insert_until_writes_go_on(db: &Db) {
    wait_while(|| {
        let inserted = db.insert("later", "");
        inserted.inspect_err(|error| assert!(matches!(error, Error::Stalled { .. }), "{error}")).is_err()
    });
}

/// Checks that all acknowledged writes of [`overwrite`] are stored.
fn check(db: &Db, written: u64) {
    for n in 0..written {
        assert_eq!(db.get(new_key(n)).unwrap().as_deref(), Some(n.to_string().as_bytes()));
    }
}

#[test]
fn a_damaged_table_below_stops_writers_with_its_name_until_it_is_restored_and_level_0_stays_small() {
    // Catches back-pressure that one flipped bit turns off, an endless wait, an error without its reason, and a repaired table that still
    // counts as damaged.
    for policy in POLICIES {
        let dir = TempDir::new().unwrap();
        let damaged = base(dir.path()).remove(0);
        let sound = flip(&damaged, 2);
        let db = small(Db::builder(dir.path())).compaction(policy).open().unwrap();
        let (written, error) = overwrite(&db, 100);
        let metrics = db.metrics();
        assert_eq!(metrics.damaged_files, std::slice::from_ref(&damaged), "{policy:?}");
        // Compactions within level 0, or above the damaged run, continued.
        assert!(written > 1000 && metrics.compactions > 3, "{policy:?}: {written} written, {metrics:?}");
        let has_tiers = [Compaction::Tiered, Compaction::LazyLeveled].contains(&policy);
        let hint = "if it goes on above a damaged table, it belongs to those with tiers";
        assert!(error.is_some() || has_tiers, "{policy:?}: writers did not stop; {hint}");
        if let Some(error) = error {
            let Error::Stalled { tables, cause } = &error else { panic!("{policy:?}: {error}") };
            assert!(*tables as u64 >= STOP && error.to_string().contains(&damaged.display().to_string()));
            assert!(matches!(&**cause, Error::Corruption { file, .. } if *file == damaged), "{cause}");
            assert!(matches!(db.flush(), Err(Error::Stalled { .. })));
            assert!(matches!(db.wait_for_compactions(), Err(Error::Corruption { .. })));
        }
        // Repairs the file in place, because it is open.
        fs::write(&damaged, &sound).unwrap();
        insert_until_writes_go_on(&db);
        check(&db, written);
        // A successful compaction of a caller also shows that the table can be read again.
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        db.wait_for_compactions().unwrap();
        assert!(overwrite(&db, 2).1.is_none() && db.metrics().damaged_files.is_empty(), "{policy:?}");
    }
}

#[test]
fn compactions_that_fail_for_another_reason_stop_writers_until_they_succeed() {
    // Catches writers that continue without limit while all compactions fail, and writers that wait for ever.
    let (_dir, fs, db) = hooked(small);
    fs.answer_where(Answer::Fail(ErrorKind::PermissionDenied), |event| {
        event.is(Op::Create, ".sst") && on_compaction_thread()
    });
    let (written, error) = overwrite(&db, 200);
    let Some(Error::Stalled { cause, .. }) = &error else { panic!("{error:?}") };
    assert!(matches!(&**cause, Error::Io { op: "create", .. }), "{cause}");
    fs.clear();
    insert_until_writes_go_on(&db);
    check(&db, written);
    assert!(overwrite(&db, 2).1.is_none());
}

#[test]
fn writers_flushes_and_loads_wait_for_compactions_that_fall_behind() {
    // Catches a level 0 that grows without limit during a slow compaction, so that a read searches many tables. The writer inserts, or bypasses
    // the wait by a loop of flushes or of loads.
    type Write = fn(&Db, u64);
    let ways: [(&str, Write); 3] = [
        ("writers", |db, n| db.insert(new_key(n), [7; 400]).unwrap()),
        ("flushes", |db, n| {
            db.insert(new_key(n), "").unwrap();
            db.flush().unwrap();
        }),
        ("loads", |db, n| assert!(db.ingest([("a", n.to_be_bytes()), ("z", n.to_be_bytes())]).unwrap() > n)),
    ];
    for (way, write) in ways {
        // The queue holds more memtables than are filled here, so no writer ever waits for it.
        let (_dir, fs, db) = hooked(|b| small(b).immutable_memtables(64));
        let (_arrivals, go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_compaction_thread());
        for n in 0..STOP {
            db.insert(new_key(n), "").unwrap();
            db.flush().unwrap();
        }
        assert_eq!((level_0(&db), db.metrics().stalls), (STOP, 0), "{way}");
        thread::scope(|scope| {
            let writer = scope.spawn(|| (STOP..300).for_each(|n| write(&db, n)));
            wait_while(|| db.metrics().stalls == 0 && !writer.is_finished());
            assert_eq!((level_0(&db), db.metrics().stalls), (STOP, 1), "{way}");
            drop(go);
        });
        let expected = if way == "loads" { STOP as usize + 2 } else { 300 };
        assert_eq!(db.iter().map(Result::unwrap).count(), expected, "{way}");
        assert!(db.metrics().compactions > 0, "{way}");
    }
}

#[test]
fn a_flush_that_waits_for_a_compaction_without_space_says_so() {
    // Catches a `flush` or a `close` that waits until the disk has space.
    let (dir, fs, db) = hooked(small);
    fs.answer_where(Answer::Fail(ErrorKind::StorageFull), |event| {
        event.is(Op::Write, ".sst") && on_compaction_thread()
    });
    let mut n = 0;
    let error = loop {
        // Inserts are refused while a compaction uses the space of the reserve.
        while let Err(error) = db.insert(new_key(n), n.to_string()) {
            assert!(is_full(&error), "{error}");
        }
        n += 1;
        if let Err(error) = db.flush() {
            break error;
        }
        assert!(n < 1000, "{:?}", db.metrics().levels);
    };
    // A flush while the reserve is released may have exceeded the limit.
    assert!(is_full(&error) && level_0(&db) >= STOP, "{error}");
    // One more memtable may be left in the log.
    assert!(db.close().err().is_none_or(|error| is_full(&error)));
    let db = small(Db::builder(dir.path())).open().unwrap();
    check(&db, n);
    db.wait_for_compactions().unwrap();
    db.flush().unwrap();
}

#[test]
fn level_0_is_compacted_within_while_an_older_compaction_of_it_is_held() {
    // Catches one long compaction for which all newer tables of level 0 wait.
    for (policy, threads) in POLICIES.into_iter().flat_map(|policy| [(policy, 1), (policy, 2)]) {
        let (dir, fs) = (TempDir::new().unwrap(), unmapped());
        base(dir.path());
        // The database is dropped after the hold on its compactions is released.
        let db;
        let held = Arc::new(AtomicBool::new(false));
        let (arrivals, go) = fs.hold_where(Answer::Go, move |event| {
            event.is(Op::Create, ".sst") && on_compaction_thread() && !held.swap(true, Ordering::SeqCst)
        });
        db = small(Db::builder(dir.path()))
            .compaction(policy)
            .compaction_threads(threads)
            .file_system(fs.arc())
            .open()
            .unwrap();
        let mut n = 0;
        let mut put = |db: &Db| {
            db.insert(new_key(n), n.to_string()).unwrap();
            db.flush().unwrap();
            n += 1;
        };
        (0..3).for_each(|_| put(&db));
        arrivals.recv().unwrap();
        for _ in 0..50 {
            put(&db);
            assert!(level_0(&db) <= STOP + 1, "{policy:?}: {:?}", db.metrics().levels);
        }
        assert!(db.metrics().compactions > 5, "{policy:?}");
        drop(go);
        db.wait_for_compactions().unwrap();
        check(&db, n);
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn writers_wait_for_a_compaction_that_is_in_the_way_of_level_0() {
    // Catches writers that are refused for damage elsewhere while a compaction of the tables that level 0 overlaps is running.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let open =
        || small(Db::builder(dir.path())).l0_stop(6).table_file_bytes(4096).file_system(fs.arc()).open().unwrap();
    let db = open();
    db.ingest((0..40).map(|n| (format!("a{n:03}"), [1; 60]))).unwrap();
    // A version that a snapshot has retained can be dropped.
    let snapshot = db.snapshot();
    db.insert("a000", "again").unwrap();
    db.compact_range("a000"..="a039").unwrap();
    drop(snapshot);
    db.ingest((0..40).map(|n| (format!("z{n:03}"), [1; 60]))).unwrap();
    db.close().unwrap();
    let [_, damaged] = &paths(dir.path(), ".sst")[..] else { panic!("{:?}", files(dir.path(), ".sst")) };
    flip(damaged, 2);
    let held = Arc::new(AtomicBool::new(false));
    let (arrivals, go) = fs.hold_where(Answer::Go, move |event| {
        let is_callers = thread::current().name() == Some("caller");
        event.is(Op::Create, ".sst") && is_callers && !held.swap(true, Ordering::SeqCst)
    });
    let db = open();
    // A compaction of level 0 finds the damage.
    for n in 0..3 {
        db.insert("z000", format!("{n}")).unwrap();
        db.insert("z039", format!("{n}")).unwrap();
        db.flush().unwrap();
    }
    wait_while(|| db.metrics().damaged_files.is_empty());
    let caller = {
        let db = db.clone();
        std::thread::Builder::new().name("caller".into()).spawn(move || db.compact_range("a000"..="a039")).unwrap()
    };
    arrivals.recv().unwrap();
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..12u32 {
                let [few, many] = [n.to_be_bytes().to_vec(), vec![n as u8; 24_000]];
                let batch = batch([("a000", &few), ("a020", &many), ("a039", &few)]);
                db.write(batch, Durability::Buffered)?;
                db.flush()?;
            }
            Ok::<(), Error>(())
        });
        wait_while(|| db.metrics().stalls == 0 && !writer.is_finished());
        drop(go);
        writer.join().unwrap().unwrap();
    });
    caller.join().unwrap().unwrap();
}
