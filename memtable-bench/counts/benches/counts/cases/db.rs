//! mini-engine with a log that is not synced, all records in one memtable.

use std::hint::black_box;

use bench_keys::KeySet::{self, Random};
use gungraun::{library_benchmark, library_benchmark_group};
use mini_engine::{Db, Durability};
use tempfile::TempDir;

use super::{Keys, VALUE, keys, shuffled};

/// The directory goes with the database.
type Input = (Db, Keys, TempDir);

fn empty(set: KeySet) -> Input {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let db = Db::builder(dir.path()).durability(Durability::Buffered).open().expect("a database");
    (db, keys(set), dir)
}

fn fill(db: &Db, keys: &Keys) {
    keys.iter().for_each(|key| assert!(db.insert(key, VALUE).is_ok()));
}

fn full(set: KeySet) -> Input {
    let (db, keys, dir) = empty(set);
    fill(&db, &keys);
    (db, shuffled(keys), dir)
}

#[library_benchmark(setup = empty)]
#[bench::random(Random)]
fn put(input: Input) -> Input {
    fill(&input.0, &input.1);
    input
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn get(input: Input) -> Input {
    input.1.iter().for_each(|key| assert!(matches!(black_box(input.0.get(key)), Ok(Some(_)))));
    input
}

library_benchmark_group!(name = engine, benchmarks = [put, get]);
