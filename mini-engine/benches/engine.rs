//! How fast is the engine? One question for each group.
//!
//! `cargo bench -p mini-engine --bench engine [-- FILTER]`, four minutes; reports and plots are in `target/criterion`. Keys have 16 bytes and values
//! 100; the cache of 128 MiB holds all data, nothing is compressed, and only the group `synced` syncs. Databases are made in `TMPDIR`. Reads are
//! measured in a database that was compacted into level 1, and as a load leaves it: a third in the memtable, the rest in level 0.

use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use bench_keys::KeySet::{self, Random, Sequential};
use bench_keys::{SHORTEST_KEY, absent, rng, stored};
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput};
use mini_engine::{Compression, Db, Durability, Result, WriteBatch};
use rand::RngExt;
use rand::seq::SliceRandom;
use tempfile::{TempDir, tempdir};

const ENTRIES: usize = 600_000;
/// Entries of the log that is replayed.
const LOGGED: usize = 100_000;
const BATCH: usize = 100;
const VALUE: [u8; 100] = [7; 100];

type Keys = Vec<Vec<u8>>;
type Group<'c> = BenchmarkGroup<'c, WallTime>;
type Question = (&'static str, fn(&mut Group<'_>));

fn open(dir: &Path, read_only: bool) -> Db {
    let builder = Db::builder(dir).compression(Compression::None).cache_bytes(128 << 20).read_only(read_only);
    builder.durability(Durability::Buffered).open().expect("a database")
}

fn empty() -> (Db, TempDir) {
    let dir = tempdir().expect("a temporary directory");
    (open(dir.path(), false), dir)
}

fn keys(set: KeySet, entries: usize) -> Keys {
    stored(set, SHORTEST_KEY, entries, 0..entries).iter().map(Into::into).collect()
}

fn write(db: &Db, keys: &[Vec<u8>], durability: Durability) -> Result<()> {
    let mut batch = WriteBatch::new();
    keys.iter().try_for_each(|key| batch.insert(key, VALUE))?;
    db.write(batch, durability).map(drop)
}

fn fill(db: &Db, keys: &Keys) {
    keys.chunks(BATCH).for_each(|batch| write(db, batch, Durability::Buffered).expect("written"));
}

/// Passes a full database in both states to `ask`, with its keys in another order; its blocks are in the cache.
fn full(mut ask: impl FnMut(&str, &Db, &Keys)) {
    let ((db, _dir), mut keys) = (empty(), keys(Random, ENTRIES));
    fill(&db, &keys);
    keys.shuffle(&mut rng(29));
    for state in ["loaded", "compacted"] {
        if state == "compacted" {
            db.flush().and_then(|()| db.compact_range(..)).expect("compacted");
        }
        assert_eq!(db.iter().count(), ENTRIES);
        ask(state, &db, &keys);
    }
}

/// One put after the other; the keys are overwritten when each is stored.
fn put(group: &mut Group<'_>) {
    for (name, set) in [("random", Random), ("ascending", Sequential)] {
        let ((db, _dir), keys) = (empty(), keys(set, ENTRIES));
        let mut next = keys.iter().cycle();
        group.bench_function(name, |bencher| {
            bencher.iter(|| {
                db.insert(next.next().unwrap_or(&keys[0]), VALUE).expect("written");
            })
        });
    }
}

/// Writes of 100 keys: the time of a key.
fn batch(group: &mut Group<'_>) {
    let ((db, _dir), keys) = (empty(), keys(Random, ENTRIES));
    let mut next = keys.chunks(BATCH).cycle();
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("100", |bencher| {
        bencher.iter(|| next.next().map(|keys| write(&db, keys, Durability::Buffered).expect("written")))
    });
}

fn get(group: &mut Group<'_>) {
    let absent: Keys = absent(Random, SHORTEST_KEY, ENTRIES).iter().map(Into::into).collect();
    full(|state, db, keys| {
        group.throughput(Throughput::Elements(1));
        for (name, keys, is_there) in [("stored", keys, true), ("absent", &absent, false)] {
            let mut next = keys.iter().cycle();
            let mut found = || next.next().map(|key| db.get(key).map(|value| black_box(value).is_some()));
            group.bench_function(format!("{name}/{state}"), |bencher| {
                bencher.iter(|| assert!(matches!(found(), Some(Ok(found)) if found == is_there)));
            });
        }
        let mut next = keys.chunks(BATCH).cycle();
        group.throughput(Throughput::Elements(BATCH as u64));
        group.bench_function(format!("100 at once/{state}"), |bencher| {
            bencher.iter(|| next.next().map(|keys| db.get_many(keys).expect("read").len()));
        });
    });
}

/// The sum that `of` makes of up to `most` entries from the cursor's place on.
fn walk(mut cursor: mini_engine::Cursor, most: usize, of: impl Fn(&[u8]) -> u64) -> u64 {
    let mut sum = 0;
    for _ in 0..most {
        if !cursor.valid() {
            break;
        }
        sum += of(cursor.key()) + of(cursor.value());
        cursor.advance().expect("read");
    }
    sum
}

/// Scans: 100 entries from a random key, and an entry of a scan of all. The lengths measure the walk alone.
fn scan(group: &mut Group<'_>) {
    let length = |bytes: &[u8]| bytes.len() as u64;
    let sum = |bytes: &[u8]| bytes.iter().map(|&byte| u64::from(byte)).sum();
    full(|state, db, keys| {
        let mut next = keys.iter().cycle();
        let mut from = || next.next().expect("keys").clone();
        group.throughput(Throughput::Elements(100));
        group.bench_function(format!("100 by cursor/{state}"), |bencher| {
            bencher.iter(|| {
                let mut cursor = db.cursor();
                cursor.seek(from()).expect("read");
                walk(cursor, 100, length)
            });
        });
        group.bench_function(format!("100 by iterator/{state}"), |bencher| {
            bencher.iter(|| db.range(from()..).take(100).map(|entry| entry.expect("read").1.len()).sum::<usize>());
        });
        group.bench_function(format!("100 back/{state}"), |bencher| {
            bencher
                .iter(|| db.range(..from()).rev().take(100).map(|entry| entry.expect("read").1.len()).sum::<usize>());
        });
        group.throughput(Throughput::Elements(ENTRIES as u64));
        let all = || {
            let mut cursor = db.cursor();
            cursor.seek_to_first().expect("read");
            cursor
        };
        group.bench_function(format!("all, lengths/{state}"), |bencher| bencher.iter(|| walk(all(), ENTRIES, length)));
        group.bench_function(format!("all, all bytes/{state}"), |bencher| bencher.iter(|| walk(all(), ENTRIES, sum)));
    });
}

/// The time in which `threads` together do `work` as often as `iterations` says.
fn on_threads(threads: u64, iterations: u64, work: impl Fn(u64, u64) -> Result<()> + Sync) -> Duration {
    let begun = Instant::now();
    thread::scope(|scope| {
        let share = |thread| iterations / threads + u64::from(thread < iterations % threads);
        let work = &work;
        (0..threads).for_each(|thread| drop(scope.spawn(move || work(thread, share(thread)).expect("no error"))));
    });
    begun.elapsed()
}

/// Puts that are synced before they return, by threads that share syncs.
fn synced(group: &mut Group<'_>) {
    let ((db, _dir), keys) = (empty(), keys(Random, ENTRIES));
    for threads in [1, 8, 32] {
        group.bench_function(format!("{threads} threads"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(threads, iterations, |thread, puts| {
                    let own = keys.iter().skip(thread as usize).step_by(threads as usize).cycle();
                    own.take(puts as usize)
                        .try_for_each(|key| write(&db, std::slice::from_ref(key), Durability::Synced))
                })
            });
        });
    }
}

/// Transfers between two random accounts by two threads: with ten accounts, most meet others and are tried again.
fn transactions(group: &mut Group<'_>) {
    for accounts in [10, 100_000] {
        let ((db, _dir), keys) = (empty(), keys(Random, accounts));
        fill(&db, &keys);
        let transfer = |from: usize, to: usize| {
            db.transact(|transaction| {
                for account in [&keys[from], &keys[to]] {
                    let mut balance =
                        transaction.get(account)?.map_or(VALUE, |value| value[..].try_into().unwrap_or(VALUE));
                    balance[0] = balance[0].wrapping_add(1);
                    transaction.insert(account, balance)?;
                }
                Ok(())
            })
        };
        group.bench_function(format!("{accounts} accounts"), |bencher| {
            bencher.iter_custom(|iterations| {
                on_threads(2, iterations, |thread, transfers| {
                    let mut draw = rng(thread);
                    (0..transfers).try_for_each(|_| {
                        let from = draw.random_range(0..accounts);
                        transfer(from, (from + draw.random_range(1..accounts)) % accounts).map(drop)
                    })
                })
            });
        });
    }
}

/// A copy of the files in `from`, in a directory of its own.
fn copied(from: &Path) -> TempDir {
    let to = tempdir().expect("a temporary directory");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::copy(entry.path(), to.path().join(entry.file_name())).expect("a copy");
    }
    to
}

/// Opens of what a killed process leaves, with everything in the log: into memory, and into tables.
fn replay(group: &mut Group<'_>) {
    let ((db, dir), keys) = (empty(), keys(Random, LOGGED));
    keys.iter().for_each(|key| db.insert(key, VALUE).expect("written"));
    let left = copied(dir.path());
    group.sample_size(10).throughput(Throughput::Bytes((LOGGED * (SHORTEST_KEY + VALUE.len())) as u64));
    for (name, read_only) in [("into memory", true), ("into tables", false)] {
        let replayed = |dir: TempDir| {
            let db = open(dir.path(), read_only);
            assert_eq!(db.recovery().operations_replayed, LOGGED as u64);
            (db, dir)
        };
        group.bench_function(name, |bencher| {
            bencher.iter_batched(|| copied(left.path()), replayed, BatchSize::PerIteration);
        });
    }
}

/// Opens of a database that was closed, and the first get.
fn open_closed(group: &mut Group<'_>) {
    let ((db, dir), keys) = (empty(), keys(Random, ENTRIES));
    fill(&db, &keys);
    db.flush().and_then(|()| db.compact_range(..)).and_then(|()| db.close()).expect("closed");
    group.sample_size(10);
    group.bench_function("and get", |bencher| {
        let opened = |()| {
            let db = open(dir.path(), false);
            assert!(db.get(&keys[0]).is_ok_and(|found| found.is_some()));
            db
        };
        bencher.iter_batched(|| (), opened, BatchSize::PerIteration);
    });
}

fn main() {
    let defaults =
        Criterion::default().warm_up_time(Duration::from_millis(500)).measurement_time(Duration::from_secs(2));
    let mut criterion = defaults.sample_size(20).configure_from_args();
    let questions: [Question; 8] = [
        ("put", put),
        ("get", get),
        ("scan", scan),
        ("batch", batch),
        ("synced", synced),
        ("transactions", transactions),
        ("replay", replay),
        ("open", open_closed),
    ];
    for (name, question) in questions {
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Elements(1));
        question(&mut group);
        group.finish();
    }
    criterion.final_summary();
}
