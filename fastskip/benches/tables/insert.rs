//! What does an insert of a random key cost, in the mean over filling a table to each size?

use std::hint::black_box;

use super::common::{SIZES, list, memtable, random_keys};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};

pub(crate) fn insert(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("insert");
    group.sample_size(10);
    for entries in SIZES {
        let keys = random_keys(entries);
        group.throughput(Throughput::Elements(entries as u64));
        // Returned, so that dropping the table is not part of the time.
        group.bench_function(BenchmarkId::new("memtable", entries), |bencher| {
            bencher.iter_batched(|| (), |()| black_box(memtable(&keys)), BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("list", entries), |bencher| {
            bencher.iter_batched(|| (), |()| black_box(list(&keys)), BatchSize::PerIteration);
        });
    }
    group.finish();
}
