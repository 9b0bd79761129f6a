//! Compares the counted costs of a log after many appends and purges with those of a new log.

use std::fs;
use std::path::Path;

use openraft::RaftLogReader;
use openraft::storage::RaftLogStorage;
use openraft_mini_engine::Logs;

use crate::support::{Log, append_soon, indexes_of, log_id, run, sets};

/// Entries that are kept behind each purge.
const KEPT: u64 = 1000;
/// Entries between two purges: openraft's default.
const STEP: u64 = 5000;

/// Bytes of purged entries that may be stored until they are removed together.
const REMOVED_TOGETHER: u64 = 8 << 20;
/// The least bytes of an entry.
const ENTRY_BYTES: u64 = 200;

/// The counted costs of a log with [`KEPT`] entries.
#[derive(Debug)]
struct Cost {
    files: u64,
    bytes: u64,
    tables: u64,
    range_tombstones: u64,
    /// Operations that the next open reads from the log of the database.
    replayed: u64,
    /// Blocks that are read from tables, or found in the cache, by a read of the last 100 entries.
    blocks: u64,
}

async fn append_and_purge(log: &mut Log, entries: u64) {
    for first in (0..entries).step_by(KEPT as usize) {
        append_soon(log, sets(1, first..first + KEPT, &"v".repeat(ENTRY_BYTES as usize))).await;
        let next = first + KEPT;
        if next.is_multiple_of(STEP) {
            log.purge(log_id(1, next - KEPT - 1)).await.unwrap();
        }
    }
}

/// Files and bytes in a directory.
fn usage(dir: &Path) -> (u64, u64) {
    let lens = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len());
    lens.fold((0, 0), |(files, bytes), len| (files + 1, bytes + len))
}

/// The cost of a log after `entries` appended entries.
fn cost(entries: u64) -> Cost {
    let dir = proof::TempDir::new().unwrap();
    let open = || {
        let logs = Logs::open(dir.path()).unwrap();
        let log: Log = logs.group(0).unwrap();
        (logs, log)
    };
    let (logs, mut log) = open();
    run(append_and_purge(&mut log, entries));
    // The drop waits for the removals that were begun.
    drop((logs, log));
    let (files, bytes) = usage(dir.path());
    let (logs, mut log) = open();
    let replayed = logs.db().recovery().operations_replayed;
    let before = logs.db().metrics();
    let last = run(async { log.get_log_reader().await.try_get_log_entries(entries - 100..).await.unwrap() });
    assert_eq!(indexes_of(&last), (entries - 100..entries).collect::<Vec<_>>());
    let after = logs.db().metrics();
    let looked_at = |metrics: &mini_engine::Metrics| {
        metrics.block_reads + metrics.cache_hits + metrics.partition_reads + metrics.partition_hits
    };
    Cost {
        files,
        bytes,
        tables: after.levels.iter().map(|level| level.tables).sum(),
        range_tombstones: after.levels.iter().map(|level| level.range_tombstones).sum(),
        replayed,
        blocks: looked_at(&after) - looked_at(&before),
    }
}

#[test]
fn a_purged_log_costs_what_a_young_one_does() {
    // Catches space, tables, tombstones or replayed writes that grow with the total number of appends. `PURGED_ENTRIES=5000000` makes it
    // longer.
    let many = proof::environment::number("PURGED_ENTRIES").unwrap_or(500_000);
    let (young, old) = (cost(50_000), cost(many));
    println!("after 50000 entries: {young:?}\nafter {many} entries: {old:?}");
    // Purged entries may still be in a few tables, each of which costs a read three blocks.
    assert!(old.files <= young.files + 4 && old.tables <= young.tables + 3 && old.blocks <= young.blocks + 9);
    // Purged entries that were not removed, and the log of the database that holds them.
    assert!(old.bytes <= young.bytes + 3 * REMOVED_TOGETHER);
    assert!(old.replayed <= young.replayed + 2 * REMOVED_TOGETHER / ENTRY_BYTES);
    assert!(old.range_tombstones <= 1);
}
