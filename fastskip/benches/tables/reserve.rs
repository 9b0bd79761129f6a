//! What does a write cost before its search? A reservation enters the gate and takes the node's bytes from the arena, and does
//! nothing else: the nearest to the arena's alloc that can be seen from outside. `put` below all keys adds the link, the
//! hint and the shortest search there is.

use super::common::{Key, VALUE, random_key};
use criterion::{BatchSize, Criterion, Throughput};
use fastskip::{Memtable, Op};

const WRITES: u64 = 10_000;

fn table() -> Memtable {
    Memtable::builder().shards(1).build()
}

pub(crate) fn reserve(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("reserve");
    group.throughput(Throughput::Elements(WRITES));
    let ops = [Op::Put { key: &random_key(0), value: &VALUE }];
    group.bench_function("alloc", |bencher| {
        // What is dropped unapplied is lost to the arena, so each batch has a table of its own.
        bencher.iter_batched_ref(
            table,
            |table| (0..WRITES).all(|_| table.reserve(&ops).is_ok()),
            BatchSize::PerIteration,
        );
    });
    let descending: Vec<Key> = (0..u128::from(WRITES)).rev().map(u128::to_be_bytes).collect();
    group.bench_function("put_below_all", |bencher| {
        let put = |table: &mut Memtable| descending.iter().all(|key| table.put(key, 1, &VALUE).is_ok());
        bencher.iter_batched_ref(table, put, BatchSize::PerIteration);
    });
    group.finish();
}
