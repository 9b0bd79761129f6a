//! Readers beside a writer: what they show, what they cost, and that neither side disturbs the other. `tests/crash/readers.rs` has the states between
//! two operations of the writer.

use crate::support::*;

fn reader(dir: &Path) -> Db {
    Db::builder(dir).reader().open().unwrap()
}

#[test]
fn a_hundred_readers_beside_a_busy_writer_see_every_acknowledged_write_and_no_part_of_a_batch() {
    // Catches a reader that takes the end of a log that is being flushed or recycled for the end of the writes, one that never catches up, and a read of
    // a new view at an old number, for which its tables may lack the key.
    const BATCHES: u64 = 4000;
    const THREADS: usize = 4;
    let (dir, db) = opened(|b| b.memtable_bytes(16 << 10).l0_trigger(2).block_bytes(512).table_file_bytes(16 << 10));
    let number = |db: &Db| db.get(key(0)).unwrap().map_or(0, |n| u64::from_le_bytes(n[..].try_into().unwrap()));
    let (acknowledged, begun) = (AtomicU64::new(0), AtomicU64::new(0));
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in 1..=BATCHES {
                begun.store(n, Ordering::SeqCst);
                db.write(
                    batch([(key(n), n), (key(0), n)].map(|(key, n)| (key, n.to_le_bytes()))),
                    Durability::Buffered,
                )
                .unwrap();
                acknowledged.store(n, Ordering::SeqCst);
            }
        });
        // A reader that moves on while it is read.
        let shared = reader(dir.path());
        let (moved, read) = (shared.clone(), shared);
        scope.spawn(move || while moved.refresh().unwrap() < 2 * BATCHES {});
        scope.spawn(move || {
            let mut last = 0;
            while last < BATCHES {
                let seen = number(&read);
                assert!(seen >= last, "{seen} after {last}");
                last = seen;
            }
        });
        for _ in 0..THREADS {
            scope.spawn(|| {
                let readers: Vec<Db> = (0..100 / THREADS).map(|_| reader(dir.path())).collect();
                let mut last = 0;
                while last < BATCHES {
                    for reader in &readers {
                        let least = acknowledged.load(Ordering::SeqCst);
                        let seqno = reader.refresh().unwrap();
                        let seen = number(reader);
                        assert!(
                            (least..=begun.load(Ordering::SeqCst)).contains(&seen),
                            "{seen}, {least} were acknowledged"
                        );
                        assert_eq!(seqno, 2 * seen);
                        last = least;
                    }
                    let snapshot = readers[0].snapshot();
                    let keys = snapshot.iter().map(Result::unwrap).count() as u64;
                    assert_eq!(keys, snapshot.seqno() / 2 + u64::from(snapshot.seqno() > 0));
                }
            });
        }
    });
    assert!(db.metrics().flushes > 10 && db.metrics().compactions > 0);
}

#[test]
fn a_refresh_costs_the_same_whatever_was_written_before() {
    // Catches a refresh that reads a log from its start, or tables and manifest that have not changed.
    let reads = |keys: u64| {
        let (dir, db) = fresh();
        fill(&db, 0..keys, [7; 100]);
        db.flush().unwrap();
        fill(&db, 0..keys, [8; 100]);
        let fs = FaultFs::of_system();
        let reader = Db::builder(dir.path()).file_system(fs.arc()).reader().open().unwrap();
        let cost = |keys| {
            fill(&db, 0..keys, [9; 100]);
            let before = fs.reads();
            reader.refresh().unwrap();
            assert_eq!(reader.get(key(0)).unwrap().as_deref(), Some(&[if keys > 0 { 9 } else { 8 }; 100][..]));
            fs.reads() - before
        };
        [cost(0), cost(1), cost(2000)]
    };
    let [few, many] = [10, 20_000].map(reads);
    assert_eq!(few[..2], many[..2]);
    assert!(many[0] <= 20 && many[2] <= 40, "{many:?}");
}

#[test]
fn a_reader_keeps_its_moment_whatever_the_writer_removes_and_moves_on_when_it_is_asked() {
    // Catches a snapshot, an iterator or a copy that needs a file which the writer has removed, and a reader that shows two moments at once.
    let (dir, db) = opened(|b| b.memtable_bytes(64 << 10).block_bytes(512));
    let users = db.keyspace("users").unwrap();
    fill(&db, 0..500, "old");
    db.flush().unwrap();
    fill(&db, 500..600, "old");
    db.remove_range(key(10)..key(20)).unwrap();
    users.insert("ada", "1").unwrap();
    let reader = reader(dir.path());
    let shown = entries(&reader);
    assert_eq!(shown.len(), 590);
    let (of_users, snapshot, mut iter) = (reader.keyspace("users").unwrap(), reader.snapshot(), reader.iter());
    assert_eq!(iter.by_ref().take(3).count(), 3);
    fill(&db, 0..600, "new");
    db.drop_keyspace("users").unwrap();
    db.keyspace("others").unwrap().insert("a", "b").unwrap();
    db.compact().unwrap();
    fill(&db, 600..700, "new");
    for _ in 0..2 {
        assert_eq!(pairs(snapshot.iter()).into_iter().collect::<Map>(), shown);
        assert_eq!(snapshot.get(key(0)).unwrap().as_deref(), Some(&b"old"[..]));
        assert_eq!(snapshot.get_many([key(0), key(15)]).unwrap()[1], None);
        if of_users.get("ada").is_ok() {
            assert_eq!(entries(&reader), shown);
            assert_eq!(reader.keyspaces(), ["users"]);
            reader.checkpoint(dir.path().join("copy")).unwrap();
            assert_eq!(reader.refresh().unwrap(), db.snapshot().seqno());
        }
    }
    assert_eq!(iter.count(), 587);
    assert!(matches!(of_users.get("ada"), Err(Error::NoKeyspace { .. })));
    assert_eq!((entries(&reader), reader.keyspaces()), (entries(&db), db.keyspaces()));
    assert_eq!(reader.keyspace("others").unwrap().get("a").unwrap().as_deref(), Some(&b"b"[..]));
    assert_sound(&reader);
    let copy = Db::open(dir.path().join("copy")).unwrap();
    assert_eq!(entries(&copy), shown);
    assert_eq!(copy.keyspace("users").unwrap().get("ada").unwrap().as_deref(), Some(&b"1"[..]));
    assert_sound(&copy);
    assert!(matches!(reader.insert("a", "b"), Err(Error::ReadOnly { .. })));
    let other = reader.clone();
    reader.close().unwrap();
    assert!(matches!(other.refresh(), Err(Error::Closed)));
    assert_eq!(pairs(snapshot.iter()).into_iter().collect::<Map>(), shown);
}

#[test]
fn a_reader_takes_no_part_in_the_lock_and_follows_one_writer_after_the_other() {
    // Catches a reader that keeps a writer out, and one that stays with the files of a writer that has ended.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    let reader = reader(dir.path());
    assert!(matches!(Db::open(dir.path()), Err(Error::Locked { .. })));
    db.close().unwrap();
    for n in 0..3u8 {
        let db = Db::open(dir.path()).unwrap();
        db.insert("a", [n]).unwrap();
        reader.refresh().unwrap();
        assert_eq!(reader.get("a").unwrap().as_deref(), Some(&[n][..]));
        if n == 1 {
            db.close().unwrap();
        }
    }
    let exclusive = Db::builder(dir.path()).read_only(true).open().unwrap();
    assert_eq!(reader.refresh().unwrap(), exclusive.recovery().last_seqno);
}

#[test]
fn an_entry_that_expires_is_judged_by_the_clock_of_the_writer() {
    // Catches a reader whose clock is behind that of a compaction, so that a key seems absent that it had shown as expiring later.
    let clock = Clock::at(second(100));
    let (dir, db) = opened(|b| b.time_source(clock.source()));
    db.insert("always", "").unwrap();
    let late = Clock::at(second(50));
    let reader = Db::builder(dir.path()).time_source(late.source()).reader().open().unwrap();
    db.insert_with_expiry("soon", "", second(110)).unwrap();
    reader.refresh().unwrap();
    assert!(reader.contains_key("soon").unwrap());
    clock.set(second(120));
    db.compact().unwrap();
    reader.refresh().unwrap();
    assert!(!reader.contains_key("soon").unwrap() && reader.now() >= second(120));
}

#[test]
fn a_write_that_fails_on_a_full_disk_is_gone_for_readers_too_once_another_one_has_its_place() {
    // Catches a reader that keeps a frame which the writer has cut off, and then lacks the write with the same number.
    let (dir, fs, db) = hooked(|b| b);
    put(&db, "first", "1", Durability::Synced).unwrap();
    let reader = reader(dir.path());
    let (beside, path, seen) = (reader.clone(), dir.path().to_path_buf(), Arc::new(AtomicU64::new(0)));
    let (noted, writes) = (seen.clone(), AtomicU64::new(0));
    fs.set(move |event| match event.op {
        // The frame is written, but not the zeros behind it.
        Op::Write if event.path.starts_with(&path) && writes.fetch_add(1, Ordering::SeqCst) == 0 => Answer::Short(200),
        Op::Write => Answer::Fail(ErrorKind::StorageFull),
        Op::Truncate if noted.load(Ordering::SeqCst) == 0 => {
            noted.store(beside.refresh().unwrap(), Ordering::SeqCst);
            Answer::Go
        }
        _ => Answer::Go,
    });
    assert!(is_full(&db.insert("failed", "1").unwrap_err()));
    assert_eq!(seen.load(Ordering::SeqCst), 2, "the reader has seen it");
    fs.clear();
    // Both logs are still needed.
    let (_arrivals, go) = fs.hold(Op::Create, ".sst", Answer::Go);
    db.insert("other", "2").unwrap();
    db.insert("third", "3").unwrap();
    assert_eq!(reader.refresh().unwrap(), 3);
    assert_eq!(entries(&reader), entries(&db));
    drop(go);
}

#[test]
fn a_reader_says_why_it_cannot_open() {
    // Catches a damaged log that is shown as if it ended before the damage, and errors without advice.
    let (dir, db) = fresh();
    for key in ["a", "b", "c"] {
        put(&db, key, "1", Durability::Synced).unwrap();
    }
    let builder = || Db::builder(dir.path()).reader();
    let error = builder().recovery_mode(RecoveryMode::Quarantine).open().unwrap_err();
    assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
    fill(&db, 0..400, [7; 1000]);
    let error = builder().replay_memory_bytes(300 << 10).open().unwrap_err();
    assert!(error.to_string().contains("raise replay_memory_bytes"), "{error}");
    let log = dir.path().join(&files(dir.path(), ".log")[0]);
    flip(&log, 70);
    let error = builder().open().unwrap_err();
    assert!(matches!(&error, Error::Corruption { file, .. } if *file == log), "{error}");
    let error = Db::builder(dir.path().join("nothing")).reader().open().unwrap_err();
    assert!(matches!(error, Error::NotADatabase { .. }), "{error}");
}

#[test]
fn a_copy_after_a_failed_refresh_has_the_moment_that_is_shown() {
    // Catches entries and range removals of the failed refresh that are copied, or hide the entries of the moment.
    let (dir, db) = fresh();
    fill(&db, 0..100, "old");
    db.remove_range(key(90)..key(95)).unwrap();
    let reader = Db::builder(dir.path()).replay_memory_bytes(1 << 20).reader().open().unwrap();
    let shown = entries(&reader);
    fill(&db, 0..50, "new");
    db.remove_range(key(50)..key(96)).unwrap();
    fill(&db, 200..1400, [7; 1000]);
    for _ in 0..2 {
        let error = reader.refresh().unwrap_err();
        assert!(matches!(error, Error::Full(_)), "{error}");
        assert_eq!((entries(&reader), reader.snapshot().seqno()), (shown.clone(), 101));
    }
    reader.checkpoint(dir.path().join("copy")).unwrap();
    let copy = Db::open(dir.path().join("copy")).unwrap();
    assert_eq!((entries(&copy), copy.snapshot().seqno()), (shown, 101));
    copy.insert("later", "1").unwrap();
    copy.flush().unwrap();
    assert_sound(&copy);
    // The next flush of the writer makes the logs obsolete.
    db.flush().unwrap();
    reader.refresh().unwrap();
    assert_eq!(entries(&reader), entries(&db));
}

#[test]
fn a_moment_stays_though_writes_that_it_shows_were_lost_and_their_numbers_are_used_again() {
    // Catches a reader that stays at the number of the lost writes: it would show the new ones before they are whole, and its snapshots would change.
    // Also catches a snapshot that steps over keys which are removed in the present history, and not in its own.
    let (dir, db) = fresh();
    fill(&db, 0..2, "kept");
    fill(&db, 200..260, "removed");
    (200..260).for_each(|n| db.remove(key(n)).unwrap());
    let log = the_file(dir.path(), "000001.log");
    let before = fs::read(&log).unwrap();
    db.write(batch((0..100).chain(230..260).map(|n| (key(n), "lost"))), Durability::Buffered).unwrap();
    let reader = reader(dir.path());
    let lost = (reader.snapshot(), entries(&reader));
    drop(db);
    fs::write(&log, before).unwrap();
    let db = Db::open(dir.path()).unwrap();
    db.insert(key(2), "new").unwrap();
    assert_eq!(reader.refresh().unwrap(), 123);
    let (shown, snapshot) = (entries(&reader), reader.snapshot());
    assert_eq!((shown.len(), snapshot.seqno()), (3, 123));
    for n in 3..5 {
        db.write(batch((0..60).map(|key_n| (key(key_n), [n]))), Durability::Buffered).unwrap();
        assert_eq!(reader.refresh().unwrap(), db.snapshot().seqno());
        assert_eq!(entries(&reader), entries(&db));
        assert_eq!(pairs(snapshot.iter()).into_iter().collect::<Map>(), shown);
        assert_eq!(pairs(lost.0.iter()).into_iter().collect::<Map>(), lost.1);
    }
}

#[test]
fn the_log_of_a_failed_open_is_not_taken_for_the_next_one_with_its_number() {
    // Catches a reader that holds the file of the failed open, which is empty, and so misses all writes to the log.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    drop(db);
    let (reader, fs) = (reader(dir.path()), unmapped());
    let (beside, held) = (reader.clone(), Arc::new(Mutex::new(Vec::new())));
    let logs = (held.clone(), dir.path().to_owned());
    fs.set(move |event| {
        if !event.is(Op::Create, "MANIFEST") {
            return Answer::Go;
        }
        beside.refresh().unwrap();
        *logs.0.lock().unwrap() = files(&logs.1, ".log");
        Answer::Fail(ErrorKind::StorageFull)
    });
    let open = || Db::builder(dir.path()).file_system(fs.arc()).open();
    assert!(is_full(&open().unwrap_err()));
    fs.clear();
    let db = open().unwrap();
    let again = held.lock().unwrap().iter().any(|log| files(dir.path(), ".log").contains(log));
    assert!(again, "a number that is used again");
    db.insert("b", "2").unwrap();
    assert_eq!(reader.refresh().unwrap(), db.snapshot().seqno());
    assert_eq!(keys(&reader), ["a", "b"]);
}

#[test]
fn a_refresh_reports_a_synced_write_that_is_damaged_and_keeps_its_moment() {
    // Catches a reader that silently stays where the damage begins: in an older log at once, in the newest one when it has found nothing twice.
    for is_older in [true, false] {
        let (dir, fs, db) = hooked(|b| b);
        db.insert("a", "1").unwrap();
        let (reader, log) = (reader(dir.path()), the_file(dir.path(), "000001.log"));
        let before = fs::read(&log).unwrap();
        for key in ["b", "c", "d"] {
            put(&db, key, "1", Durability::Synced).unwrap();
        }
        if is_older {
            fs.refuse_files(Some("sst"));
            db.flush().unwrap_err();
            wait_while(|| put(&db, "e", "1", Durability::Synced).is_err());
        }
        let after = fs::read(&log).unwrap();
        flip(&log, (0..after.len()).find(|&at| before.get(at) != Some(&after[at])).unwrap());
        let found: Vec<bool> =
            (0..4).map(|_| matches!(reader.refresh(), Err(Error::Corruption { file, .. }) if file == log)).collect();
        assert_eq!((found, keys(&reader)), (vec![is_older, true, true, true], vec!["a".to_owned()]));
    }
}

#[test]
fn a_read_that_fails_once_fails_no_open() {
    // Catches a manifest that is read once: an edit that is appended meanwhile can look damaged.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    db.insert("b", "2").unwrap();
    let fs = FaultFs::of_system();
    let open = || Db::builder(dir.path()).file_system(fs.arc()).reader().open();
    open().unwrap();
    let count = fs.reads();
    // The first two look for the directory and list it.
    for at in 2..count {
        fs.fail_read(fs.reads() + at, Fault::Device, Repeat::Once);
        let reader = open().unwrap_or_else(|error| panic!("read {at} of {count}: {error}"));
        assert_eq!(keys(&reader), ["a", "b"]);
    }
}

#[test]
fn a_reader_that_may_not_open_all_tables_says_so_and_keeps_its_moment() {
    // Catches an error without the numbers and the remedy, and a reader that shows a moment with some of its tables.
    let (dir, db) = opened(|b| b.l0_trigger(10));
    let flush = |n| {
        db.insert(key(n), "1").unwrap();
        db.flush().unwrap();
    };
    (0..2).for_each(flush);
    let open = || Db::builder(dir.path()).max_open_files(2).reader().open();
    let reader = open().unwrap();
    flush(2);
    for error in [reader.refresh().unwrap_err(), open().unwrap_err()] {
        let shown = error.to_string();
        assert!(
            shown.contains("each of its 3 tables, and may have 2: raise") && shown.contains("max_open_files"),
            "{shown}"
        );
    }
    assert_eq!(keys(&reader).len(), 2);
    db.compact().unwrap();
    reader.refresh().unwrap();
    assert_eq!(entries(&reader), entries(&db));
}
