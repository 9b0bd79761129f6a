//! Compactions from a caller's view: compactions of ranges on demand, concurrent ones, slowed writers, and stored policies.

use crate::support::*;

/// Options with which a few hundred keys make several levels.
fn small(dir: &TempDir) -> Builder {
    let builder = Db::builder(dir.path()).memtable_bytes(4096).block_bytes(512).compression(Compression::None);
    builder.l0_trigger(2).size_ratio(2).level1_bytes(4096).table_file_bytes(1024)
}

/// Writes all of 400 keys three times over, and removes every second one.
fn fill_400(db: &Db) {
    for round in 0..3 {
        for n in 0..400 {
            db.insert(key(n * 7 % 400), format!("{round} {}", "v".repeat(40))).unwrap();
        }
    }
    (0..400).step_by(2).for_each(|n| db.remove(key(n)).unwrap());
}

/// A filled database, in one run.
fn compacted(dir: &TempDir, policy: Compaction) -> Db {
    let db = small(dir).compaction(policy).open().unwrap();
    fill_400(&db);
    db.compact_range(..).unwrap();
    db.wait_for_compactions().unwrap();
    db
}

#[test]
fn compacting_everything_leaves_one_run_without_tombstones_and_old_values() {
    // Catches a range that stays on several levels, and tombstones or old values that stay on the lowest level.
    for policy in POLICIES {
        let dir = TempDir::new().unwrap();
        let db = compacted(&dir, policy);
        assert_eq!(sum(&db.metrics(), |level| level.runs), 1, "{policy:?}: {:?}", db.metrics().levels);
        assert_eq!(db.verify().unwrap().entries, 200, "{policy:?}");
        assert_eq!(db.metrics().space_amplification(), Some(1.0));
        assert_eq!(files(dir.path(), ".sst").len() as u64, sum(&db.metrics(), |level| level.tables));
        assert_eq!(db.iter().map(Result::unwrap).count(), 200);
        // The compaction reads even keys that are only on the lowest level: versions that a snapshot retained there become obsolete when it ends.
        let snapshot = db.snapshot();
        (1..400).step_by(2).for_each(|n| db.remove(key(n)).unwrap());
        db.compact_range(..).unwrap();
        assert_eq!(snapshot.iter().map(Result::unwrap).count(), 200);
        drop(snapshot);
        db.compact_range(..).unwrap();
        db.wait_for_compactions().unwrap();
        wait_for_removals(&db, dir.path());
        assert_eq!((db.verify().unwrap().entries, files(dir.path(), ".sst").len()), (0, 0), "{policy:?}");
    }
}

#[test]
fn compacting_a_range_touches_what_lies_in_it() {
    // Catches bounds that are ignored or off by one, and keys beside them that are lost.
    for policy in POLICIES {
        let dir = TempDir::new().unwrap();
        let db = compacted(&dir, policy);
        wait_for_removals(&db, dir.path());
        let before = files(dir.path(), ".sst");
        assert!(before.len() > 8, "{policy:?}: {before:?}");
        db.remove(key(101)).unwrap();
        db.compact_range(key(100)..key(110)).unwrap();
        db.wait_for_compactions().unwrap();
        wait_for_removals(&db, dir.path());
        let after = files(dir.path(), ".sst");
        let kept = before.iter().filter(|name| after.contains(name)).count();
        assert!((before.len() / 2..before.len()).contains(&kept), "{policy:?}: {kept} of {}", before.len());
        assert_eq!(db.verify().unwrap().entries, 199, "{policy:?}");
        // Bounds without a key in between, and inverted bounds.
        db.compact_range("nothing".."nowhere").unwrap();
        db.compact_range(key(300)..key(200)).unwrap();
        db.wait_for_compactions().unwrap();
        wait_for_removals(&db, dir.path());
        assert_eq!(files(dir.path(), ".sst"), after, "{policy:?}");
    }
}

#[test]
fn ranges_are_compacted_beside_writers_and_other_compactions() {
    // Catches two compactions that take the same table, or wait for each other.
    for policy in POLICIES {
        let dir = TempDir::new().unwrap();
        let db = small(&dir).compaction(policy).compaction_threads(3).open().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| fill_400(&db));
            for part in 0..2 {
                let db = &db;
                scope.spawn(move || {
                    (0..6).for_each(|_| db.compact_range(key(part * 200)..key(part * 200 + 250)).unwrap());
                });
            }
        });
        db.compact_range(..).unwrap();
        let report = db.verify().unwrap();
        assert_eq!(report.entries, 200, "{policy:?}: {report:?}, levels {:?}", db.metrics().levels);
    }
}

#[test]
fn a_range_that_cannot_be_read_is_an_error_and_loses_nothing() {
    // Catches a failed compaction that stays registered as running, so that its tables can never be compacted again.
    let (dir, fs) = (TempDir::new().unwrap(), unmapped());
    let db = small(&dir).file_system(fs.arc()).open().unwrap();
    fill_400(&db);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    // Data to compact.
    db.insert(key(1), "1").unwrap();
    db.flush().unwrap();
    fs.fail(Op::Write, ".sst", ErrorKind::StorageFull);
    let error = db.compact_range(..).unwrap_err();
    assert!(is_full(&error), "{error}");
    fs.clear();
    db.compact_range(..).unwrap();
    assert_eq!(db.verify().unwrap().entries, 200);
}

#[test]
fn as_many_compactions_run_at_once_as_there_are_threads() {
    // Catches an option that is ignored, and compactions that wait for each other although they share nothing.
    for threads in [1, 2, 3] {
        let (dir, fs) = (TempDir::new().unwrap(), unmapped());
        let tiers = |ratio, trigger| small(&dir).compaction(Compaction::Tiered).size_ratio(ratio).l0_trigger(trigger);
        // A large oldest run, tiers on levels 1 and 2, and also enough tables on level 0 for a compaction.
        let db = tiers(4, 1).open().unwrap();
        fill_400(&db);
        db.compact_range(..).unwrap();
        let runs = |level: usize| db.metrics().levels.get(level).map_or(0, |level| level.runs);
        while runs(1) < 2 || runs(2) < 2 {
            db.insert(key(1), "1").unwrap();
            db.flush().unwrap();
            // Waits, so that each flush goes into a tier of its own.
            db.wait_for_compactions().unwrap();
        }
        db.close().unwrap();
        let db = tiers(32, 100).open().unwrap();
        for _ in 0..2 {
            db.insert(key(1), "2").unwrap();
            db.flush().unwrap();
        }
        db.close().unwrap();
        let (arrivals, go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_compaction_thread());
        let db = tiers(2, 1).compaction_threads(threads).file_system(fs.arc()).open().unwrap();
        // One thread is only for level 0, and there is at least one other.
        let running = threads.max(2);
        (0..running).for_each(|_| arrivals.recv().unwrap());
        assert_eq!((db.metrics().compactions_running, db.metrics().compaction_due), (running as u64, running == 2));
        drop(go);
        db.wait_for_compactions().unwrap();
        assert_eq!(db.iter().map(Result::unwrap).count(), 200);
    }
}

#[test]
fn writers_are_slowed_down_before_they_have_to_stop() {
    // Catches a slowdown that begins only with the stop, that is never lifted, or that is not counted.
    let (_dir, fs, db) =
        hooked(|b| b.l0_trigger(1).l0_slowdown(3).l0_stop(1000).memtable_bytes(4096).immutable_memtables(64));
    let (_arrivals, go) = fs.hold_where(Answer::Go, |event| event.is(Op::Create, ".sst") && on_compaction_thread());
    let flush = |n: u64| {
        db.insert(n.to_be_bytes(), [7; 100]).unwrap();
        db.flush().unwrap();
    };
    (0..3).for_each(flush);
    assert_eq!((db.metrics().levels[0].tables, db.metrics().slowdowns), (3, 0));
    (3..6).for_each(flush);
    let metrics = db.metrics();
    assert_eq!((metrics.levels[0].tables, metrics.slowdowns, metrics.stalls), (6, 3, 0));
    assert!(metrics.slowdown_time.as_nanos() > 0);
    drop(go);
    db.wait_for_compactions().unwrap();
    (6..8).for_each(flush);
    assert_eq!(db.metrics().slowdowns, 3);
    assert_eq!(db.iter().map(Result::unwrap).count(), 8);
}

#[test]
fn the_policy_is_that_of_the_last_open_until_another_is_asked_for() {
    // Catches an open without options that rewrites the database under another policy.
    let dir = TempDir::new().unwrap();
    assert_eq!(Db::open(dir.path()).unwrap().metrics().compaction, Compaction::Leveled);
    for policy in POLICIES {
        drop(Db::builder(dir.path()).compaction(policy).open().unwrap());
        assert_eq!(Db::open(dir.path()).unwrap().metrics().compaction, policy);
    }
}

#[test]
fn amplifications_outlive_the_process() {
    // Catches counters that start from zero at each open: a tool that opens the database to show them would always print zeros.
    let dir = TempDir::new().unwrap();
    let db = small(&dir).open().unwrap();
    fill_400(&db);
    db.flush().unwrap();
    db.wait_for_compactions().unwrap();
    let before = db.metrics();
    assert!(before.write_amplification().unwrap() > 1.5, "{:?}", before.levels);
    db.close().unwrap();
    let db = small(&dir).open().unwrap();
    assert_eq!((db.metrics().levels, db.metrics().flushed_user_bytes), (before.levels, before.flushed_user_bytes));
    let user: u64 = 1200 * (8 + 42) + 200 * 8;
    assert_eq!(before.flushed_user_bytes, user);
    assert_eq!(db.metrics().read_amplification(), None);
    db.get(key(1)).unwrap();
    assert_eq!(db.metrics().read_amplification(), Some(1.0));
}

#[test]
fn compacting_again_rewrites_nothing() {
    // Catches tables that are rewritten although they contain no obsolete entries.
    for policy in POLICIES {
        let dir = TempDir::new().unwrap();
        let db = compacted(&dir, policy);
        let before = (files(dir.path(), ".sst"), db.metrics().compaction_bytes_written);
        db.compact_range(..).unwrap();
        assert_eq!((files(dir.path(), ".sst"), db.metrics().compaction_bytes_written), before, "{policy:?}");
        // When the snapshot has ended, the tombstone that it retained, and the version below, can be dropped.
        let snapshot = db.snapshot();
        db.remove(key(101)).unwrap();
        db.compact_range(..).unwrap();
        drop(snapshot);
        db.compact_range(..).unwrap();
        assert_eq!(db.verify().unwrap().entries, 199, "{policy:?}");
    }
}

#[test]
fn compacting_a_range_beside_a_large_value_that_compresses_well_comes_to_an_end() {
    // Catches a table that is cut as full but is tiny on disk. Each rewrite of the next table would include it, so the first piece would only
    // rewrite it, and the next step would repeat this for ever.
    for policy in POLICIES {
        let (_dir, fs, db) = hooked(|b| b.memtable_bytes(64 << 10).block_bytes(512).compaction(policy));
        let mut random = Random(7);
        for _ in 0..2 {
            db.insert("a", "-".repeat(256 << 10)).unwrap();
            for n in 0..400 {
                let value: Vec<u8> = (0..64).flat_map(|_| random.next().to_le_bytes()).collect();
                db.insert(key(n), value).unwrap();
            }
            db.flush().unwrap();
        }
        db.wait_for_compactions().unwrap();
        for round in 0..3 {
            let (tables, made) = (sum(&db.metrics(), |level| level.tables), AtomicU64::new(0));
            let most = 8 * tables + 20;
            fs.answer_where(Answer::Fail(ErrorKind::StorageFull), move |event| {
                event.is(Op::Create, ".sst") && made.fetch_add(1, Ordering::Relaxed) >= most
            });
            let compacted = db.compact_range(..);
            assert!(compacted.is_ok(), "{policy:?}, round {round}: more than {most} tables made of {tables}");
        }
        fs.clear();
        assert_eq!(db.verify().unwrap().entries, 401, "{policy:?}");
    }
}

#[test]
fn tombstones_go_down_without_further_writes_and_only_once() {
    // Catches tombstones that every scan steps over until enough writes push them down, and a compaction that is repeated in vain while a
    // snapshot retains them.
    for policy in POLICIES {
        for (ranges, has_snapshot) in [(false, false), (true, false), (false, true), (true, true)] {
            let (_dir, db) = opened(|b| b.memtable_bytes(1 << 20).compaction(policy));
            fill(&db, 0..400, "value");
            db.compact_range(..).unwrap();
            let snapshot = has_snapshot.then(|| db.snapshot());
            for n in 100..200 {
                match ranges {
                    true => db.remove_range(key(n)..key(n + 1)).unwrap(),
                    false => db.remove(key(n)).unwrap(),
                };
            }
            db.flush().unwrap();
            db.wait_for_compactions().unwrap();
            let (case, levels) = (format!("{policy:?}, ranges {ranges}, snapshot {has_snapshot}"), db.metrics().levels);
            assert_eq!((levels[0].tables, sum(&db.metrics(), |level| level.runs)), (0, 1), "{case}: {levels:?}");
            assert_eq!(db.iter().map(Result::unwrap).count(), 300, "{case}");
            match snapshot {
                Some(snapshot) => assert_eq!(snapshot.iter().map(Result::unwrap).count(), 400, "{case}"),
                None => {
                    let left = (db.verify().unwrap().entries, sum(&db.metrics(), |level| level.range_tombstones));
                    assert_eq!(left, (300, 0), "{case}");
                }
            }
        }
    }
}

#[test]
fn many_scans_bring_level_0_down_without_a_write() {
    // Catches a kind of seek whose scans are not counted, and a worker that is not woken: every scan would merge the same tables for ever.
    let (_dir, db) = fresh();
    for part in 0..2 {
        fill(&db, (part..400).step_by(2), "v");
        flush_to_the_end(&db);
    }
    assert_eq!(level_0(&db), 2);
    let mut cursor = db.cursor();
    for n in 0..2_500 {
        cursor.seek(key(n % 400)).unwrap();
        cursor.seek_to_last().unwrap();
        assert!(db.iter().next().is_some() && db.range(key(0)..).next_back().is_some());
    }
    wait_while(|| level_0(&db) > 0);
    assert_eq!((entries(&db).len(), db.metrics().compactions), (400, 1));
}
