//! Tables and manifests that are damaged, missing or left over.

use crate::support::*;

#[test]
fn verify_tells_of_each_damaged_block_wherever_it_is() {
    // Catches a verification that ends at the first damage of a table: a user would take the rest for sound.
    let (dir, db) = opened(|b| b.block_bytes(512).partition_bytes(128).l0_trigger(100));
    for round in 0..2 {
        (0..400).for_each(|n| db.insert(format!("key{n:03}"), format!("{round}{n:060}")).unwrap());
        db.remove("key000").unwrap();
        db.flush().unwrap();
    }
    let report = db.verify().unwrap();
    assert_eq!((report.entries, report.tombstones, report.tables), (800, 2, 2));
    drop(db);
    let mut expected = Vec::new();
    for table in paths(dir.path(), ".sst") {
        let blocks = blocks(&table);
        let mut bytes = fs::read(&table).unwrap();
        let partitions = bytes.len() - 80;
        let partitions = u64::from_le_bytes(bytes[partitions..partitions + 8].try_into().unwrap()) as usize;
        // Damages one block below a partition that is damaged too, one in the middle, and the last one.
        for at in [blocks[0].0, blocks[blocks.len() / 2].0, blocks[blocks.len() - 1].0, partitions] {
            bytes[at + 2] ^= 1;
            expected.push((table.clone(), at as u64));
        }
        fs::write(&table, bytes).unwrap();
    }
    let db = Db::open(dir.path()).unwrap();
    let report = db.verify().unwrap();
    let place = |error: &Error| match error {
        Error::Corruption { file, offset, .. } => (file.clone(), *offset),
        error => panic!("{error}"),
    };
    let mut found: Vec<_> = report.problems.iter().map(place).collect();
    found.sort();
    expected.sort();
    assert_eq!(found, expected);
    assert!(report.entries > 600 && report.entries < 800, "{report:?}");
    drop(db);
    // Salvage reports the same losses.
    let lost = Db::builder(dir.path()).salvage().unwrap().write_to(dir.path().with_extension("new")).unwrap().lost_keys;
    fs::remove_dir_all(dir.path().with_extension("new")).unwrap();
    assert!(
        lost.len() == 6 && lost.iter().all(|lost| found.contains(&(lost.file.clone(), lost.bytes.start))),
        "{lost:?}"
    );
}

#[test]
fn rule_10_a_missing_file_that_the_manifest_names_is_an_error_and_nothing_is_removed() {
    // Catches a database that opens without a part of its data, and orphans that a failed open removes.
    let original = TempDir::new().unwrap();
    let db = Db::open(original.path()).unwrap();
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    db.insert("b", "2").unwrap();
    drop(db);
    for part in [".sst", ".log", "MANIFEST"] {
        let dir = copy(original.path());
        let path = the_file(dir.path(), part);
        fs::remove_file(&path).unwrap();
        fs::write(dir.path().join("000900.sst"), "an orphan").unwrap();
        let listing = files(dir.path(), "");
        let error = Db::open(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::Corruption { file, .. } if *file == path), "{part}: {error}");
        assert_eq!(files(dir.path(), ""), listing, "{part}");
    }
}

#[test]
fn rule_10_orphans_are_removed_after_recovery_and_their_numbers_not_used_again() {
    // Catches leftovers of crashes that fill the disk, and a new file under an orphan's name.
    let dir = TempDir::new().unwrap();
    drop(Db::open(dir.path()).unwrap());
    for name in ["000900.sst", "MANIFEST-000901", "CURRENT.tmp", "000000.log"] {
        fs::write(dir.path().join(name), "left by a crash").unwrap();
    }
    let db = Db::open(dir.path()).unwrap();
    assert!(db.recovery().orphans_removed >= 4, "{:?}", db.recovery());
    db.insert("a", "1").unwrap();
    db.flush().unwrap();
    for (part, one) in [(".sst", 1), ("MANIFEST", 1), (".log", 1), ("CURRENT", 1)] {
        let names = files(dir.path(), part);
        assert!(names.len() == one || part == ".log", "{names:?}");
        let above = |name: &String| {
            name.chars().filter(char::is_ascii_digit).collect::<String>().parse::<u64>().is_ok_and(|n| n > 901)
        };
        assert!(part == "CURRENT" || names.iter().all(above), "{names:?}");
    }
}

#[test]
fn rule_10_tables_beside_a_torn_manifest_are_set_aside_and_not_deleted() {
    // Catches damage to the last edit after which the edit's table is deleted as an orphan. Such damage looks like a tear.
    let (dir, db) = fresh();
    db.insert("a", "1").unwrap();
    // The load is in no log, so only the lost edit names its table.
    db.ingest([("b", "2")]).unwrap();
    drop(db);
    let (table, manifest) = (newest_table(dir.path()), the_file(dir.path(), "MANIFEST"));
    cut(&manifest, 1);
    let torn = copy(dir.path());
    let hook = unmapped();
    let db = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap();
    assert!(db.recovery().manifest_tail_dropped && db.recovery().manifest_tail_bytes > 0);
    // The table's new name is durable before the new manifest, which has no tear and so no suspects.
    let events = hook.take();
    let renamed = position(&events, 0, Op::RenameTo, ".sst.aside");
    assert_eq!(events[renamed + 1].op, Op::SyncDir);
    assert!(renamed < position(&events, 0, Op::Create, "MANIFEST"));
    let aside = table.with_extension("sst.aside");
    assert_eq!(db.recovery().set_aside, std::slice::from_ref(&aside));
    assert!(aside.exists() && !table.exists());
    assert_eq!(keys(&db), ["a"]);
    let content = fs::read(&aside).unwrap();
    for index in 0..events.len() as u64 {
        let dir = copy(torn.path());
        let faults = FaultFs::of_system();
        faults.fail_mutation(index, Fault::Device, Repeat::FromThenOn);
        drop(Db::builder(dir.path()).file_system(Arc::new(faults)).open());
        assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a"], "operation {index}");
        let aside = dir.path().join(aside.file_name().unwrap());
        assert!(fs::read(aside).is_ok_and(|found| found == content), "operation {index}");
    }
}

#[test]
fn a_stray_file_with_a_number_out_of_reach_is_refused_before_anything_is_written() {
    // Catches a counter that continues beyond the largest number that an edit may hold: the next open would refuse the manifest.
    for stray in
        ["9223372036854775807.sst", "9223372036854775806.log", "MANIFEST-9223372036854775000", "99999999999.log.aside"]
    {
        let (dir, db) = fresh();
        db.insert("a", "1").unwrap();
        drop(db);
        fs::write(dir.path().join(stray), "stray").unwrap();
        let listing = files(dir.path(), "");
        let error = Db::open(dir.path()).unwrap_err();
        assert!(matches!(&error, Error::Corruption { file, .. } if file == dir.path()), "{stray}: {error}");
        assert_eq!(files(dir.path(), ""), listing, "{stray}");
        fs::remove_file(dir.path().join(stray)).unwrap();
        assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a"], "{stray}");
    }
}

#[test]
fn an_open_that_fails_before_it_counts_leaves_no_file_behind() {
    // Catches opens of a database on a full disk that fail and take more space each time.
    let original = TempDir::new().unwrap();
    let db = Db::open(original.path()).unwrap();
    db.insert("a", "1").unwrap();
    drop(db);
    let mut before = files(original.path(), "");
    let takes_space = |event: &Event| matches!(event.op, Op::Create | Op::Write | Op::Sync);
    let renamed = {
        let (dir, hook) = (copy(original.path()), unmapped());
        drop(Db::builder(dir.path()).file_system(hook.arc()).open().unwrap());
        let events = hook.take();
        let renamed = position(&events, 0, Op::Rename, "CURRENT");
        events[..renamed].iter().filter(|event| takes_space(event)).count()
    };
    assert!(renamed > 8, "only {renamed} operations before the rename");
    // The failed open has freed the reserve, which was not enough.
    before.retain(|name| name != "RESERVE");
    for index in 0..renamed {
        for full in [Answer::Fail(ErrorKind::StorageFull), Answer::Short(20)] {
            let (dir, hook, seen) = (copy(original.path()), unmapped(), AtomicUsize::new(0));
            hook.set(move |event| match takes_space(event).then(|| seen.fetch_add(1, Ordering::SeqCst)) {
                Some(n) if n == index && event.op == Op::Write => full,
                Some(n) if n >= index => Answer::Fail(ErrorKind::StorageFull),
                _ => Answer::Go,
            });
            let error = Db::builder(dir.path()).file_system(hook.arc()).open().unwrap_err();
            assert!(is_full(&error), "{error}");
            assert_eq!(files(dir.path(), ""), before, "operation {index}, {full:?}");
            assert_eq!(keys(&Db::open(dir.path()).unwrap()), ["a"]);
        }
    }
}
