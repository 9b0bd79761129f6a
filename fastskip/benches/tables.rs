//! How fast are the tables? One question for each group, asked of `ConcurrentSkipList` ("list") and of `Memtable`.
//!
//! `cargo bench -p fastskip [-- FILTER]`, four minutes; reports and plots are in `target/criterion`. Keys have 16 bytes and values 100; 480,000 entries
//! fill a memtable of 64 MiB. The peers are measured beside the tables by `cargo compare`.

use std::hint::black_box;
use std::thread;
use std::time::{Duration, Instant};

use bench_keys::KeySet::{self, Paths, Random, Sequential};
use bench_keys::{SHORTEST_KEY, absent, rng, stored};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, BenchmarkId, Criterion, Throughput};
use fastskip::{ConcurrentSkipList, Lookup, Memtable, Op};
use rand::seq::SliceRandom;

const ENTRIES: usize = 480_000;
/// Entries of a table that is filled anew in each iteration.
const FILLED: usize = 100_000;
const SMALL: usize = 1000;
const BATCH: usize = 256;
const VALUE: [u8; 100] = [7; 100];
const NEWEST: u64 = u64::MAX;

type Keys = Vec<Vec<u8>>;

/// What the groups need of both tables.
trait Table: Sync + Sized {
    const NAME: &str;

    fn new(shards: usize) -> Self;
    fn put(&self, key: &[u8], seqno: u64);
    fn put_batch(&self, keys: &[Vec<u8>], first_seqno: u64);
    fn has(&self, key: &[u8]) -> bool;
    fn count(&self, keys: &[Vec<u8>]) -> usize;
    fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])>;
}

fn lengths<'t>(entries: impl Iterator<Item = (&'t [u8], &'t [u8])>) -> usize {
    entries.map(|(key, value)| key.len() + value.len()).sum()
}

fn bytes<'t>(entries: impl Iterator<Item = (&'t [u8], &'t [u8])>) -> u64 {
    entries.flat_map(|(key, value)| [key, value]).flatten().map(|&byte| u64::from(byte)).sum()
}

impl Table for ConcurrentSkipList {
    const NAME: &str = "list";

    fn new(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }
    fn put(&self, key: &[u8], _: u64) {
        assert!(self.insert(key, &VALUE));
    }
    fn put_batch(&self, keys: &[Vec<u8>], _: u64) {
        let pairs: Vec<_> = keys.iter().map(|key| (&key[..], &VALUE[..])).collect();
        assert_eq!(self.insert_batch(&pairs), Ok(keys.len()));
    }
    fn has(&self, key: &[u8]) -> bool {
        black_box(self.get_live(key)).is_some()
    }
    fn count(&self, keys: &[Vec<u8>]) -> usize {
        self.get_many(keys).into_iter().flatten().count()
    }
    fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.iter().map(|entry| (entry.key, entry.value))
    }
}

impl Table for Memtable {
    const NAME: &str = "memtable";

    fn new(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }
    fn put(&self, key: &[u8], seqno: u64) {
        assert!(Self::put(self, key, seqno, &VALUE).is_ok());
    }
    fn put_batch(&self, keys: &[Vec<u8>], first_seqno: u64) {
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: &VALUE }).collect();
        assert!(self.reserve(&ops).is_ok_and(|reserved| reserved.apply(first_seqno).stored == keys.len()));
    }
    fn has(&self, key: &[u8]) -> bool {
        matches!(black_box(self.get(key, NEWEST)), Lookup::Value(_))
    }
    fn count(&self, keys: &[Vec<u8>]) -> usize {
        self.get_many(keys, NEWEST).into_iter().filter(|found| matches!(found, Lookup::Value(_))).count()
    }
    fn entries(&self) -> impl DoubleEndedIterator<Item = (&[u8], &[u8])> {
        self.iter(NEWEST).map(|version| (version.key, version.value))
    }
}

fn keys(set: KeySet, entries: usize) -> Keys {
    stored(set, SHORTEST_KEY, entries, 0..entries).iter().map(Into::into).collect()
}

/// A filled table, and its keys in another order.
fn full<T: Table>(set: KeySet, entries: usize) -> (T, Keys) {
    let (table, mut keys) = (T::new(1), keys(set, entries));
    keys.iter().zip(1..).for_each(|(key, seqno)| table.put(key, seqno));
    keys.shuffle(&mut rng(29));
    (table, keys)
}

type Group<'c> = BenchmarkGroup<'c, WallTime>;

fn of<T: Table>(question: &str) -> BenchmarkId {
    BenchmarkId::new(question, T::NAME)
}

/// An insert into a table that grows to as many entries as there are keys; the table is freed outside the clock.
fn insert_all<T: Table>(group: &mut Group<'_>, question: &str, keys: &Keys) {
    group.sample_size(10).throughput(Throughput::Elements(keys.len() as u64));
    group.bench_function(of::<T>(question), |bencher| {
        let fill = |table: T| {
            keys.iter().zip(1..).for_each(|(key, seqno)| table.put(key, seqno));
            table
        };
        bencher.iter_batched(|| T::new(1), fill, BatchSize::PerIteration);
    });
}

/// A lookup of one key after the other.
fn get_each<T: Table>(group: &mut Group<'_>, question: &str, table: &T, keys: &Keys, is_there: bool) {
    // The settings of the group stay from an insert before.
    group.sample_size(100).throughput(Throughput::Elements(1));
    group.bench_function(of::<T>(question), |bencher| {
        let mut keys = keys.iter().cycle();
        bencher.iter(|| assert_eq!(keys.next().map(|key| table.has(key)), Some(is_there)));
    });
}

fn insert<T: Table>(group: &mut Group<'_>) {
    insert_all::<T>(group, "random", &keys(Random, FILLED));
}

fn ascending<T: Table>(group: &mut Group<'_>) {
    insert_all::<T>(group, "insert", &keys(Sequential, FILLED));
}

/// Long keys that share prefixes.
fn paths<T: Table>(group: &mut Group<'_>) {
    let (table, sought) = full::<T>(Paths, ENTRIES);
    get_each(group, "get", &table, &sought, true);
    insert_all::<T>(group, "insert", &keys(Paths, FILLED));
}

fn get<T: Table>(group: &mut Group<'_>) {
    let (table, sought) = full::<T>(Random, ENTRIES);
    get_each(group, "stored", &table, &sought, true);
    let absent = absent(Random, SHORTEST_KEY, ENTRIES).iter().map(Into::into).collect();
    get_each(group, "absent", &table, &absent, false);
}

/// An entry of a scan of all: lengths measure the walk alone.
fn scan<T: Table>(group: &mut Group<'_>) {
    let (table, _) = full::<T>(Random, ENTRIES);
    group.sample_size(10).throughput(Throughput::Elements(ENTRIES as u64));
    group.bench_function(of::<T>("lengths"), |bencher| bencher.iter(|| lengths(table.entries())));
    group.bench_function(of::<T>("lengths, from the end"), |bencher| bencher.iter(|| lengths(table.entries().rev())));
    group.bench_function(of::<T>("all bytes"), |bencher| bencher.iter(|| bytes(table.entries())));
}

/// Batches of 256: the time of one key.
fn batches<T: Table>(group: &mut Group<'_>) {
    let (table, sought) = full::<T>(Random, ENTRIES);
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function(of::<T>("get"), |bencher| {
        let mut batches = sought.chunks_exact(BATCH).cycle();
        bencher.iter(|| assert_eq!(batches.next().map(|batch| table.count(batch)), Some(BATCH)));
    });
    let keys = keys(Random, FILLED);
    group.sample_size(10).throughput(Throughput::Elements(FILLED as u64));
    group.bench_function(of::<T>("insert"), |bencher| {
        let fill = |table: T| {
            keys.chunks(BATCH).zip((1..).step_by(BATCH)).for_each(|(batch, seqno)| table.put_batch(batch, seqno));
            table
        };
        bencher.iter_batched(|| T::new(1), fill, BatchSize::PerIteration);
    });
}

/// The time of `iterations` runs, each on all threads at once: `work` gets the share of one thread.
fn on_threads<T: Table>(
    threads: usize,
    keys: &Keys,
    iterations: u64,
    work: impl Fn(&T, &[Vec<u8>]) + Sync,
) -> Duration {
    let run = |_| {
        let (table, begun) = (T::new(threads), Instant::now());
        thread::scope(|scope| {
            keys.chunks(keys.len().div_ceil(threads)).for_each(|share| drop(scope.spawn(|| work(&table, share))));
        });
        begun.elapsed()
    };
    (0..iterations).map(run).sum()
}

/// Random inserts into one table, and lookups of each key that was just stored, by several threads.
fn threads<T: Table>(group: &mut Group<'_>) {
    let keys = keys(Random, FILLED);
    group.sample_size(10).throughput(Throughput::Elements(FILLED as u64));
    for threads in [1, 2, 4] {
        let insert =
            |table: &T, share: &[Vec<u8>]| share.iter().zip(1..).for_each(|(key, seqno)| table.put(key, seqno));
        group.bench_function(of::<T>(&format!("insert by {threads}")), |bencher| {
            bencher.iter_custom(|iterations| on_threads(threads, &keys, iterations, insert));
        });
        group.bench_function(of::<T>(&format!("insert and get by {threads}")), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(threads, &keys, iterations, |table: &T, share| {
                    insert(table, share);
                    assert!(share.iter().all(|key| table.has(key)));
                })
            });
        });
    }
}

/// Tables that fit into the second-level cache: as much is paid for their making as for their use.
fn small<T: Table>(group: &mut Group<'_>) {
    let (table, sought) = full::<T>(Random, SMALL);
    get_each(group, "get", &table, &sought, true);
    insert_all::<T>(group, "insert", &keys(Random, SMALL));
}

fn main() {
    let defaults =
        Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let mut criterion = defaults.configure_from_args();
    macro_rules! groups {
        ($($question:ident)*) => {$(
            let mut group = criterion.benchmark_group(stringify!($question));
            $question::<ConcurrentSkipList>(&mut group);
            $question::<Memtable>(&mut group);
            group.finish();
        )*};
    }
    groups!(insert get scan batches paths ascending threads small);
    criterion.final_summary();
}
