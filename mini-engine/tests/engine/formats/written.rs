//! Of databases as the engine leaves them the page's reader finds what was written.

use crate::formats::database::{self, Answer, Database, Map};
use crate::formats::table::Table;
use crate::formats::workload::{batch, files, write};
use crate::support::{entries as all, *};

/// The policies and their numbers on disk.
const POLICIES: [(Compaction, u64); 4] =
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

/// Many small tables on several levels, with versions that snapshots hold, and a log behind them: the snapshots, and what
/// each sees.
fn fill(db: &Db) -> Vec<(Snapshot, Map)> {
    let (mut map, mut states) = (Map::new(), vec![]);
    for round in 0..8 {
        write(db, round * 40, round * 40 + 40, &mut map);
        if round == 5 {
            // All in one table or more with a single seqno each.
            let load: Map = (0..60u64).map(|n| (format!("load/{n:02}").into_bytes(), vec![b'l'; 100])).collect();
            db.ingest(&load).unwrap();
            map.extend(load);
        } else if round > 5 {
            // Of rounds between which there is a snapshot they overlap.
            let (start, end) = (format!("load/{round}").into_bytes(), format!("load/{round}8").into_bytes());
            db.remove_range(&b"load/0"[..]..&end).unwrap();
            db.remove_range(&start..&end).unwrap();
            map.retain(|held, _| !(&b"load/0"[..]..&end).contains(&&held[..]));
        }
        db.flush().unwrap();
        states.push((db.snapshot(), map.clone()));
    }
    // What merges have done so far depends on their pace. From here on it does not.
    db.compact_range(..).unwrap();
    // Little, so that policies with tiers leave it in runs of its own; an odd number of tables, so that the last stays on level 0.
    for n in 400..407 {
        write(db, n, n + 1, &mut map);
        db.flush().unwrap();
        db.wait_for_compactions().unwrap();
    }
    // Too little for another memtable: nothing changes any more.
    write(db, 407, 411, &mut map);
    states.push((db.snapshot(), map));
    states
}

/// What all the databases of a test have, so that nothing of the page goes unread.
#[derive(Default)]
struct Seen {
    compressions: BTreeSet<u8>,
    levels: BTreeSet<usize>,
    tags: BTreeSet<u8>,
    most_runs: usize,
    most_blocks: usize,
    most_partitions: usize,
    /// Keys whose versions are in more than one table.
    shared_keys: usize,
    tombstones: u64,
    range_tombstones: u64,
    /// Tables with ranges that overlap, and with such as do not.
    overlapping: (usize, usize),
    logged: usize,
}

impl Seen {
    fn see(&mut self, database: &Database) {
        let runs: BTreeSet<(usize, u64)> = database
            .manifest
            .tables
            .iter()
            .filter(|table| table.level > 0)
            .map(|table| (table.level, table.run))
            .collect();
        let runs_of = |level: usize| runs.iter().filter(|run| run.0 == level).count();
        self.most_runs = self.most_runs.max((1..8).map(runs_of).max().unwrap_or_default());
        self.levels.extend(database.manifest.tables.iter().map(|table| table.level));
        self.tags.extend(&database.manifest.tags);
        let tables = || database.tables.values();
        self.compressions.extend(tables().flat_map(|table| &table.compressions));
        self.most_blocks =
            self.most_blocks.max(tables().map(|table| table.compressions.len()).max().unwrap_or_default());
        self.most_partitions = self.most_partitions.max(tables().map(Table::partitions).max().unwrap_or_default());
        let keys = tables().map(|table| table.properties.keys as usize).sum::<usize>();
        let different: BTreeSet<_> = tables().flat_map(|table| &table.entries).map(|entry| &entry.key).collect();
        self.shared_keys += keys - different.len();
        self.tombstones += tables().map(|table| table.properties.tombstones).sum::<u64>();
        self.range_tombstones += tables().map(|table| table.distinct_ranges).sum::<u64>();
        let overlaps =
            |overlap: bool| tables().filter(|table| !table.ranges.is_empty() && table.overlap == overlap).count();
        self.overlapping = (self.overlapping.0 + overlaps(true), self.overlapping.1 + overlaps(false));
        self.logged += database.logs.iter().map(|(_, log)| log.batches.len()).sum::<usize>();
    }
}

#[test]
fn tables_manifests_and_logs_read_by_the_page_alone_hold_every_state_that_was_written() {
    // Catches a page that says something else than the engine does, at any byte of the three formats.
    let mut seen = Seen::default();
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
        // The figures, too.
        let manifest = &database.manifest;
        assert_eq!(manifest.user_bytes, metrics.flushed_user_bytes);
        for (level, figures) in metrics.levels.iter().enumerate() {
            let tables = || manifest.tables.iter().filter(|table| table.level == level);
            let held = (tables().count() as u64, tables().map(|table| table.size).sum::<u64>());
            assert_eq!(held, (figures.tables, figures.bytes), "{policy:?}, level {level}");
            assert_eq!(
                manifest.work[level],
                [figures.arrived, figures.read, figures.written],
                "{policy:?}, level {level}"
            );
        }
        assert_eq!(manifest.policy, Some(number));
        seen.see(&database);
    }
    assert_eq!(seen.compressions, BTreeSet::from([0, 1, 2]));
    assert!(seen.overlapping.0 > 0 && seen.overlapping.1 > 0, "{:?}", seen.overlapping);
    let Seen { levels, most_runs, most_blocks, .. } = &seen;
    assert!(
        levels.len() > 2 && *most_runs > 1 && *most_blocks > 3,
        "{levels:?}, {most_runs} runs, {most_blocks} blocks"
    );
    assert!(seen.most_partitions > 3, "{} partitions", seen.most_partitions);
    assert!(seen.shared_keys > 0 && seen.tombstones > 0 && seen.range_tombstones > 0 && seen.logged > 0);
    assert!(seen.tags.is_superset(&(1..=8).collect()), "{:?}", seen.tags);
}

#[test]
fn a_filter_read_by_the_page_alone_has_each_key_and_few_others() {
    // Catches bits that are somewhere else than the page says: the reader of tables checks that no key is denied.
    for (bits, most) in [(0, 3999), (2, 2000), (10, 80)] {
        let (dir, db) = opened(|b| b.filter_bits_per_key(bits).partition_bytes(4096));
        // In between are absent keys.
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
fn several_logs_with_and_without_compression_are_one_sequence() {
    // Catches a page that leaves out how a compressed batch is stored, or how one log follows another.
    for compress in [false, true] {
        let (dir, mut map) = (TempDir::new().unwrap(), Map::new());
        let builder = Db::builder(dir.path()).log_compression(compress).memtable_bytes(16 << 10);
        // So that memtables stay in their logs.
        let no_tables = FaultFs::new(Arc::new(StdFs));
        no_tables.refuse_files(Some("sst"));
        let builder = builder.immutable_memtables(64).file_system(Arc::new(no_tables));
        let db = builder.open().unwrap();
        write(&db, 0, 60, &mut map);
        drop(db);
        let database = read(dir.path());
        let compressed: usize = database.logs.iter().map(|(_, log)| log.compressed).sum();
        assert_eq!((compressed > 0, database.logs.len() > 3), (compress, true), "{compressed}");
        assert!(database.state(u64::MAX) == map);
    }
}

#[test]
fn a_quarantined_table_hides_what_the_page_says_it_hides() {
    // Catches a rule of quarantine that the page leaves out: an older version than the right one would be read.
    let (dir, mut map) = (TempDir::new().unwrap(), Map::new());
    let open = |mode| Db::builder(dir.path()).l0_trigger(100).recovery_mode(mode).open().unwrap();
    let db = open(RecoveryMode::Strict);
    for round in 0..3 {
        write(&db, round * 20, round * 20 + 20, &mut map);
        db.flush().unwrap();
    }
    // Within the range of the second table, above all of its seqnos.
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
