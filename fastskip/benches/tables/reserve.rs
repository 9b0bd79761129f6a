//! What does a write cost before its search? A reservation enters the gate, draws the height and takes the node's bytes from the
//! arena, and does nothing else: the nearest that can be seen from outside of the arena's alloc and of the height. `put`
//! below all keys adds the links and the shortest search there is.

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
    group.bench_function("alloc_and_height", |bencher| {
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
