//! Merges in pieces: what many processes that live shortly leave, and how much space merges take while they run.

use std::collections::BTreeMap;
use std::sync::Arc;

use mini_engine::fs::MemFs;
use mini_engine::random::Random;
use mini_engine::{Builder, Compaction, Compression, Db, Metrics};

use crate::compaction::POLICIES;

const DIR: &str = "/db";
const KEYS: u64 = 4000;

type Map = BTreeMap<String, Vec<u8>>;

fn key(n: u64) -> String {
    format!("key{n:06}")
}

fn value(random: &mut Random) -> Vec<u8> {
    (0..1000).map(|_| random.next() as u8).collect()
}

/// A database of 4 MB is to these options as one of 4 GB is to those that are not asked for.
fn builder(mem: &MemFs, policy: Compaction) -> Builder {
    let builder = Db::builder(DIR).compaction(policy).compression(Compression::None).file_system(Arc::new(mem.clone()));
    builder.memtable_bytes(64 << 10).table_file_bytes(64 << 10).l0_trigger(4).cache_bytes(0)
}

/// A database in one run.
fn filled(mem: &MemFs, policy: Compaction) -> Map {
    let (db, mut random) = (builder(mem, policy).open().unwrap(), Random(1));
    let map: Map = (0..KEYS).map(|n| (key(n), value(&mut random))).collect();
    db.ingest(&map).unwrap();
    db.close().unwrap();
    map
}

fn sum(metrics: &Metrics, of: impl Fn(&mini_engine::LevelMetrics) -> u64) -> u64 {
    metrics.levels.iter().map(of).sum()
}

#[test]
fn processes_that_live_shortly_finish_merges_together() {
    // Catches a merge whose work is lost whenever a process ends: each would leave one more table, and read more of them.
    for policy in POLICIES {
        let mem = MemFs::default();
        let (mut map, mut random) = (filled(&mem, policy), Random(2));
        let (mut most, mut written, mut narrowed) = (0, 0, 0);
        let before = mem.count_bytes_of(".sst");
        for _ in 0..160 {
            let db = builder(&mem, policy).open().unwrap();
            let (key, value) = (key(random.below(KEYS)), value(&mut random));
            db.insert(&key, &value).unwrap();
            map.insert(key, value);
            let metrics = db.metrics();
            most = most.max(metrics.levels.first().map_or(0, |level| level.tables));
            narrowed = narrowed.max(sum(&metrics, |level| level.narrowed));
            written = sum(&metrics, |level| level.written);
            db.close().unwrap();
        }
        let db = builder(&mem, policy).open().unwrap();
        let tables = sum(&db.metrics(), |level| level.tables);
        println!("{policy:?}: {most} tables on level 0, {tables} in all, {narrowed} narrowed, {written} bytes merged");
        // The tables that come while sixteen processes do a merge, those that wait for it, and a few.
        assert!(most <= 2 * 16 + 8, "{policy:?}: {most} tables on level 0");
        assert!(tables <= KEYS / 64 + 48, "{policy:?}: {tables} tables");
        assert!(written > before, "{policy:?}: nothing was merged");
        assert!(db.verify().unwrap().problems.is_empty());
        let found: Map =
            db.iter().map(Result::unwrap).map(|(k, v)| (String::from_utf8(k.to_vec()).unwrap(), v.to_vec())).collect();
        assert!(found == map, "{policy:?}: it holds something else");
    }
}

/// The most bytes of files after any operation while as many keys as there are are written anew, for each byte of the data.
fn peak(policy: Compaction, level1_bytes: u64) -> f64 {
    let mem = MemFs::default();
    filled(&mem, policy);
    let data = mem.count_bytes_of(".sst");
    // One sixteenth of what a table has with options as they are, for each byte of the data: so there is little but what merges take.
    let builder = builder(&mem, policy).level1_bytes(level1_bytes).table_file_bytes(16 << 10).l0_trigger(2);
    let (db, mut random) = (builder.open().unwrap(), Random(3));
    for _ in 0..KEYS / 25 {
        (0..25).for_each(|_| db.insert(key(random.below(KEYS)), value(&mut random)).unwrap());
        db.flush().unwrap();
        // However slow the workers are.
        db.wait_for_compactions().unwrap();
    }
    mem.most_bytes() as f64 / data as f64
}

#[test]
fn merges_take_little_space_beside_the_data() {
    // Catches a merge that needs as much space as all its inputs until it ends.
    for level1_bytes in [64 << 20, 256 << 10] {
        let peaks = POLICIES.map(|policy| peak(policy, level1_bytes));
        println!("levels from {level1_bytes} bytes on: {peaks:.2?} of the data with {POLICIES:?}");
        let [leveled, tiered, lazy, partial] = peaks;
        assert!(leveled <= 1.3 && partial <= 1.3, "{peaks:.2?}");
        assert!(lazy <= 1.3 && tiered <= 2.2, "{peaks:.2?}");
    }
}
