//! The reader written from the page finds the written data in databases of the engine.

use crate::formats::database::{self, Answer, Database, Map};
use crate::formats::workload::{batch, files, write};
use crate::support::{entries as all, *};

/// The policies and their numbers on disk. A new one belongs here, in the reader (`manifest.rs`), and on the page.
const POLICIES: [(Compaction, u64); Compaction::ALL.len()] =
    [(Compaction::Leveled, 1), (Compaction::Tiered, 2), (Compaction::LazyLeveled, 3), (Compaction::Partial, 4)];

pub(crate) fn read(dir: &Path) -> Database {
    database::read(&files(dir)).unwrap_or_else(|what| panic!("{}: {what}", dir.display()))
}

fn builder(dir: &Path, policy: Compaction) -> Builder {
    let levels = [Compression::Lz4, Compression::None, Compression::Zstd { level: 3 }];
    let builder =
        Db::builder(dir).compaction(policy).compression_per_level(levels).block_bytes(512).partition_bytes(128);
    builder.memtable_bytes(64 << 10).table_file_bytes(8 << 10).l0_trigger(1).size_ratio(4).level1_bytes(16 << 10)
}

/// Makes many small tables on several levels, with versions that snapshots retain, and a later log. Returns the snapshots, and the expected
/// contents of each.
fn fill(db: &Db) -> Vec<(Snapshot, Map)> {
    let (mut map, mut states) = (Map::new(), vec![]);
    for round in 0..8 {
        write(db, round * 40, round * 40 + 40, &mut map);
        if round == 5 {
            // All entries of the load have one seqno, in one or more tables.
            let load: Map = (0..60u64).map(|n| (format!("load/{n:02}").into_bytes(), vec![b'l'; 100])).collect();
            db.ingest(&load).unwrap();
            map.extend(load);
        } else if round > 5 {
            // Ranges of rounds with a snapshot in between overlap.
            let (start, end) = (format!("load/{round}").into_bytes(), format!("load/{round}8").into_bytes());
            db.remove_range(&b"load/0"[..]..&end).unwrap();
            db.remove_range(&start..&end).unwrap();
            map.retain(|held, _| !(&b"load/0"[..]..&end).contains(&&held[..]));
        }
        db.flush().unwrap();
        states.push((db.snapshot(), map.clone()));
    }
    // The compactions so far depend on timing; the state after this compaction does not.
    db.compact_range(..).unwrap();
    // So few batches that policies with tiers leave them in separate runs; an odd number of tables, so that the last one stays on level 0.
    for n in 400..407 {
        write(db, n, n + 1, &mut map);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    // Too few batches to fill a memtable, so they stay in the log.
    write(db, 407, 411, &mut map);
    states.push((db.snapshot(), map));
    states
}

/// The features that the databases of a test must have in total, so that each part of the page is tested.
const WANTED: &str = "compression 0, compression 1, compression 2, tag 1, tag 2, tag 3, tag 4, tag 5, tag 6, tag 7, tag 8, tag 16, several levels, \
                      several runs, several blocks, several partitions, a key in several tables, tombstones, ranges that overlap, \
                      ranges apart, logged, expiring, expiring logged";

/// The features of a database, with the names used above.
fn met(database: &Database) -> BTreeSet<String> {
    let (manifest, tables) = (&database.manifest, || database.tables.values());
    let runs: BTreeSet<_> =
        manifest.tables.iter().map(|table| (table.level, table.run)).filter(|run| run.0 > 0).collect();
    let levels: BTreeSet<_> = manifest.tables.iter().map(|table| table.level).collect();
    let keys = tables().map(|table| table.properties.keys as usize).sum::<usize>();
    let different: BTreeSet<_> = tables().flat_map(|table| &table.entries).map(|entry| &entry.key).collect();
    let ranges = |overlap: bool| tables().any(|table| !table.ranges.is_empty() && table.overlap == overlap);
    let logged = || database.logs.iter().flat_map(|(_, log)| &log.batches).flat_map(|(_, entries)| entries);
    let facts = [
        ("several levels", levels.len() > 2),
        ("several runs", (1..8).any(|level| runs.iter().filter(|run| run.0 == level).count() > 1)),
        ("several blocks", tables().any(|table| table.compressions.len() > 3)),
        ("several partitions", tables().any(|table| table.partitions() > 3)),
        ("a key in several tables", keys > different.len()),
        ("tombstones", tables().any(|table| table.properties.tombstones > 0)),
        ("ranges that overlap", ranges(true)),
        ("ranges apart", ranges(false)),
        ("expiring", tables().any(|table| table.properties.expiring.0 > 0)),
        ("expiring logged", logged().any(|entry| entry.expires.is_some())),
        ("logged", database.logs.iter().any(|(_, log)| !log.batches.is_empty())),
    ];
    let facts = facts.into_iter().filter(|fact| fact.1).map(|fact| fact.0.to_owned());
    let compressions = tables().flat_map(|table| &table.compressions).map(|id| format!("compression {id}"));
    facts.chain(compressions).chain(manifest.tags.iter().map(|tag| format!("tag {tag}"))).collect()
}

#[test]
fn tables_manifests_and_logs_read_by_the_page_alone_hold_every_state_that_was_written() {
    // Catches a page that differs from the engine at any byte of the three formats.
    let mut seen = BTreeSet::new();
    for (policy, number) in POLICIES {
        let dir = TempDir::new().unwrap();
        let db = builder(dir.path(), policy).open().unwrap();
        let states = fill(&db);
        let metrics = db.metrics();
        drop(db);
        let database = read(dir.path());
        for (snapshot, state) in &states {
            assert!(database.state(snapshot.seqno()) == *state, "{policy:?} at {}", snapshot.seqno());
        }
        assert_eq!(Some(database.last_seqno), states.last().map(|(snapshot, _)| snapshot.seqno()), "{policy:?}");
        // Compares the statistics, too.
        let manifest = &database.manifest;
        assert_eq!(manifest.user_bytes, metrics.flushed_user_bytes);
        for (level, figures) in metrics.levels.iter().enumerate() {
            let tables = || manifest.tables.iter().filter(|table| table.level == level);
            let held = (tables().count() as u64, tables().map(|table| table.size).sum::<u64>());
            assert_eq!(held, (figures.tables, figures.bytes), "{policy:?}, level {level}");
            let work = [figures.arrived, figures.read, figures.written];
            assert_eq!(manifest.work[level], work, "{policy:?}, level {level}");
        }
        assert_eq!(manifest.policy, Some(number));
        seen.extend(met(&database));
    }
    let missing: Vec<&str> = WANTED.split(", ").filter(|name| !seen.contains(*name)).collect();
    assert_eq!(missing, [""; 0]);
}

#[test]
fn keyspaces_read_by_the_page_alone_hold_what_was_written_to_each() {
    // Catches a page with a wrong prefix of keyspaces, and names that the manifest of a later open lacks.
    let dir = TempDir::new().unwrap();
    let open = || builder(dir.path(), Compaction::Leveled).open().unwrap();
    let mut expected: BTreeMap<String, Map> = BTreeMap::new();
    let db = open();
    for n in 1..260u32 {
        // The last keyspaces have longer prefixes.
        let (name, space) = (format!("space {n}"), db.keyspace(&format!("space {n}")).unwrap());
        let dense = KeyspaceOptions::default().compression(Compression::Zstd { level: 3 });
        match n % 50 {
            0 => drop(db.keyspace_with(&name, dense).unwrap()),
            2 => drop(db.keyspace_with(&name, dense.expire_after(Duration::from_secs(365 * 86_400))).unwrap()),
            1 => {
                space.insert("dropped", "with it").unwrap();
                db.drop_keyspace(&name).unwrap();
                continue;
            }
            _ => {}
        }
        let contents = expected.entry(name).or_default();
        for key in [&b"\xff\0"[..], b"", b"key"] {
            space.insert(key, n.to_le_bytes()).unwrap();
            contents.insert(key.to_vec(), n.to_le_bytes().to_vec());
        }
        if n % 3 == 0 {
            space.remove_range("k"..).unwrap();
            contents.retain(|key, _| key.is_empty());
            space.insert([0xff, 1], "").unwrap();
            contents.insert(vec![0xff, 1], vec![]);
        }
        if n == 100 {
            db.flush().unwrap();
        }
    }
    let default = [&b"\xff"[..], b"\xff\xf9", b"\xfe", b""].map(|key| (key.to_vec(), b"default".to_vec()));
    default.iter().for_each(|(key, value)| db.insert(key, value).unwrap());
    expected.insert(String::new(), default.into());
    drop(db);
    let mut tags = BTreeSet::new();
    for _ in 0..2 {
        let database = read(dir.path());
        assert!(database.keyspaces(u64::MAX) == expected);
        tags.extend(database.manifest.tags);
        drop(open());
    }
    assert!(tags.is_superset(&[13, 14, 15].into()), "{tags:?}");
}

#[test]
fn a_filter_read_by_the_page_alone_has_each_key_and_few_others() {
    // Catches filter bits at other places than on the page: the reader of tables checks that the filter rejects no stored key.
    for (bits, most) in [(0, 3999), (2, 2000), (10, 80)] {
        let (dir, db) = opened(|b| b.filter_bits_per_key(bits).partition_bytes(4096));
        // The numbers in between are absent keys.
        for n in 0..4000u64 {
            db.insert((2 * n).to_be_bytes(), "").unwrap();
        }
        db.close().unwrap();
        let database = read(dir.path());
        let table = database.tables.values().next().unwrap();
        assert_eq!((database.tables.len(), table.is_filtered()), (1, bits > 0));
        assert_eq!(table.partitions() > 1, bits > 2, "{} partitions", table.partitions());
        let passes = |n: &u64| table.may_contain(&(2 * n + 1).to_be_bytes());
        let passing = (0..3999).filter(passes).count();
        assert!(
            passing <= most && (passing > 0 || bits > 2),
            "{passing} of 3999 absent keys pass at {bits} bits a key"
        );
    }
}

#[test]
fn a_quarantined_table_hides_what_the_page_says_it_hides() {
    // Catches a rule of quarantine that the page omits: its reader would return an older version than the right one.
    let (dir, mut map) = (TempDir::new().unwrap(), Map::new());
    let open = |mode| Db::builder(dir.path()).l0_trigger(100).recovery_mode(mode).open().unwrap();
    let db = open(RecoveryMode::Strict);
    for round in 0..3 {
        write(&db, round * 20, round * 20 + 20, &mut map);
        db.flush().unwrap();
    }
    // In the key range of the second table, with greater seqnos than in that table.
    db.write(batch(77, &mut map), Durability::Buffered).unwrap();
    db.close().unwrap();
    let suspect = read(dir.path()).manifest.tables[2].number;
    let path = dir.path().join(format!("{suspect:06}.sst"));
    flip(&path, 10);

    let db = open(RecoveryMode::Quarantine);
    let database = read(dir.path());
    assert_eq!(database.manifest.quarantined.iter().map(|table| table.number).collect::<Vec<_>>(), [suspect]);
    let (mut unknown, mut known) = (0, 0);
    for key in database.keys() {
        match (database.get(key, u64::MAX), db.get(key)) {
            (Answer::Value(value), Ok(Some(found))) if value == &found[..] => known += 1,
            (Answer::Nothing, Ok(None)) => {}
            (Answer::Unknown, Err(Error::Corruption { .. })) => unknown += 1,
            (by_page, found) => panic!("{}: {by_page:?}, the engine says {found:?}", key.escape_ascii()),
        }
    }
    assert!(unknown > 0 && known > 0, "{unknown} unknown, {known} known");
    db.drop_quarantined(suspect).unwrap();
    let dropped = read(dir.path());
    assert!(dropped.manifest.quarantined.is_empty() && dropped.manifest.tags.contains(&12));
    assert!(dropped.state(u64::MAX) == all(&db));
}
