//! A database of each format version, which all later versions must open: one directory each under `tests/fixtures`.
//!
//! `FIXTURE_WRITE=name cargo test -p mini-engine --test engine fixtures` makes `tests/fixtures/name` in the current format. Commit it with a new
//! format version. Existing fixtures are never regenerated.

use crate::support::*;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

fn copy_fixture(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(|entry| entry.unwrap()) {
        // Skips the lock file, which a fixture does not need.
        if entry.file_name() != "LOCK" {
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
}

/// Writes to the database: 12 rounds of batches, a flush after each round except the last two, then a compaction that is stopped. Keys are
/// overwritten, removed, empty, binary and long; values are empty, compressible text, and incompressible noise.
fn write_all(db: Option<(&Db, &FaultFs, &Path)>) -> Map {
    let mut model = Map::new();
    for round in 0..12u32 {
        let mut batch = WriteBatch::new();
        for n in 0..24u32 {
            let key = match n % 6 {
                0 => format!("key{:03}", n * (round + 1) % 97).into_bytes(),
                1 => (n * 7 + round).to_be_bytes().to_vec(),
                2 if round == 3 => vec![],
                3 => [&b"long/"[..], &[b'k'; 300], &n.to_be_bytes()].concat(),
                _ => format!("path/{}/{}", n % 5, (n + round) % 11).into_bytes(),
            };
            if (n + round) % 5 == 4 {
                batch.remove(&key).unwrap();
                model.remove(&key);
                continue;
            }
            let value = match n % 4 {
                0 => Vec::new(),
                1 => format!("round {round} of {n}, ").repeat(9).into_bytes(),
                _ => (0..40u32)
                    .map(|i| ((i * 7919 + n * 104_729 + round).wrapping_mul(2_654_435_761) >> 24) as u8)
                    .collect(),
            };
            batch.insert(&key, &value).unwrap();
            model.insert(key, value);
        }
        if let Some((db, fs, path)) = db {
            let durability = if round % 2 == 0 { Durability::Synced } else { Durability::Buffered };
            db.write(batch, durability).unwrap();
            let _between = remove_ranges(db, round);
            if round == 8 {
                pad_log(db);
            }
            if round < 10 {
                db.flush().unwrap();
                // Afterwards the old log is removed, or its file is kept for the next log but one.
                wait_while(|| files(path, ".log").len() > 1);
            }
            if round == 9 {
                stop_a_compaction(db, fs);
            }
        }
    }
    model
}

/// Writes keys and removes them by ranges, in tables and in logs. A snapshot between overlapping ranges keeps them separate in tables.
fn remove_ranges(db: &Db, round: u32) -> Option<Snapshot> {
    let mut batch = WriteBatch::new();
    for n in 0..20 {
        batch.insert(format!("path/gone/{n}"), [n; 30]).unwrap();
    }
    batch.remove_range("path/gone/".."path/gone/15").unwrap();
    batch.remove_prefix("path/gone/1").unwrap();
    if round % 3 == 2 {
        batch.remove_range("path/gone/2"..="path/gone/9").unwrap();
        db.write(batch, Durability::Synced).unwrap();
        None
    } else {
        db.write(batch, Durability::Synced).unwrap();
        if round < 10 {
            db.flush().unwrap();
        }
        db.remove_prefix("path/gone/").unwrap();
        let between = db.snapshot();
        db.remove_range("path/gone/1".."path/gone/5").unwrap();
        Some(between)
    }
}

/// Writes keyspaces in tables and in logs: one with a compression of its own, one with a long prefix, and a dropped one. Returns their contents.
fn write_keyspaces(db: Option<&Db>) -> BTreeMap<String, Map> {
    let mut all: BTreeMap<String, Map> = BTreeMap::new();
    let dense = KeyspaceOptions::default().compression(Compression::Zstd { level: 1 });
    for name in ["users", "dense", "gone"].into_iter().map(str::to_owned).chain((4..=250).map(|n| format!("many {n}")))
    {
        let space = db.map(|db| match &*name {
            "dense" => db.keyspace_with(&name, dense.clone()).unwrap(),
            _ => db.keyspace(&name).unwrap(),
        });
        let entries = if name.starts_with("many") { 1 } else { 40u32 };
        for n in 0..entries {
            let (key, value) = ([&[0xff, n as u8][..], b"of ", name.as_bytes()].concat(), name.repeat(9).into_bytes());
            space.iter().for_each(|space| space.insert(&key, &value).unwrap());
            all.entry(name.clone()).or_default().insert(key, value);
        }
        if name == "gone" {
            db.iter().for_each(|db| db.flush().unwrap());
        }
    }
    db.iter().for_each(|db| db.drop_keyspace("gone").unwrap());
    all.remove("gone");
    all
}

/// The contents of the keyspaces of a database, except the default one.
fn keyspaces(db: &Db) -> BTreeMap<String, Map> {
    let contents = |name: &String| pairs(db.keyspace(name).unwrap().iter()).into_iter().collect();
    db.keyspaces().into_iter().map(|name| (name.clone(), contents(&name))).collect()
}

/// Makes the present log longer than the last log, which will reuse its file. So frames of the present log remain behind the end of the last log.
fn pad_log(db: &Db) {
    for _ in 0..20 {
        let mut batch = WriteBatch::new();
        batch.insert("padding", [7; 400]).unwrap();
        batch.remove("padding").unwrap();
        db.write(batch, Durability::Synced).unwrap();
    }
}

/// Compacts everything, and stops after two pieces, as at a full disk: tables stay narrowed, and a compact pointer records where the compaction
/// continues.
fn stop_a_compaction(db: &Db, fs: &FaultFs) {
    let made = AtomicUsize::new(0);
    fs.set(move |event| match event.is(Op::Create, ".sst") && made.fetch_add(1, Ordering::SeqCst) >= 2 {
        true => Answer::Fail(ErrorKind::StorageFull),
        false => Answer::Go,
    });
    let stopped = db.compact_range(..);
    assert!(matches!(stopped, Err(Error::Io { op: "create", .. })), "{stopped:?}");
    assert!(narrowed(db) > 0);
}

fn narrowed(db: &Db) -> u64 {
    sum(&db.metrics(), |level| level.narrowed)
}

/// Makes a fixture: tables of several compressions and partitions on two levels, some of them narrowed, and a log with compressed
/// and uncompressed frames.
fn make(directory: &Path) {
    assert!(!directory.exists(), "{} is there: a fixture is never made anew", directory.display());
    let room = TempDir::new().unwrap();
    let path = room.path().join("db");
    let fs = unmapped();
    let builder = Db::builder(&path).block_bytes(512).partition_bytes(128).l0_trigger(100).table_file_bytes(1024);
    let builder = builder.max_compaction_bytes(1024).log_compression(true);
    let levels = [Compression::Lz4, Compression::Zstd { level: 3 }];
    let db = builder.compression_per_level(levels).file_system(fs.arc()).open().unwrap();
    // Written before the stopped compaction; some of the keys are written again after it, in the last log.
    write_keyspaces(Some(&db));
    write_all(Some((&db, &fs, &path)));
    for name in ["users", "many 250"] {
        let space = db.keyspace(name).unwrap();
        pairs(space.iter()).iter().for_each(|(key, value)| space.insert(key, value).unwrap());
    }
    drop(db);
    copy_fixture(&path, directory);
}

#[test]
fn databases_of_every_format_version_open_and_hold_what_they_held() {
    // Catches a change of a format that can no longer read files of an older version.
    if let Ok(name) = std::env::var("FIXTURE_WRITE") {
        make(&fixtures().join(name));
    }
    let (expected, of_keyspaces) = (write_all(None), write_keyspaces(None));
    let mut opened = Vec::new();
    for fixture in fs::read_dir(fixtures()).unwrap().map(|entry| entry.unwrap().path()) {
        let name = fixture.file_name().unwrap().to_string_lossy().into_owned();
        let room = TempDir::new().unwrap();
        copy_fixture(&fixture, room.path());
        // Catches a page `formats.md` that no longer describes the files of an older build.
        let by_page = crate::formats::read(&fixture);
        assert!(by_page.state(u64::MAX) == expected, "{name}");
        let mut read = by_page.keyspaces(u64::MAX);
        read.remove("");
        assert!(read == of_keyspaces, "{name}");
        let reader = Db::builder(room.path()).read_only(true).open().unwrap();
        assert!(narrowed(&reader) > 0 && sum(&reader.metrics(), |level| level.range_tombstones) > 0, "{name}");
        assert!(keyspaces(&reader) == of_keyspaces, "{name}");
        drop(reader);
        // Salvage finds the same contents, from narrowed tables, compressed blocks and recycled logs too.
        let saved = room.path().with_extension("saved");
        let report = Db::builder(room.path()).salvage().unwrap().write_to(&saved).unwrap();
        assert!(report.is_complete() && report.unknown().is_empty(), "{name}: {report}");
        let new = Db::open(&saved).unwrap();
        assert!(entries(&new) == expected && keyspaces(&new) == of_keyspaces, "{name}");
        drop(new);
        fs::remove_dir_all(&saved).unwrap();
        for _ in 0..2 {
            let opened = Db::builder(room.path()).create_if_missing(false).open();
            let db = opened.unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(db.recovery().findings().is_empty(), "{name}: {}", db.recovery());
            assert_eq!(entries(&db), expected, "{name}");
            assert!(keyspaces(&db) == of_keyspaces, "{name}");
            assert!(pairs(db.iter().rev()).into_iter().eq(expected.clone().into_iter().rev()), "{name}");
            assert!(expected.iter().all(|(key, value)| db.get(key).unwrap().as_deref() == Some(value)), "{name}");
            assert_sound(&db);
            // The second open reads the current format.
            db.insert("new", "").unwrap();
            db.remove("new").unwrap();
            db.close().unwrap();
        }
        opened.push(name);
    }
    opened.sort();
    assert_eq!(opened, ["version3"]);
}
