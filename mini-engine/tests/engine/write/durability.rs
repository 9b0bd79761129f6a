//! The durability rules on the order of operations, checked on a record of the operations.

use crate::support::*;

fn open(dir: &TempDir, fs: &FaultFs) -> Db {
    Db::builder(dir.path()).file_system(fs.arc()).memtable_bytes(64 << 10).open().unwrap()
}

#[test]
fn rule_4_a_new_file_is_synced_with_its_name_before_anything_durable_refers_to_it() {
    // Catches a pointer or an edit that survives a power cut when the file that it names does not.
    let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    let creation = fs.take();
    // CURRENT names the manifest, which names the log. Both are durable before CURRENT is made.
    let named = [(Op::Sync, ".log"), (Op::Sync, "MANIFEST"), (Op::SyncDir, "")];
    let current = [(Op::Sync, "CURRENT.tmp"), (Op::Rename, "CURRENT.tmp"), (Op::SyncDir, "")];
    let steps = in_order(&creation, &[named, current].concat());
    assert_eq!(position(&creation, 0, Op::Rename, ""), steps[4]);
    assert_eq!(
        (count(&creation[steps[0] + 1..], Op::Write, ".log"), count(&creation[steps[1] + 1..], Op::Write, "MANIFEST")),
        (0, 0)
    );

    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    let flush = fs.take();
    let edit = position(&flush, 0, Op::Write, "MANIFEST");
    // The new log is durable before its first frame, and before the edit that makes replay start from it; the table is durable before its edit.
    assert!(in_order(&flush, &[(Op::Create, ".log"), (Op::Sync, ".log"), (Op::SyncDir, "")])[2] < edit);
    let table = in_order(&flush, &[(Op::Sync, ".sst"), (Op::SyncDir, "")]);
    assert!(table[1] < edit && count(&flush[table[0]..], Op::Write, ".sst") == 0);
}

#[test]
fn rule_5_log_n_is_synced_before_log_n_plus_1_acknowledges_a_sync() {
    // Catches a synced write that survives a power cut although earlier writes, in the previous log, do not; and a persist that syncs only the active
    // log, which has nothing to sync.
    let write: fn(&Db) = |db| _ = put(db, "b", "value", Durability::Synced).unwrap();
    let persist: fn(&Db) = |db| db.persist(Durability::Synced).unwrap();
    for (is_write, sync) in [(true, write), (false, persist)] {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
        // No flush finishes, so that the first log stays needed.
        fs.fail(Op::Create, ".sst", ErrorKind::StorageFull);
        db.insert("a", "1").unwrap();
        let old = files(dir.path(), ".log").pop().unwrap();
        db.flush().unwrap_err();
        let new = files(dir.path(), ".log").pop().unwrap();
        assert_ne!(old, new);
        fs.take();
        sync(&db);
        let events = fs.take();
        assert_eq!(count(&events, Op::Sync, &old), 1);
        let synced = position(&events, 0, Op::Sync, &old);
        assert!(!is_write || synced < position(&events, 0, Op::Sync, &new), "{events:?}");
        // The previous log is synced only once.
        put(&db, "c", "value", Durability::Synced).unwrap();
        assert_eq!(count(&fs.take(), Op::Sync, &old), 0);
    }
}

#[test]
fn rule_5_a_log_is_needed_until_the_edit_that_replaces_it_is_durable() {
    // Catches a log that counts as obsolete once its table exists: a power cut before the edit is durable brings the log back, and a synced write
    // of the next log would follow unsynced writes.
    for step in [Op::Write, Op::Sync] {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
        db.insert("a", "1").unwrap();
        let old = files(dir.path(), ".log").pop().unwrap();
        let (arrivals, go) = fs.hold(step, "MANIFEST", Answer::Go);
        thread::scope(|scope| {
            let flush = scope.spawn(|| db.flush());
            arrivals.recv().unwrap();
            let new = files(dir.path(), ".log").pop().unwrap();
            assert_ne!(old, new);
            fs.take();
            put(&db, "b", "value", Durability::Synced).unwrap();
            let events = fs.take();
            drop(go);
            assert!(position(&events, 0, Op::Sync, &old) < position(&events, 0, Op::Sync, &new), "{events:?}");
            flush.join().unwrap().unwrap();
        });
    }
}

#[test]
fn rule_6_table_directory_manifest_view_and_only_then_the_log_is_unlinked() {
    // Catches a log that is removed before the table that replaces it is durable, or before readers have the table.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    db.insert("a", "1").unwrap();
    let log = files(dir.path(), ".log").pop().unwrap();
    // The data that a reader sees at the unlinking.
    let (sender, installed) = mpsc::channel();
    let reader = Mutex::new(Some((db.clone(), sender)));
    let name = log.clone();
    fs.set(move |event| {
        if event.is(Op::Remove, &name)
            && let Some((db, sender)) = reader.lock().unwrap().take()
        {
            sender.send((db.metrics().levels[0].tables, db.get("a").unwrap().is_some())).unwrap();
        }
        Answer::Go
    });
    fs.take();
    db.flush().unwrap();
    assert_eq!(installed.recv().unwrap(), (1, true));
    // The log is unlinked after `flush` returns, so this waits.
    db.close().unwrap();
    let events = fs.take();
    let edit = [(Op::Write, "MANIFEST"), (Op::Sync, "MANIFEST"), (Op::Remove, &*log)];
    let steps = in_order(&events, &[&[(Op::Sync, ".sst"), (Op::SyncDir, "")], &edit[..]].concat());
    assert_eq!(position(&events, 0, Op::Write, "MANIFEST"), steps[2]);
    assert_eq!(position(&events, 0, Op::Remove, &log), steps[4]);
}

#[test]
fn rule_6_inputs_of_a_compaction_are_unlinked_after_its_edit_is_durable() {
    // Catches inputs of a compaction that are removed while a crash would still restore the version that names them.
    let (_dir, fs, db) = hooked(|b| b.l0_trigger(1));
    let (sender, removed) = mpsc::channel();
    fs.set(move |event| {
        if event.is(Op::Remove, ".sst") {
            sender.send(event.name().to_owned()).unwrap();
        }
        Answer::Go
    });
    for key in ["a", "b"] {
        db.insert(key, "1").unwrap();
        db.flush().unwrap();
    }
    let inputs = [removed.recv().unwrap(), removed.recv().unwrap()];
    drop(db);
    let events = fs.take();
    let output = events.iter().rfind(|event| event.is(Op::Create, ".sst")).unwrap().name().to_owned();
    assert!(!inputs.contains(&output));
    let steps = [(Op::Sync, &*output), (Op::SyncDir, ""), (Op::Write, "MANIFEST"), (Op::Sync, "MANIFEST")];
    let durable = in_order(&events, &steps)[3];
    assert!(inputs.iter().all(|input| durable < position(&events, 0, Op::Remove, input)));
}

#[test]
fn rule_7_after_a_failed_append_nothing_is_written_and_a_reopen_tells_the_truth() {
    // Catches a log that continues behind a gap, and a refused write that is visible. The cases are
    // a failed write, and a write without space whose partial frame cannot be cut off.
    for (kind, cut_fails) in [
        (ErrorKind::Other, None),
        (ErrorKind::StorageFull, Some(Op::Truncate)),
        (ErrorKind::StorageFull, Some(Op::Sync)),
    ] {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
        put(&db, "before", "value", Durability::Buffered).unwrap();
        fs.set(move |event| match event.op {
            Op::Write => Answer::Fail(kind),
            op if Some(op) == cut_fails => Answer::Fail(ErrorKind::Other),
            _ => Answer::Go,
        });
        assert!(matches!(put(&db, "failed", "value", Durability::Buffered), Err(Error::Io { .. })));
        fs.clear();
        fs.take();
        assert!(matches!(put(&db, "after", "value", Durability::Buffered), Err(Error::ReadOnly { .. })));
        assert!(matches!(db.persist(Durability::Synced), Err(Error::ReadOnly { .. })));
        assert!(matches!(db.flush(), Err(Error::ReadOnly { .. })));
        assert_eq!(fs.take(), []);
        // Reads continue, and show no refused write.
        assert!(db.contains_key("before").unwrap() && !db.contains_key("failed").unwrap());
        assert!(matches!(db.close(), Err(Error::ReadOnly { .. })));
        let db = open(&dir, &fs);
        let keys: Vec<_> = db.iter().map(|entry| entry.unwrap().0.to_vec()).collect();
        assert_eq!(keys, [b"before".to_vec()]);
    }
}

#[test]
fn rule_7_a_failed_sync_reaches_every_waiting_writer_and_is_never_retried() {
    // Catches a second sync that succeeds because the kernel has marked the pages clean, so that lost data is acknowledged.
    let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    let syncs = Arc::new(AtomicUsize::new(0));
    let counted = syncs.clone();
    fs.set(move |event| {
        if !event.is(Op::Sync, ".log") {
            return Answer::Go;
        }
        // Only the first sync fails, so that a retry would succeed and show.
        if counted.fetch_add(1, Ordering::SeqCst) == 0 { Answer::Fail(ErrorKind::Other) } else { Answer::Go }
    });
    let results: Vec<Result<u64, Error>> = thread::scope(|scope| {
        let writers: Vec<_> = (0..8).map(|n| (n, db.clone())).collect();
        let writers: Vec<_> = writers
            .into_iter()
            .map(|(n, db)| scope.spawn(move || put(&db, &format!("key{n}"), "value", Durability::Synced)))
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap()).collect()
    });
    assert_eq!(syncs.load(Ordering::SeqCst), 1);
    for result in &results {
        assert!(matches!(result, Err(Error::Io { op: "sync", .. } | Error::ReadOnly { .. })), "{result:?}");
    }
    assert_eq!(results.iter().filter(|result| matches!(result, Err(Error::Io { .. }))).count(), 1);
    assert!(matches!(put(&db, "later", "value", Durability::Synced), Err(Error::ReadOnly { .. })));
}

#[test]
fn rule_7_after_a_failed_sync_of_one_log_no_write_of_a_later_log_is_acknowledged_as_synced() {
    // Catches a writer that waited behind the failed sync and then syncs its own log. That sync would succeed, since the previous log was
    // flushed meanwhile, so nothing else stops the writer.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    let old = files(dir.path(), ".log").pop().unwrap();
    let (arrivals, go) = fs.hold(Op::Sync, &old, Answer::Fail(ErrorKind::Other));
    thread::scope(|scope| {
        let first = scope.spawn(|| put(&db, "a", "value", Durability::Synced));
        arrivals.recv().unwrap();
        db.flush().unwrap();
        fs.take();
        let second = scope.spawn(|| put(&db, "b", "value", Durability::Synced));
        // The second write is visible, so it has passed every check but the one before its sync.
        wait_while(|| db.get("b").unwrap().is_none() && !second.is_finished());
        drop(go);
        let first = first.join().unwrap();
        assert!(matches!(first, Err(Error::Io { op: "sync", .. })), "{first:?}");
        let second = second.join().unwrap();
        assert!(matches!(second, Err(Error::ReadOnly { .. })), "{second:?}");
    });
    let synced = fs.take();
    assert_eq!(count(&synced, Op::Sync, ".log"), 0, "{synced:?}");
}

#[test]
fn rule_12_a_writer_that_unwinds_ends_writing_and_a_reopen_tells_the_truth() {
    // Catches writers that wait for ever for a writer that has failed, and an acknowledged sequence number behind a gap.
    for op in [Op::Write, Op::Sync] {
        let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
        put(&db, "before", "value", Durability::Synced).unwrap();
        fs.set(move |event| if event.is(op, ".log") { panic!("planted") } else { Answer::Go });
        thread::scope(|scope| {
            let writers = ["a", "b", "c"].map(|key| (key, db.clone()));
            let writers = writers.map(|(key, db)| scope.spawn(move || put(&db, key, "value", Durability::Synced)));
            let ends = writers.map(|writer| writer.join());
            assert!(ends.iter().any(Result::is_err), "{op:?}: nobody met the panic");
            assert!(ends.iter().flatten().all(|end| matches!(end, Err(Error::ReadOnly { .. }))), "{op:?}: {ends:?}");
        });
        fs.clear();
        assert!(matches!(put(&db, "after", "value", Durability::Buffered), Err(Error::ReadOnly { .. })), "{op:?}");
        assert!(db.contains_key("before").unwrap());
        drop(db);
        let db = open(&dir, &fs);
        assert!(db.contains_key("before").unwrap() && !db.contains_key("after").unwrap(), "{op:?}");
        put(&db, "after", "value", Durability::Synced).unwrap();
        assert!(db.verify().unwrap().problems.is_empty());
    }
}

#[test]
fn close_syncs_the_logs_when_its_flush_failed() {
    // Catches a close after which a power cut loses buffered writes, although the logs could have been synced.
    let (dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10));
    db.insert("a", vec![1; 20_000]).unwrap();
    let log = files(dir.path(), ".log").pop().unwrap();
    fs.fail(Op::Create, ".sst", ErrorKind::StorageFull);
    fs.take();
    assert!(matches!(db.close(), Err(Error::Io { .. })));
    let events = fs.take();
    assert_eq!(count(&events, Op::Sync, &log), 1, "{events:?}");
}

#[test]
fn rule_14_table_files_are_never_written_after_their_sync_nor_truncated() {
    // Catches a table that is modified while readers have it open.
    let (_dir, fs, db) = hooked(|b| b.memtable_bytes(4096).l0_trigger(2));
    for n in 0..2000 {
        db.insert(format!("key{:04}", n % 300), format!("value{n}")).unwrap();
    }
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    db.close().unwrap();
    let events = fs.take();
    assert!(count(&events, Op::Remove, ".sst") > 0, "no compaction took place");
    let synced = |event: &Event| event.is(Op::Sync, ".sst");
    for (at, event) in events.iter().enumerate().filter(|(_, event)| synced(event)) {
        let touched =
            |later: &Event| later.name() == event.name() && matches!(later.op, Op::Write | Op::Truncate | Op::Rename);
        assert!(!events[at..].iter().any(touched), "{}", event.name());
    }
    assert_eq!(count(&events, Op::Truncate, ".sst"), 0);
}

#[test]
fn rule_15_short_and_interrupted_writes_are_completed() {
    // Catches an ignored count of a short write: every file of the database would have holes.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let calls = AtomicUsize::new(0);
    fs.set(move |event| match (event.op, calls.fetch_add(1, Ordering::Relaxed) % 3) {
        (Op::Write, 0) => Answer::Fail(ErrorKind::Interrupted),
        (Op::Write, n) => Answer::Short(n * 7),
        _ => Answer::Go,
    });
    let db = open(&dir, &fs);
    (0..200).for_each(|n| db.insert(key(n), vec![n as u8; n as usize]).unwrap());
    db.flush().unwrap();
    db.insert("last", "in the log").unwrap();
    drop(db);
    let db = open(&dir, &fs);
    assert!((0..200).all(|n| db.get(key(n)).unwrap().unwrap() == vec![n as u8; n as usize][..]));
    assert!(db.contains_key("last").unwrap());
    assert_sound(&db);
}
