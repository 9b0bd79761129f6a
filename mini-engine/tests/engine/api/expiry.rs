//! Entries that expire. The tests set the clock.

use proof::second as at;

use crate::support::*;

/// A disk, and a clock set to 1,000 seconds.
fn clocked() -> (MemFs, Clock) {
    (MemFs::default(), Clock::at(at(1000)))
}

fn builder((mem, clock): &(MemFs, Clock)) -> Builder {
    in_memory(mem).time_source(clock.source()).l0_trigger(100)
}

/// Checks by every kind of read that the database holds exactly these entries of the keys `a` to `f`.
#[track_caller]
fn check(db: &Db, expected: &[(&str, &str)]) {
    let expected = expected.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
    assert_holds(db, &expected, ["a", "b", "c", "d", "e", "f"]);
}

/// Runs `test` with entries in each place: in a memtable of each kind, in tables, in several runs, and in a reopened database.
fn in_each_place(test: impl Fn(&Clock, Db, &dyn Fn(Db) -> Db)) {
    let flushed = |db: Db| {
        db.flush().unwrap();
        db
    };
    let fs = &clocked();
    test(&fs.1, builder(fs).open().unwrap(), &|db| db);
    let fs = &clocked();
    test(&fs.1, builder(fs).memtable_kind(MemtableKind::Vector).open().unwrap(), &|db| db);
    let fs = &clocked();
    test(&fs.1, builder(fs).open().unwrap(), &flushed);
    let fs = &clocked();
    let mapped = |fs: &(MemFs, Clock)| builder(fs).table_reads(TableReads::Mmap).compression(Compression::None);
    test(&fs.1, mapped(fs).open().unwrap(), &flushed);
    let fs = &clocked();
    test(&fs.1, builder(fs).open().unwrap(), &|db| {
        let db = flushed(db);
        db.compact_range(..).unwrap();
        db
    });
    for close in [false, true] {
        let fs = &clocked();
        test(&fs.1, builder(fs).open().unwrap(), &move |db| {
            if close {
                db.close().unwrap()
            } else {
                drop(db)
            }
            builder(fs).open().unwrap()
        });
    }
}

#[test]
fn a_key_is_absent_from_its_instant_on_in_every_read_wherever_it_is() {
    // Catches a read that ignores the clock, a key that expires too early, and an older version that reappears.
    in_each_place(|clock, db, settle| {
        db.insert("b", "old").unwrap();
        db.insert("d", "old").unwrap();
        db.insert("e", "plain").unwrap();
        let db = settle(db);
        db.insert_with_expiry("a", "first", at(1010)).unwrap();
        db.insert_with_expiry("b", "a value that is too long to be held in place", at(1020)).unwrap();
        db.insert_with_expiry("c", "", at(1010)).unwrap();
        db.insert_with_expiry("d", "gone already", at(1000)).unwrap();
        db.insert_with_expiry("f", "last", at(1030)).unwrap();
        let db = settle(db);
        let (b, e) = (("b", "a value that is too long to be held in place"), ("e", "plain"));
        check(&db, &[("a", "first"), b, ("c", ""), e, ("f", "last")]);
        assert_eq!(db.get_with_expiry("b").unwrap().unwrap().1, Some(at(1020)));
        assert_eq!(db.get_with_expiry("e").unwrap().unwrap().1, None);
        clock.set(at(1009) + Duration::from_millis(999));
        check(&db, &[("a", "first"), b, ("c", ""), e, ("f", "last")]);
        clock.set(at(1010));
        check(&db, &[b, e, ("f", "last")]);
        clock.set(at(1025));
        check(&db, &[e, ("f", "last")]);
        clock.set(at(2000));
        check(&db, &[e]);
        let db = settle(db);
        check(&db, &[e]);
        // A compaction removes them from the files too.
        db.compact_range(..).unwrap();
        check(&db, &[e]);
        assert_eq!(db.metrics().estimated_keys, 1);
        assert_sound(&db);
    });
}

#[test]
fn snapshots_iterators_and_cursors_see_the_time_at_which_they_were_made() {
    // Catches a scan that loses entries while it runs, and a flush or a compaction that drops entries that a snapshot still sees.
    in_each_place(|clock, db, settle| {
        db.insert("a", "old").unwrap();
        let db = settle(db);
        db.insert_with_expiry("a", "new", at(1010)).unwrap();
        db.insert_with_expiry("b", "late", at(1030)).unwrap();
        let (before, mut iter, mut cursor) = (db.snapshot(), db.iter(), db.cursor());
        clock.set(at(1020));
        let after = db.snapshot();
        clock.set(at(1040));
        db.flush().unwrap();
        db.compact_range(..).unwrap();
        let all = |snapshot: &Snapshot| snapshot.iter().map(|entry| entry.unwrap().0.to_vec()).collect::<Vec<_>>();
        assert_eq!((all(&before), all(&after)), (vec![b"a".to_vec(), b"b".to_vec()], vec![b"b".to_vec()]));
        assert_eq!(before.get("a").unwrap().as_deref(), Some(&b"new"[..]));
        assert_eq!(before.get_with_expiry("a").unwrap().unwrap().1, Some(at(1010)));
        let many = after.get_many(["a", "b"]).unwrap();
        assert_eq!((&many[0], many[1].as_deref()), (&None, Some(&b"late"[..])));
        assert!(!after.contains_key("a").unwrap());
        check(&db, &[]);
        assert_eq!(iter.next_with_expiry().unwrap().unwrap().2, Some(at(1010)));
        assert_eq!(iter.next_back_with_expiry().unwrap().unwrap().2, Some(at(1030)));
        assert!(iter.next().is_none());
        cursor.seek("a").unwrap();
        assert_eq!((cursor.value(), cursor.expiry()), (&b"new"[..], Some(at(1010))));
        cursor.seek_for_prev("z").unwrap();
        assert_eq!((cursor.value(), cursor.expiry()), (&b"late"[..], Some(at(1030))));
        drop((before, after, iter, cursor));
        db.compact_range(..).unwrap();
        assert_eq!(table_bytes(&db), 0);
        check(&settle(db), &[]);
    });
}

#[test]
fn conditional_writes_take_an_expired_key_for_absent() {
    // Catches a lock that cannot be taken after its owner has died, and a queue that returns expired entries.
    in_each_place(|clock, db, settle| {
        db.insert_with_expiry("a", "owner", at(1010)).unwrap();
        db.insert_with_expiry("b", "1", at(1010)).unwrap();
        db.insert_with_expiry("e", "2", at(1010)).unwrap();
        let db = settle(db);
        let held = db.compare_and_swap("a", None, Some(b"other")).unwrap().unwrap_err();
        assert_eq!(held.current.as_deref(), Some(&b"owner"[..]));
        assert!(db.set_expiry("b", Some(at(1030))).unwrap());
        assert!(db.set_expiry("b", None).unwrap());
        assert!(db.set_expiry("b", Some(at(1020))).unwrap());
        assert!(!db.set_expiry("never", None).unwrap());
        clock.set(at(1010));
        assert!(!db.set_expiry("a", Some(at(1090))).unwrap());
        db.compare_and_swap("a", None, Some(b"other")).unwrap().unwrap();
        check(&db, &[("a", "other"), ("b", "1")]);
        assert_eq!(db.get_with_expiry("b").unwrap().unwrap().1, Some(at(1020)));
        assert_eq!(&*db.pop_last().unwrap().unwrap().0, b"b");
        // This entry is outside of the end that the pop has cached.
        db.insert_with_expiry("f", "3", at(1020)).unwrap();
        let db = settle(db);
        assert_eq!(&*db.pop_last().unwrap().unwrap().0, b"f");
        db.insert_with_expiry("c", "4", at(1020)).unwrap();
        clock.set(at(1020));
        assert_eq!(&*db.pop_last().unwrap().unwrap().0, b"a");
        assert_eq!(db.pop_first().unwrap(), None);
        check(&db, &[]);
    });
}

#[test]
fn the_clock_never_goes_back_within_a_database() {
    // Catches a key that returns when the system's clock is set back: at once, after a close, or after a flush and a crash.
    let fs = clocked();
    let db = builder(&fs).open().unwrap();
    db.insert_with_expiry("a", "1", at(1010)).unwrap();
    db.insert_with_expiry("b", "2", at(1050)).unwrap();
    fs.1.set(at(1020));
    check(&db, &[("b", "2")]);
    fs.1.set(at(500));
    check(&db, &[("b", "2")]);
    db.close().unwrap();
    let db = builder(&fs).open().unwrap();
    check(&db, &[("b", "2")]);
    fs.1.set(at(1050));
    check(&db, &[]);
    db.insert("c", "3").unwrap();
    db.flush().unwrap();
    fs.1.set(at(500));
    drop(db);
    let reader = builder(&fs).read_only(true).open().unwrap();
    check(&reader, &[("c", "3")]);
    drop(reader);
    let db = builder(&fs).open().unwrap();
    check(&db, &[("c", "3")]);
    // A key that is written now and expires before the clock's latest time is never visible.
    db.insert_with_expiry("d", "4", at(600)).unwrap();
    check(&db, &[("c", "3")]);
    // The copy's clock continues from the same time.
    db.insert_with_expiry("e", "5", at(1060)).unwrap();
    db.checkpoint("/copy").unwrap();
    fs.1.set(at(400));
    let copy = Db::builder("/copy").file_system(Arc::new(fs.0.clone())).time_source(fs.1.source()).open().unwrap();
    assert_eq!(copy.get_with_expiry("e").unwrap().unwrap().1, Some(at(1060)));
    copy.insert_with_expiry("d", "4", at(1050)).unwrap();
    assert!(!copy.contains_key("d").unwrap());
}

#[test]
fn a_span_counts_from_the_clock_of_the_database_in_every_way_to_give_one() {
    // Catches a key that expires at once, or early, because its lifetime is added to a system clock that was set back.
    let span = Duration::from_secs(3);
    for (system, reopens) in [(at(995), false), (at(10), true), (at(1000), false), (at(1005), false), (at(1005), true)]
    {
        let fs = &clocked();
        let mut db = builder(fs).open().unwrap();
        db.keyspace_with("brief", KeyspaceOptions::default().expire_after(span)).unwrap();
        db.insert_with_expiry("other", "v", at(5000)).unwrap();
        fs.1.set(system);
        if reopens {
            db.close().unwrap();
            db = builder(fs).open().unwrap();
        }
        let now = system.max(at(1000));
        assert_eq!(db.now(), now);
        assert_eq!(db.metrics().clock_ahead, now.duration_since(system).unwrap());
        let brief = db.keyspace("brief").unwrap();
        db.insert_with_expiry("inserted", "", db.now() + span).unwrap();
        db.insert("set", "").unwrap();
        assert!(db.set_expiry("set", db.now() + span).unwrap());
        brief.insert("inserted", "").unwrap();
        brief.compare_and_swap("swapped", None, Some(b"")).unwrap().unwrap();
        let mut batch = WriteBatch::new();
        batch.insert_with_expiry("batched", "", db.now() + span).unwrap();
        batch.keyspace(&brief).insert("batched", "").unwrap();
        db.write(batch, Durability::Buffered).unwrap();
        let tx = db.transaction();
        tx.insert_with_expiry("committed", "", db.now() + span).unwrap();
        tx.keyspace(&brief).insert("committed", "").unwrap();
        tx.commit(Durability::Buffered).unwrap();
        let entries = |keyspace: &Keyspace| {
            let mut iter = keyspace.iter();
            std::iter::from_fn(|| iter.next_with_expiry()).map(|entry| entry.unwrap().2).collect::<Vec<_>>()
        };
        // Sorts behind "other".
        let mut own = entries(&db);
        assert_eq!(own.remove(3), Some(at(5000)));
        assert_eq!([own, entries(&brief)], [vec![Some(now + span); 4], vec![Some(now + span); 4]]);
    }
}

#[test]
fn a_database_without_entries_that_expire_never_asks_for_the_time() {
    // Catches a read of the clock in every scan and snapshot of a database without expiring entries, and extra bytes in its files.
    let (fs, plain) = (clocked(), clocked());
    let fill = |fs: &(MemFs, Clock)| {
        let db = builder(fs).open().unwrap();
        db.insert("a", "1").unwrap();
        db.remove("b").unwrap();
        db.flush().unwrap();
        db
    };
    let db = fill(&fs);
    fs.1.set(at(3000));
    drop((db.snapshot(), db.iter(), db.get("a")));
    db.close().unwrap();
    // The first expiring entry starts the clock.
    fs.1.set(at(500));
    let db = builder(&fs).open().unwrap();
    db.insert_with_expiry("c", "2", at(501)).unwrap();
    db.flush().unwrap();
    assert!(db.contains_key("c").unwrap());
    let lines = |fs: &(MemFs, Clock)| {
        let shared: Arc<dyn FileSystem> = Arc::new(fs.0.clone());
        let mut lines = Vec::new();
        let mut part = |part: dump::Part<'_>| {
            lines.push(part.to_string());
            ControlFlow::Continue(())
        };
        dump::manifest(&shared, &paths_on(&*shared, "MANIFEST")[0], &mut part).unwrap();
        lines.concat()
    };
    drop(fill(&plain));
    assert!(
        lines(&fs).contains("clock 500000") && lines(&fs).contains("1 that expire, half by 501000, the last at 501000")
    );
    assert!(!lines(&plain).contains("clock") && !lines(&plain).contains("expire"));
    fs.1.set(at(501));
    assert!(!db.contains_key("c").unwrap());
}

#[test]
fn a_table_is_compacted_without_further_writes_once_most_of_it_has_expired() {
    // Catches space that expired data takes for ever, also because of a few long-lived entries, and a wait for a compaction that no worker
    // starts.
    for long in [0, 4] {
        let fs = clocked();
        let db = builder(&fs).open().unwrap();
        for n in 0..4000 {
            let end = if n % 1000 < long / 4 { 100_000 } else { 1010 + n % 10 };
            db.insert_with_expiry(key(n), "value", at(end)).unwrap();
        }
        db.compact_range(..).unwrap();
        let whole = table_bytes(&db);
        assert_eq!(db.metrics().estimated_keys, 4000);
        // Four of ten entries have expired.
        fs.1.set(at(1013));
        db.wait_for_compactions().unwrap();
        assert_eq!(table_bytes(&db), whole);
        fs.1.set(at(1019));
        db.wait_for_compactions().unwrap();
        assert_eq!((db.iter().count() as u64, db.metrics().estimated_keys), (long, long));
        assert_eq!(table_bytes(&db) > 0, long > 0);
        assert!(table_bytes(&db) < whole / 8, "{} of {whole} bytes are left", table_bytes(&db));
    }
}

#[test]
fn salvage_keeps_expiries_and_leaves_out_what_has_expired() {
    // Catches a repair after which a key never expires, or an expired key is back.
    let fs = clocked();
    let db = builder(&fs).open().unwrap();
    db.insert("a", "old").unwrap();
    db.insert_with_expiry("a", "gone", at(1010)).unwrap();
    db.insert_with_expiry("b", "in a table", at(1030)).unwrap();
    db.flush().unwrap();
    db.insert_with_expiry("c", "in a log", at(1040)).unwrap();
    fs.1.set(at(1010));
    db.flush().unwrap();
    db.insert_with_expiry("d", "in the next", at(1050)).unwrap();
    drop(db);
    fs.0.remove(&Path::new(DB).join("CURRENT")).unwrap();
    // The manifest records a later time.
    fs.1.set(at(900));
    let mut entries = builder(&fs).salvage().unwrap().range(..).unwrap();
    let expiries: Vec<_> = std::iter::from_fn(|| entries.next_with_expiry()).map(|entry| entry.unwrap().2).collect();
    assert_eq!(expiries, [1030, 1040, 1050].map(|seconds| Some(at(seconds))));
    drop(entries);
    let report = builder(&fs).salvage().unwrap().write_to("/saved").unwrap();
    assert_eq!(report.keys, 3, "{report}");
    let saved = Db::builder("/saved").file_system(Arc::new(fs.0.clone())).time_source(fs.1.source()).open().unwrap();
    check(&saved, &[("b", "in a table"), ("c", "in a log"), ("d", "in the next")]);
    fs.1.set(at(1040));
    check(&saved, &[("d", "in the next")]);
    assert_eq!(saved.get_with_expiry("d").unwrap().unwrap().1, Some(at(1050)));
}

#[test]
fn the_lifetime_of_a_keyspace_is_that_of_its_last_options() {
    // Catches a lifetime that is lost by a change or a reopen, one that replaces an explicit `None`, and one that no entry could have. The test of
    // spans has the inserts that get the lifetime.
    let fs = &clocked();
    let lifetime = |seconds| KeyspaceOptions::default().expire_after(Duration::from_secs(seconds));
    let db = builder(fs).open().unwrap();
    let brief = db.keyspace_with("brief", lifetime(10)).unwrap();
    brief.compare_and_swap("swapped", None, Some(b"")).unwrap().unwrap();
    brief.insert("kept", "").unwrap();
    assert!(brief.set_expiry("kept", None).unwrap());
    brief.insert_with_expiry("inserted", "", None).unwrap();
    let mut batch = WriteBatch::new();
    batch.keyspace(&brief).insert_with_expiry("batched", "", None).unwrap();
    db.write(batch, Durability::Buffered).unwrap();
    db.transact(|tx| tx.keyspace(&brief).insert_with_expiry("committed", "", None)).unwrap();
    drop(brief);
    db.close().unwrap();

    let db = builder(fs).open().unwrap();
    let brief = db.keyspace("brief").unwrap();
    brief.insert("reopened", "").unwrap();
    db.keyspace_with("brief", lifetime(20)).unwrap();
    brief.insert("changed", "").unwrap();
    db.keyspace_with("brief", KeyspaceOptions::default()).unwrap();
    brief.insert("without", "").unwrap();
    let expiry_of = |key| brief.get_with_expiry(key).unwrap().unwrap().1;
    let expiries = ["swapped", "reopened", "changed", "without"].map(expiry_of);
    assert_eq!(expiries, [Some(at(1010)), Some(at(1010)), Some(at(1020)), None]);
    assert_eq!(["kept", "inserted", "batched", "committed"].map(expiry_of), [None; 4]);
    for wrong in [Duration::ZERO, Duration::from_micros(999), Duration::MAX] {
        let refused = db.keyspace_with("wrong", KeyspaceOptions::default().expire_after(wrong));
        assert!(matches!(refused, Err(Error::InvalidArgument(_))), "{wrong:?}");
    }
    fs.1.set(at(1010));
    assert_eq!(keys(&brief), ["batched", "changed", "committed", "inserted", "kept", "without"]);
}

#[test]
fn no_recorded_instant_survives_a_power_cut_without_the_writes_before_it() {
    // Catches a manifest edit that makes the clock of writes durable although the writes are not (K4 of the clock).
    for is_load in [false, true] {
        let fs = clocked();
        let db = builder(&fs).open().unwrap();
        db.insert_with_expiry("a", "1", at(5000)).unwrap();
        db.persist(Durability::Synced).unwrap();
        fs.1.set(at(2000));
        let mut batch = WriteBatch::new();
        batch.insert_with_expiry("b", "2", at(1500)).unwrap();
        batch.insert("c", "3").unwrap();
        db.write(batch, Durability::Buffered).unwrap();
        match is_load {
            true => drop(db.ingest([("z", "")]).unwrap()),
            false => drop(db.keyspace("new").unwrap()),
        }
        for draw in 0..8 {
            let left = in_memory(&MemFs::on(fs.0.disk().after_power_cut(draw).0)).open().unwrap();
            let is_recorded = left.contains_key("z").unwrap() || left.keyspaces().contains(&"new".to_owned());
            assert!(is_recorded, "draw {draw}: the edit is durable when the call returns");
            assert_eq!(left.get("c").unwrap().as_deref(), Some(&b"3"[..]), "draw {draw}, a load: {is_load}");
        }
    }
}
