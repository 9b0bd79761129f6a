//! `Memtable`. It is read at a sequence number at which all writes are visible.

use std::hint::black_box;

use bench_keys::KeySet::{self, Paths, Random, Sequential};
use fastskip::{Lookup, Memtable, Op, Version};
use gungraun::{library_benchmark, library_benchmark_group};

use super::{BATCH, Keys, OPERATIONS, VALUE, keys, leak, shuffled};

const NEWEST: u64 = OPERATIONS as u64;

type Input = &'static (Memtable, Keys);

fn empty(set: KeySet) -> Input {
    leak((Memtable::builder().shards(1).build(), keys(set)))
}

fn fill(table: &Memtable, keys: &Keys) {
    for (key, seqno) in keys.iter().zip(1..) {
        assert!(table.put(key, seqno, &VALUE).is_ok());
    }
}

/// A filled memtable, and its keys in another order, for lookups.
fn full(set: KeySet) -> Input {
    let (table, keys) = (Memtable::builder().shards(1).build(), keys(set));
    fill(&table, &keys);
    leak((table, shuffled(keys)))
}

fn ops(set: KeySet) -> (Input, Vec<Op<'static>>) {
    let input = empty(set);
    (input, input.1.iter().map(|key| Op::Put { key, value: &VALUE }).collect())
}

fn read<'t>(versions: impl Iterator<Item = Version<'t>>) -> usize {
    versions.map(|version| version.key.len() + version.value.len()).sum()
}

#[library_benchmark(setup = empty)]
#[bench::random(Random)]
#[bench::ascending(Sequential)]
#[bench::paths(Paths)]
fn put((table, keys): Input) {
    fill(table, keys);
}

#[library_benchmark(setup = ops)]
#[bench::random(Random)]
fn apply(((table, _), ops): (Input, Vec<Op<'static>>)) {
    for (batch, first_seqno) in ops.chunks(BATCH).zip((1..).step_by(BATCH)) {
        assert!(table.reserve(batch).is_ok_and(|reserved| reserved.apply(first_seqno).stored == batch.len()));
    }
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
#[bench::paths(Paths)]
fn get((table, keys): Input) {
    keys.iter().for_each(|key| assert!(matches!(black_box(table.get(key, NEWEST)), Lookup::Value(_))));
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn get_many((table, keys): Input) {
    keys.chunks(BATCH).for_each(|batch| drop(black_box(table.get_many(batch, NEWEST))));
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn iter((table, _): Input) -> usize {
    read(table.iter(NEWEST))
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn iter_rev((table, _): Input) -> usize {
    read(table.iter(NEWEST).rev())
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn cursor((table, _): Input) -> usize {
    read(table.cursor().visible_at(NEWEST))
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn all_versions((table, _): Input) -> usize {
    read(table.all_versions())
}

library_benchmark_group!(
    name = memtable,
    benchmarks = [put, apply, get, get_many, iter, iter_rev, cursor, all_versions]
);
