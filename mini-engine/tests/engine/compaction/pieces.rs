//! Compactions in pieces: the files that many short-lived processes leave, and the space that compactions take while they run.

use crate::support::*;

const KEYS: u64 = 4000;

fn value(random: &mut Random) -> Vec<u8> {
    (0..1000).map(|_| random.next() as u8).collect()
}

/// A database of 4 MB with these options is like one of 4 GB with the default options.
fn builder(mem: &MemFs, policy: Compaction) -> Builder {
    let builder = in_memory(mem).compaction(policy).compression(Compression::None);
    builder.memtable_bytes(64 << 10).table_file_bytes(64 << 10).l0_trigger(4).cache_bytes(0)
}

/// A database in one run.
fn filled(mem: &MemFs, policy: Compaction) -> Map {
    let (db, mut random) = (builder(mem, policy).open().unwrap(), Random(1));
    let map: Map = (0..KEYS).map(|n| (key(n).into_bytes(), value(&mut random))).collect();
    db.ingest(&map).unwrap();
    db.close().unwrap();
    map
}

#[test]
fn processes_that_live_shortly_finish_compactions_together() {
    // Catches a compaction whose work is lost whenever a process ends: each would leave one more table, and read more of them.
    for policy in POLICIES {
        let mem = MemFs::default();
        let (mut map, mut random) = (filled(&mem, policy), Random(2));
        let (mut most, mut written, mut narrowed) = (0, 0, 0);
        let before = mem.count_bytes_of(".sst");
        for _ in 0..160 {
            let db = builder(&mem, policy).open().unwrap();
            // Enough processes that level 0 has to be compacted from time to time.
            for _ in 0..10 {
                let (key, value) = (key(random.below(KEYS)), value(&mut random));
                db.insert(&key, &value).unwrap();
                map.insert(key.into_bytes(), value);
            }
            let metrics = db.metrics();
            most = most.max(metrics.levels.first().map_or(0, |level| level.tables));
            narrowed = narrowed.max(sum(&metrics, |level| level.narrowed));
            written = sum(&metrics, |level| level.written);
            db.close().unwrap();
        }
        let db = builder(&mem, policy).open().unwrap();
        let tables = sum(&db.metrics(), |level| level.tables);
        println!(
            "{policy:?}: {most} tables on level 0, {tables} in all, {narrowed} narrowed, {written} bytes compacted"
        );
        // The tables that sixteen processes add during a compaction, those that wait for it, and a few more.
        assert!(most <= 2 * 16 + 8, "{policy:?}: {most} tables on level 0");
        assert!(tables <= KEYS / 64 + 48, "{policy:?}: {tables} tables");
        assert!(written > before && narrowed > 0, "{policy:?}: {written} bytes compacted, {narrowed} tables narrowed");
        assert!(db.verify().unwrap().problems.is_empty());
        assert!(entries(&db) == map, "{policy:?}: it holds something else");
    }
}

#[test]
fn a_compaction_on_demand_that_ends_anywhere_leaves_nothing_half_done_for_good() {
    // Catches a step that does not continue where an earlier one has stopped: a narrowed table would keep the space of compacted keys.
    let mem = MemFs::default();
    let builder = |mem: &MemFs| {
        let builder = in_memory(mem).table_file_bytes(1024).max_compaction_bytes(1024).block_bytes(512);
        builder.memtable_bytes(16 << 10).level1_bytes(1024).l0_trigger(1).compression(Compression::None)
    };
    // Three levels with the same keys, so each level needs a step. The first step ends beyond the range.
    let overwrite = |db: &Db, round: u8| fill(db, 0..100, [round; 20]);
    let db = builder(&mem).open().unwrap();
    db.ingest((0..2000).map(|n| (key(n), [0; 100]))).unwrap();
    let filled = |db: &Db| db.metrics().levels.iter().map(|level| level.tables > 0).collect::<Vec<_>>();
    // Tables of level 0 may be compacted among themselves first.
    for _ in 0..8 {
        if filled(&db)[6] {
            break;
        }
        overwrite(&db, 1);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    assert!(filled(&db)[6..] == [true; 2], "{:?}", filled(&db));
    if !filled(&db)[0] {
        overwrite(&db, 2);
        db.flush().unwrap();
    }
    let mut narrowed = 0;
    for (operation, disk) in states_during(&mem, || db.compact_range(key(0)..=key(5)).unwrap()) {
        if is_edit(&operation) {
            let mem = MemFs::on(disk);
            narrowed += sum(&frozen(&mem, DB).open().unwrap().metrics(), |level| level.narrowed);
            let db = builder(&mem).open().unwrap();
            db.wait_for_compactions().unwrap();
            assert_eq!(sum(&db.metrics(), |level| level.narrowed), 0, "after {operation}");
        }
    }
    assert!(narrowed > 0);
}

#[test]
fn tables_are_synced_as_they_are_written() {
    // Catches a table that is synced only at its end: a flush's sync would then wait for hundreds of megabytes of compaction output.
    let mem = MemFs::default();
    let builder = in_memory(&mem).compression(Compression::None);
    let db = builder.bytes_per_sync(64 << 10).open().unwrap();
    let (mut unsynced, mut most, mut tables) = (BTreeMap::new(), 0, 0);
    let work = || {
        let mut random = Random(4);
        (0..KEYS).for_each(|n| db.insert(key(n), value(&mut random)).unwrap());
        db.insert("long", vec![7; 3 << 20]).unwrap();
        db.flush().unwrap();
        db.ingest((0..KEYS).map(|n| (format!("loaded{n:06}"), [7; 1000]))).unwrap();
        db.compact_range(..).unwrap();
    };
    for (operation, _) in states_during(&mem, work) {
        let (name, text) = (operation.name().to_owned(), operation.to_string());
        let words: Vec<&str> = text.split(' ').collect();
        match words[..] {
            ["write", bytes, ..] if name.ends_with(".sst") => {
                let table: &mut u64 = unsynced.entry(name).or_default();
                *table += bytes.parse::<u64>().unwrap();
                most = most.max(*table);
            }
            ["sync", ..] => tables += u64::from(unsynced.remove(&name).is_some()),
            _ => {}
        }
    }
    // Each write has 256 KiB.
    assert!(most < (64 + 256 + 8) << 10, "{most} bytes were not synced");
    assert!(tables > 3 * (KEYS * 1000 + (3 << 20)) / (512 << 10), "{tables} syncs");
}

/// The peak of file bytes while all keys are overwritten, for each byte of the data.
fn peak(policy: Compaction, level1_bytes: u64, table_file_bytes: u64) -> f64 {
    let mem = MemFs::default();
    filled(&mem, policy);
    let data = mem.count_bytes_of(".sst");
    let builder = builder(&mem, policy).level1_bytes(level1_bytes).table_file_bytes(table_file_bytes).l0_trigger(2);
    // Memtables and level 0 take little compared with the data.
    let builder = builder.memtable_bytes(32 << 10);
    let (db, mut random) = (builder.open().unwrap(), Random(3));
    for _ in 0..KEYS / 25 {
        (0..25).for_each(|_| db.insert(key(random.below(KEYS)), value(&mut random)).unwrap());
        db.flush().unwrap();
        // Waits, so that the result does not depend on the speed of the workers.
        db.wait_for_compactions().unwrap();
    }
    mem.most_bytes() as f64 / data as f64
}

#[test]
fn compactions_take_little_space_beside_the_data() {
    // Catches a compaction that needs as much space as all its inputs until it ends.
    // Uses tables of a 256th of the data, and tables so large that one would hold all of it.
    for (level1_bytes, table_file_bytes) in [(64 << 20, 16 << 10), (256 << 10, 16 << 10), (64 << 20, 4 << 20)] {
        let peaks = POLICIES.map(|policy| peak(policy, level1_bytes, table_file_bytes));
        println!("levels from {level1_bytes}, tables of {table_file_bytes} bytes: {peaks:.2?} with {POLICIES:?}");
        let [leveled, _, lazy, partial, ..] = peaks;
        assert!([leveled, lazy, partial].iter().all(|peak| *peak <= 1.3), "{peaks:.2?}");
        assert!(peaks.iter().all(|peak| *peak <= 2.2), "{peaks:.2?}");
    }
}

/// A database on `mem` without compactions, because no table can be made.
fn frozen(mem: &MemFs, dir: &str) -> Builder {
    let fs = FaultFs::new(Arc::new(mem.clone()));
    fs.refuse_files(Some("sst"));
    Db::builder(dir).file_system(Arc::new(fs)).create_if_missing(false)
}

/// A database with two tables on level 0 whose lower keys a compaction has taken, and its contents.
fn narrowed() -> (Disk, Map) {
    let mem = MemFs::default();
    let builder = in_memory(&mem).l0_trigger(100).table_file_bytes(2048).max_compaction_bytes(1024).block_bytes(512);
    let db = builder.compression(Compression::None).open().unwrap();
    let mut map = Map::new();
    for round in 0..2u8 {
        for n in 0..100 {
            // Some keys are removed only in the newer table; they return if the bound of the older table is ignored.
            if round == 1 && n % 3 == 0 {
                db.remove(key(n)).unwrap();
                map.remove(key(n).as_bytes());
            } else {
                db.insert(key(n), [round; 60]).unwrap();
                map.insert(key(n).into_bytes(), vec![round; 60]);
            }
        }
        db.flush().unwrap();
    }
    let narrowed = |disk: &Disk| {
        let mem = MemFs::on(disk.clone());
        sum(&frozen(&mem, DB).open().unwrap().metrics(), |level| level.narrowed)
    };
    let mut states = states_during(&mem, || db.compact_range(..).unwrap());
    let state = states.find(|(operation, disk)| is_edit(operation) && narrowed(disk) == 2);
    (state.expect("no compaction took a piece").1, map)
}

#[test]
fn of_a_narrowed_table_only_what_counts_is_read_verified_and_copied() {
    // Catches a read, a scan, a checkpoint or a verification that uses the bounds of the file instead of the version: removed keys would return.
    let (disk, map) = narrowed();
    let mem = MemFs::on(disk);
    let db = frozen(&mem, DB).open().unwrap();
    assert_holds(&db, &map, (0..100).map(key));
    assert!(db.verify().unwrap().problems.is_empty());
    db.checkpoint("/copy").unwrap();
    drop(db);
    for dir in [DB, "/copy"] {
        let db = frozen(&mem, dir).open().unwrap();
        assert_eq!(sum(&db.metrics(), |level| level.narrowed), 2, "{dir}");
        assert_holds(&db, &map, (0..100).map(key));
        // The compaction continues after a reopen with any options.
        drop(db);
        let db = Db::builder(dir).file_system(Arc::new(mem.clone())).open().unwrap();
        db.wait_for_compactions().unwrap();
        assert_eq!(sum(&db.metrics(), |level| level.narrowed), 0, "{dir}");
        assert_holds(&db, &map, (0..100).map(key));
        db.compact_range(..).unwrap();
        assert_holds(&db, &map, (0..100).map(key));
    }
}

#[test]
fn rule_10_damage_to_a_narrowed_table_counts_from_its_bound_on() {
    // Catches keys that are reported as lost because of damaged bytes below a table's bound, which are no longer read. Also catches refused
    // reads of keys below the bound, which are now in other tables.
    let (disk, map) = narrowed();
    let path = paths_on(&MemFs::on(disk.clone()), ".sst").remove(0);
    let damaged = |at: u64| {
        let mem = MemFs::on(disk.clone());
        let byte = disk.read(&path).unwrap()[at as usize] ^ 0x10;
        mem.open_write(&path).unwrap().write_all_at(&[byte], at).unwrap();
        mem
    };
    let db = frozen(&damaged(3), DB).recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    assert!(db.quarantined().is_empty() && db.verify().unwrap().problems.is_empty());
    assert_holds(&db, &map, (0..100).map(key));
    // Damages the last data block, the one before the filter.
    let mem = damaged(disk.read(&path).unwrap().len() as u64 / 2);
    let db = frozen(&mem, DB).recovery_mode(RecoveryMode::Quarantine).open().unwrap();
    let [table] = &db.quarantined()[..] else { panic!("{:?}", db.quarantined()) };
    let bound = String::from_utf8(table.smallest.to_vec()).unwrap();
    assert!(bound > key(0), "{bound}");
    for n in 0..100 {
        match db.get(key(n)) {
            Ok(found) => assert_eq!(found.as_deref(), map.get(key(n).as_bytes()).map(Vec::as_slice), "{n}"),
            Err(error) => assert!(key(n) >= bound && matches!(error, Error::Corruption { .. }), "{n}: {error}"),
        }
    }
    drop(db);
    // All undamaged parts of the database can be read.
    let salvage = Db::builder(DB).file_system(Arc::new(mem)).salvage().unwrap();
    let report = salvage.write_to("/new").unwrap();
    let [lost] = &report.lost_keys[..] else { panic!("{report}") };
    let kept = map.keys().filter(|key| !lost.contains(key)).count() as u64;
    assert!((kept..=map.len() as u64).contains(&report.keys) && kept > 60, "{kept} of {}: {report}", map.len());
}
