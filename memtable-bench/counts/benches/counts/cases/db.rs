//! Cases of mini-engine with a log that is not synced: all records are in one memtable, or in the cached blocks of one table.

use std::hint::black_box;

use bench_keys::KeySet::{self, Random};
use bench_keys::{SHORTEST_KEY, absent};
use gungraun::{library_benchmark, library_benchmark_group};
use mini_engine::{Db, Durability, WriteBatch};
use tempfile::TempDir;

use super::{BATCH, Keys, OPERATIONS, VALUE, keys, shuffled};

/// Entries that a scan reads.
const SCANNED: usize = 100;

/// The directory is removed with the database.
type Input = (Db, Keys, TempDir);

fn empty(set: KeySet) -> Input {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::builder(dir.path()).durability(Durability::Buffered).open().expect("a database");
    (db, keys(set), dir)
}

fn fill(db: &Db, keys: &Keys) {
    keys.iter().for_each(|key| assert!(db.insert(key, VALUE).is_ok()));
}

/// The keys at which scans begin.
fn starts((_, keys, _): &Input) -> impl Iterator<Item = &Vec<u8>> {
    keys.iter().take(OPERATIONS / SCANNED)
}

fn full(set: KeySet) -> Input {
    let (db, keys, dir) = empty(set);
    fill(&db, &keys);
    (db, shuffled(keys), dir)
}

/// A database with all records in one table, whose blocks are in the cache.
fn compacted(set: KeySet) -> Input {
    let input = full(set);
    assert!(input.0.flush().and_then(|()| input.0.compact_range(..)).is_ok());
    (0..2).for_each(|_| input.1.iter().for_each(|key| assert!(matches!(input.0.get(key), Ok(Some(_))))));
    input
}

/// As [`compacted`], with absent keys to look up.
fn compacted_and_absent_keys(set: KeySet) -> Input {
    let (db, _, dir) = compacted(set);
    (db, absent(set, SHORTEST_KEY, OPERATIONS).iter().map(Into::into).collect(), dir)
}

#[library_benchmark(setup = empty)]
#[bench::random(Random)]
fn put(input: Input) -> Input {
    fill(&input.0, &input.1);
    input
}

#[library_benchmark(setup = empty)]
#[bench::random(Random)]
fn put_batch(input: Input) -> Input {
    for keys in input.1.chunks(BATCH) {
        let mut batch = WriteBatch::new();
        keys.iter().for_each(|key| assert!(batch.insert(key, VALUE).is_ok()));
        assert!(input.0.write(batch, Durability::Buffered).is_ok());
    }
    input
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn get(input: Input) -> Input {
    input.1.iter().for_each(|key| assert!(matches!(black_box(input.0.get(key)), Ok(Some(_)))));
    input
}

#[library_benchmark(setup = compacted)]
#[bench::random(Random)]
fn table_get(input: Input) -> Input {
    input.1.iter().for_each(|key| assert!(matches!(black_box(input.0.get(key)), Ok(Some(_)))));
    input
}

#[library_benchmark(setup = compacted_and_absent_keys)]
#[bench::random(Random)]
fn table_get_absent(input: Input) -> Input {
    input.1.iter().for_each(|key| assert!(matches!(black_box(input.0.get(key)), Ok(None))));
    input
}

#[library_benchmark(setup = compacted)]
#[bench::random(Random)]
fn table_get_many(input: Input) -> Input {
    input.1.chunks(BATCH).for_each(|batch| assert!(black_box(input.0.get_many(batch)).is_ok()));
    input
}

// Scans of `SCANNED` entries from random keys. An operation is one entry, with its share of the seek.
#[library_benchmark(setup = compacted)]
#[bench::random(Random)]
fn table_iter(input: Input) -> Input {
    starts(&input).for_each(|from| {
        input.0.range(&from[..]..).take(SCANNED).for_each(|entry| assert!(black_box(entry).is_ok()));
    });
    input
}

#[library_benchmark(setup = compacted)]
#[bench::random(Random)]
fn table_iter_rev(input: Input) -> Input {
    starts(&input).for_each(|to| {
        input.0.range(..=&to[..]).rev().take(SCANNED).for_each(|entry| assert!(black_box(entry).is_ok()));
    });
    input
}

#[library_benchmark(setup = compacted)]
#[bench::random(Random)]
fn table_cursor(input: Input) -> Input {
    for from in starts(&input) {
        let mut cursor = input.0.cursor();
        assert!(cursor.seek(from).is_ok());
        for _ in 0..SCANNED {
            black_box((cursor.key(), cursor.value()));
            assert!(cursor.advance().is_ok());
        }
    }
    input
}

library_benchmark_group!(
    name = engine,
    benchmarks =
        [put, put_batch, get, table_get, table_get_absent, table_get_many, table_iter, table_iter_rev, table_cursor]
);
