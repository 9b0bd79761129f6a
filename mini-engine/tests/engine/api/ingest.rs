//! Bulk loads of sorted entries.

use crate::support::*;

fn builder(path: &Path) -> mini_engine::Builder {
    Db::builder(path).table_file_bytes(16 << 10).memtable_bytes(64 << 10).l0_trigger(2).compression(Compression::None)
}

#[test]
fn a_load_goes_straight_to_the_lowest_level_visible_at_once_and_durable() {
    // Catches entries that go through the log and the memtable, a table of the load that becomes visible before another, and a lost load.
    let (dir, hook) = (TempDir::new().unwrap(), unmapped());
    let db = builder(dir.path()).file_system(hook.arc()).open().unwrap();
    db.insert("a", "before").unwrap();
    let before = db.snapshot();
    db.flush().unwrap();
    hook.take();
    let load = (0..3000).map(|n| {
        // A concurrent reader sees no entry of the load.
        assert!(n != 2999 || db.iter().count() == 1);
        (key(n), [n as u8; 40])
    });
    let seqno = db.ingest(load).unwrap();
    assert_eq!((db.snapshot().seqno(), entries(&db).len(), before.iter().count()), (seqno, 3001, 1));
    let events = hook.take();
    assert_eq!(count(&events, Op::Write, ".log"), 0, "{events:?}");
    let levels = db.metrics().levels;
    assert!(levels.last().unwrap().tables > 4 && levels[1..levels.len() - 1].iter().all(|level| level.tables == 0));
    assert!(levels.len() > 2, "{levels:?}");
    // Later writes get sequence numbers after those of the load, across a reopen too.
    db.insert(key(7), "after").unwrap();
    assert_eq!(db.snapshot().seqno(), seqno + 1);
    drop((before, db));
    let db = builder(dir.path()).open().unwrap();
    assert_eq!((entries(&db).len(), db.snapshot().seqno()), (3001, seqno + 1));
    assert_eq!(db.get(key(7)).unwrap().as_deref(), Some(&b"after"[..]));
    assert!(db.verify().unwrap().problems.is_empty() && db.recovery().findings().is_empty());
}

#[test]
fn a_load_that_is_not_sorted_is_refused_and_leaves_nothing() {
    // Catches a table with unsorted keys, which reads would miss, and leftover tables of a refused load.
    let dir = TempDir::new().unwrap();
    let db = builder(dir.path()).open().unwrap();
    db.insert("k", "kept").unwrap();
    db.flush().unwrap();
    let before = files(dir.path(), ".sst");
    let many = || (0..2000).map(|n| (key(n), vec![1; 40]));
    let long = ("x".repeat(MAX_KEY_LEN + 1), vec![]);
    for last in [(key(1999), vec![]), (key(5), vec![]), (String::new(), vec![]), long] {
        let error = db.ingest(many().chain([last])).unwrap_err();
        assert!(matches!(error, Error::InvalidArgument(_)), "{error}");
        assert_eq!((files(dir.path(), ".sst"), db.snapshot().seqno()), (before.clone(), 1));
    }
    let named = db.ingest([("b", ""), ("a", "")]).unwrap_err().to_string();
    assert!(named.contains("expected a key after \"b\", found \"a\""), "{named}");
    assert_eq!(db.ingest(Vec::<(&str, &str)>::new()).unwrap(), 1);
    db.insert("more", "").unwrap();
    assert_eq!(db.ingest([("", "empty key"), ("a", "")]).unwrap(), 3);
    assert_eq!(entries(&db).len(), 4);
}

#[test]
fn loads_and_writers_beside_each_other_lose_nothing() {
    // Catches a write between the flush and the load, and a writer that is not woken.
    let dir = TempDir::new().unwrap();
    let db = builder(dir.path()).open().unwrap();
    thread::scope(|scope| {
        for writer in 0..3u32 {
            let db = db.clone();
            scope.spawn(move || {
                for n in 0..400u32 {
                    db.insert(format!("own{writer}/{n:04}"), n.to_be_bytes()).unwrap();
                }
            });
        }
        for loader in 0..2u32 {
            let db = db.clone();
            scope.spawn(move || {
                for round in 0..6u32 {
                    db.ingest((0..300u32).map(|n| (format!("load{loader}/{round}/{n:04}"), n.to_be_bytes()))).unwrap();
                }
            });
        }
    });
    assert_eq!(entries(&db).len(), 3 * 400 + 2 * 6 * 300);
    drop(db);
    let db = builder(dir.path()).open().unwrap();
    assert_eq!(entries(&db).len(), 3 * 400 + 2 * 6 * 300);
    assert!(db.verify().unwrap().problems.is_empty());
}

#[test]
fn rule_7_a_failed_sync_of_a_load_makes_the_engine_read_only() {
    // Catches an engine that accepts writes after a load failed at a sync, although the disk can no longer be trusted.
    for (op, part) in [(Op::SyncDir, ""), (Op::Sync, ".sst")] {
        let (_dir, fs, db) = hooked(|b| b);
        fs.fail(op, part, ErrorKind::Other);
        let error = db.ingest([("a", "b")]).unwrap_err();
        assert!(matches!(error, Error::Io { op: "sync", .. }), "{error}");
        fs.clear();
        let refused = db.insert("later", "");
        assert!(matches!(refused, Err(Error::ReadOnly { .. })), "{op:?}: {refused:?}");
    }
}

#[test]
fn rule_16_a_key_is_there_while_it_is_loaded_anew() {
    // Catches a load whose sequence number is published only after a compaction may have used the load's tables.
    let builder = in_memory(&MemFs::default()).l0_trigger(1);
    let db = builder.l0_slowdown(900).l0_stop(1000).open().unwrap();
    db.insert("k", "0").unwrap();
    let done = AtomicBool::new(false);
    let missed = AtomicUsize::new(0);
    thread::scope(|scope| {
        for w in 0..8 {
            let (db, done) = (&db, &done);
            scope.spawn(move || {
                while !done.load(Ordering::SeqCst) {
                    db.insert(format!("w{w}"), "x").unwrap();
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    if db.get("k").unwrap().is_none() {
                        missed.fetch_add(1, Ordering::SeqCst);
                    }
                }
            });
        }
        for n in 0..200 {
            db.ingest([("k", n.to_string())]).unwrap();
        }
        done.store(true, Ordering::SeqCst);
    });
    assert_eq!(missed.load(Ordering::SeqCst), 0);
}
