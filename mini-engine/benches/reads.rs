//! The cost of reads whose data is in the cache: a get of an existing key, a get of an absent key, a short scan, an entry of a long scan.
//!
//! `cargo bench -p mini-engine --bench reads [-- WORKLOAD OPERATIONS]`. 600,000 random keys of 16 bytes with values of 100, a cache of
//! 128 MiB, no compression. Measured once after a compaction into level 1, and once as a load leaves the data: a third in the
//! memtable, the rest in level 0. Prints the medians of seven rounds, and the shortest and the longest, of the thread's processor time
//! (of the elapsed time where the system does not report it). The seed is fixed.
//!
//! With the arguments WORKLOAD and OPERATIONS, runs only that workload, once, so that `valgrind --tool=callgrind
//! --toggle-collect='reads::measured*'` counts its instructions. `READS_DB` names a directory that keeps the databases from run to run; with
//! `READS_MMAP` tables are mapped, and `READS_CACHE` is the size of the cache in MiB.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::time::Instant;
use std::{env, fs};

use mini_engine::{Compression, Db, Result, TableReads, WriteBatch};
use proof::{Random, scattered_key as key};

const ENTRIES: u64 = 600_000;
const VALUE: [u8; 100] = [7; 100];
const ROUNDS: usize = 7;

/// The size of the cache: enough for all data, unless `READS_CACHE` sets it in MiB.
fn cache_bytes() -> u64 {
    env::var("READS_CACHE").map_or(128, |mib| mib.parse::<u64>().expect("READS_CACHE: a number of MiB")) << 20
}

fn open(dir: &Path) -> Result<Db> {
    let reads = if env::var_os("READS_MMAP").is_some() { TableReads::Mmap } else { TableReads::Pread };
    Db::builder(dir).compression(Compression::None).table_reads(reads).cache_bytes(cache_bytes()).open()
}

/// Opens the database in `dir`, or makes it.
fn database(dir: &Path, compacted: bool) -> Result<Db> {
    if dir.exists() {
        return open(dir);
    }
    let db = open(dir)?;
    for first in (0..ENTRIES).step_by(100) {
        let mut batch = WriteBatch::new();
        for n in first..first + 100 {
            batch.insert(key(n), VALUE)?;
        }
        db.write(batch, mini_engine::Durability::Buffered)?;
    }
    if compacted {
        db.flush()?;
        db.compact_range(..)?;
    }
    Ok(db)
}

/// The processor time of this thread in nanoseconds.
fn processor_time() -> Option<u64> {
    fs::read_to_string("/proc/thread-self/schedstat").ok()?.split(' ').next()?.parse().ok()
}

type Workload = fn(&Db, &mut Random, u64) -> u64;

/// The workloads by name, with the operations of a round. Each returns the number of its counted events.
fn workloads() -> BTreeMap<&'static str, (u64, Workload)> {
    let of = |name, operations, workload: Workload| (name, (operations, workload));
    BTreeMap::from([
        of("get hit", 200_000, measured_get_hit),
        of("get miss", 200_000, measured_get_miss),
        of("get_many of 100", 200_000, measured_get_many),
        of("cursor, scan of 100", 20_000, measured_cursor),
        of("iter, scan of 100", 20_000, measured_iter),
        of("iter, scan of 100 back", 5_000, measured_iter_back),
        of("cursor, all: an entry", ENTRIES, measured_all),
    ])
}

#[inline(never)]
fn measured_get_hit(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations {
        let found = db.get(key(random.next() % ENTRIES)).unwrap();
        assert_eq!(black_box(found).unwrap().len(), VALUE.len());
    }
    operations
}

#[inline(never)]
fn measured_get_miss(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations {
        assert!(db.get(key(ENTRIES + random.next() % ENTRIES)).unwrap().is_none());
    }
    operations
}

#[inline(never)]
fn measured_get_many(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations / 100 {
        let keys: Vec<_> = (0..100).map(|_| key(random.next() % ENTRIES)).collect();
        assert!(db.get_many(&keys).unwrap().iter().all(Option::is_some));
    }
    operations
}

#[inline(never)]
fn measured_cursor(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations {
        let mut cursor = db.cursor();
        cursor.seek(key(random.next() % ENTRIES)).unwrap();
        for _ in 0..100 {
            black_box((cursor.key(), cursor.value()));
            cursor.advance().unwrap();
        }
    }
    operations
}

#[inline(never)]
fn measured_iter(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations {
        let from = key(random.next() % ENTRIES);
        black_box(db.range(from..).take(100).map(|entry| entry.unwrap().1.len()).sum::<usize>());
    }
    operations
}

#[inline(never)]
fn measured_iter_back(db: &Db, random: &mut Random, operations: u64) -> u64 {
    for _ in 0..operations {
        let to = key(random.next() % ENTRIES);
        black_box(db.range(..to).rev().take(100).map(|entry| entry.unwrap().1.len()).sum::<usize>());
    }
    operations
}

#[inline(never)]
fn measured_all(db: &Db, _: &mut Random, operations: u64) -> u64 {
    let mut cursor = db.cursor();
    cursor.seek_to_first().unwrap();
    let mut entries = 0;
    while cursor.valid() && entries < operations {
        black_box((cursor.key(), cursor.value()));
        cursor.advance().unwrap();
        entries += 1;
    }
    entries
}

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let temporary = tempfile::tempdir().expect("a temporary directory");
    let root = env::var_os("READS_DB").map_or_else(|| temporary.path().to_path_buf(), PathBuf::from);
    fs::create_dir_all(&root).expect("a directory for the databases");
    let workloads = workloads();
    for (state, compacted) in [("compacted", true), ("loaded", false)] {
        let db = database(&root.join(state), compacted)?;
        if let [name, operations] = &arguments[..] {
            let Some((workload, only)) = name.split_once('@') else { panic!("WORKLOAD@STATE") };
            if only == state {
                measured_all(&db, &mut Random(1), ENTRIES);
                workloads[workload].1(&db, &mut Random(7), operations.parse().expect("a number"));
            }
            continue;
        }
        measured_all(&db, &mut Random(1), ENTRIES);
        println!("{state:24}     ns  shortest  longest");
        for (name, (operations, workload)) in &workloads {
            let mut nanos: Vec<f64> = (0..ROUNDS)
                .map(|round| {
                    let (mut random, start, before) = (Random(round as u64), Instant::now(), processor_time());
                    let done = workload(&db, &mut random, *operations);
                    let passed = start.elapsed().as_nanos() as f64;
                    let had = before.and_then(|before| Some((processor_time()? - before) as f64));
                    had.unwrap_or(passed) / done as f64
                })
                .collect();
            nanos.sort_by(f64::total_cmp);
            println!("{name:24} {:6.0}  {:8.0} {:8.0}", nanos[ROUNDS / 2], nanos[0], nanos[ROUNDS - 1]);
        }
    }
    Ok(())
}
