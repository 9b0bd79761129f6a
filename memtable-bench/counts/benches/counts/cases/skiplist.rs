//! `ConcurrentSkipList`.

use std::hint::black_box;

use bench_keys::KeySet::{self, Paths, Random, Sequential};
use fastskip::{ConcurrentSkipList, Entry};
use gungraun::{library_benchmark, library_benchmark_group};

use super::{BATCH, Keys, VALUE, keys, leak, shuffled};

type Input = &'static (ConcurrentSkipList, Keys);
type Pairs = Vec<(&'static [u8], &'static [u8])>;

fn empty(set: KeySet) -> Input {
    leak((ConcurrentSkipList::builder().shards(1).build(), keys(set)))
}

/// A filled list, and its keys to look up in another order.
fn full(set: KeySet) -> Input {
    let (list, keys) = (ConcurrentSkipList::builder().shards(1).build(), keys(set));
    keys.iter().for_each(|key| assert!(list.insert(key, &VALUE)));
    leak((list, shuffled(keys)))
}

fn pairs(set: KeySet) -> (Input, Pairs) {
    let input = empty(set);
    (input, input.1.iter().map(|key| (&key[..], &VALUE[..])).collect())
}

fn read<'l>(entries: impl Iterator<Item = Entry<'l>>) -> usize {
    entries.map(|entry| entry.key.len() + entry.value.len()).sum()
}

#[library_benchmark(setup = empty)]
#[bench::random(Random)]
#[bench::ascending(Sequential)]
#[bench::paths(Paths)]
fn insert((list, keys): Input) {
    keys.iter().for_each(|key| assert!(list.insert(key, &VALUE)));
}

#[library_benchmark(setup = pairs)]
#[bench::random(Random)]
fn insert_batch(((list, _), pairs): (Input, Pairs)) {
    pairs.chunks(BATCH).for_each(|batch| assert_eq!(list.insert_batch(batch), Ok(batch.len())));
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
#[bench::paths(Paths)]
fn get((list, keys): Input) {
    keys.iter().for_each(|key| assert!(black_box(list.get(key)).is_some()));
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn get_many((list, keys): Input) {
    keys.chunks(BATCH).for_each(|batch| drop(black_box(list.get_many(batch))));
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn iter((list, _): Input) -> usize {
    read(list.iter())
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn iter_rev((list, _): Input) -> usize {
    read(list.iter().rev())
}

#[library_benchmark(setup = full)]
#[bench::random(Random)]
fn cursor((list, _): Input) -> usize {
    read(list.cursor())
}

library_benchmark_group!(name = list, benchmarks = [insert, insert_batch, get, get_many, iter, iter_rev, cursor]);
