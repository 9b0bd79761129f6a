//! What does an entry cost that a flush reads: freezing the table, then reading all of it in order?

use super::common::{SIZES, list, memtable, random_keys};
use criterion::{BatchSize, BenchmarkId, Criterion, Throughput};
use fastskip::{ConcurrentSkipList, Memtable};

/// Sums bytes of keys and values, so that both are touched.
fn flush(memtable: &mut Memtable) -> u64 {
    memtable.freeze().all_versions().map(|version| u64::from(version.key[0]) + u64::from(version.value[0])).sum()
}

fn seal(list: &mut ConcurrentSkipList) -> u64 {
    list.freeze();
    list.iter().map(|entry| u64::from(entry.key[0]) + u64::from(entry.value[0])).sum()
}

pub(crate) fn freeze(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("freeze_and_iterate");
    group.sample_size(10);
    for entries in SIZES {
        let keys = random_keys(entries);
        group.throughput(Throughput::Elements(entries as u64));
        group.bench_function(BenchmarkId::new("memtable", entries), |bencher| {
            bencher.iter_batched_ref(|| memtable(&keys), flush, BatchSize::PerIteration);
        });
        group.bench_function(BenchmarkId::new("list", entries), |bencher| {
            bencher.iter_batched_ref(|| list(&keys), seal, BatchSize::PerIteration);
        });
    }
    group.finish();
}
