//! What does one search cost at each size: of a key that is there, of one that is not, and to begin reading at a key?

use std::hint::black_box;

use super::common::{Key, SIZES, list, memtable, random_key, random_keys};
use criterion::{Bencher, BenchmarkId, Criterion};
use fastskip::Lookup;

/// Each call has another key, in an order that no cache can guess.
fn each(bencher: &mut Bencher<'_>, keys: &[Key], mut search: impl FnMut(&Key) -> bool) {
    // Far apart each time; a step that ends in 1 visits every place of a size that is a power of ten.
    let mut place = 0_usize;
    bencher.iter(|| {
        place = (place + keys.len() * 618 / 1000 + 1) % keys.len();
        black_box(search(&keys[place]))
    });
}

pub(crate) fn search(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("search");
    for entries in SIZES {
        let keys = random_keys(entries);
        let absent: Vec<Key> = (entries..2 * entries).map(random_key).collect();
        let (memtable, list) = (memtable(&keys), list(&keys));
        group.bench_function(BenchmarkId::new("memtable_get", entries), |bencher| {
            each(bencher, &keys, |key| matches!(memtable.get(key, u64::MAX), Lookup::Value(_)));
        });
        group.bench_function(BenchmarkId::new("memtable_miss", entries), |bencher| {
            each(bencher, &absent, |key| memtable.get(key, u64::MAX) == Lookup::Absent);
        });
        group.bench_function(BenchmarkId::new("memtable_seek", entries), |bencher| {
            let mut cursor = memtable.cursor();
            each(bencher, &keys, |key| cursor.seek(key, u64::MAX));
        });
        group.bench_function(BenchmarkId::new("list_get", entries), |bencher| {
            each(bencher, &keys, |key| list.get_live(key).is_some());
        });
        group.bench_function(BenchmarkId::new("list_seek", entries), |bencher| {
            let mut cursor = list.cursor();
            each(bencher, &keys, |key| cursor.seek(key));
        });
    }
    group.finish();
}
