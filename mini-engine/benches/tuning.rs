//! The costs of options and shapes of data: figures of the book's page Tuning that other benches do not measure.
//!
//! `cargo bench -p mini-engine --bench tuning [-- compression | values | keyspaces | memory]`: four tables, or one of them. Bytes hardly depend on the
//! machine; times need it idle. Flushes and compactions have ended before a time is taken.
//! * Compression: bytes of tables after a full compaction, and of the log, for each byte of keys and values, with records in JSON and with random
//!   bytes; time for each entry to read all in order, in the best of five rounds.
//! * Values: the same number of bytes in values of several lengths, loaded and then overwritten three times: bytes of tables written for each byte
//!   flushed, and the most bytes of files for each byte of data.
//! * Keyspaces: the same records in one keyspace and in many: tables, their bytes, bytes of the manifest, the time to make the keyspaces, and the
//!   time of an open.
//! * Memory: smaller memtables and caches, each in a process of its own: the most anonymous memory while random keys were put and read.

use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use mini_engine::{Builder, Compression, Db, Durability, Metrics, Result, WriteBatch};
use proof::Random;

const NAMES: [&str; 12] =
    ["Ada", "Blaise", "Charles", "Emmy", "Grace", "Alan", "Barbara", "Edsger", "Donald", "Frances", "Kurt", "Sofia"];
const CITIES: [&str; 8] = ["London", "Paris", "Göttingen", "Arlington", "Cambridge", "Rotterdam", "Milwaukee", "Brno"];

/// A record as a service stores it: about 150 bytes, some of them as random as numbers are.
fn record(number: u64, random: &mut Random) -> Vec<u8> {
    let (name, city) = (NAMES[random.index(NAMES.len())], CITIES[random.index(CITIES.len())]);
    let (cents, day, second) = (random.below(10_000_000), random.below(365), random.below(86_400));
    format!(
        r#"{{"id":{number},"name":"{name}","city":"{city}","balance":{}.{:02},"active":{},"created":"2026-{:03}T{second:05}Z","token":"{:016x}"}}"#,
        cents / 100,
        cents % 100,
        cents % 3 > 0,
        day + 1,
        random.next()
    )
    .into_bytes()
}

fn noise(len: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes.chunks_mut(8).for_each(|chunk| chunk.copy_from_slice(&random.next().to_le_bytes()[..chunk.len()]));
    bytes
}

fn key(number: u64) -> String {
    format!("order/{number:012}")
}

/// Kibibytes of anonymous memory of this process; 0 where the system does not report it.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn settled(db: &Db) -> Result<Metrics> {
    db.flush()?;
    db.wait_for_compactions()?;
    Ok(db.metrics())
}

fn table_bytes(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.bytes).sum()
}

fn room() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn compression() -> Result<()> {
    println!("data     blocks  compression  tables  read, ns    log  compressed log");
    let subjects = [
        ("none", Compression::None),
        ("lz4", Compression::Lz4),
        ("zstd 1", Compression::Zstd { level: 1 }),
        ("zstd 3", Compression::Zstd { level: 3 }),
        ("zstd 9", Compression::Zstd { level: 9 }),
    ];
    for data in ["records", "noise"] {
        for block_bytes in [4 << 10, 16 << 10] {
            for (name, compression) in subjects {
                let [plain, logged] = [false, true].map(|log| compressed(data, block_bytes, compression, log));
                let (plain, logged) = (plain?, logged?);
                println!(
                    "{data:<8} {block_bytes:>6}  {name:<11} {:>7.3} {:>9.0} {:>6.3} {:>15.3}",
                    plain.0, plain.1, plain.2, logged.2
                );
            }
        }
    }
    Ok(())
}

/// Bytes of tables for each byte of data; nanoseconds to read an entry; bytes of the log for each byte of data.
fn compressed(data: &str, block_bytes: usize, compression: Compression, log: bool) -> Result<(f64, f64, f64)> {
    const ENTRIES: u64 = 200_000;
    let dir = room();
    // The cache is too small for any block to be found again: each read decompresses all blocks.
    let builder = Db::builder(dir.path()).compression(compression).block_bytes(block_bytes).cache_bytes(1 << 20);
    let builder = builder.log_compression(log);
    let db = builder.memtable_bytes(8 << 20).open()?;
    let (mut random, mut batch) = (Random(1), WriteBatch::new());
    for number in 0..ENTRIES {
        let value = if data == "noise" { noise(150, &mut random) } else { record(number, &mut random) };
        batch.insert(key(number), value)?;
        if batch.len() == 100 {
            db.write(&batch, Durability::Buffered)?;
            batch.clear();
        }
    }
    let written = settled(&db)?;
    db.compact_range(..)?;
    let bytes = table_bytes(&db.metrics()) as f64;
    let reads = (0..5).map(|_| {
        let begun = Instant::now();
        assert_eq!(db.iter().count() as u64, ENTRIES);
        begun.elapsed().as_nanos()
    });
    let read = reads.min().unwrap_or(0);
    let user = written.user_bytes as f64;
    Ok((bytes / user, read as f64 / ENTRIES as f64, written.wal_bytes as f64 / user))
}

fn values() -> Result<()> {
    const DATA: usize = 32 << 20;
    println!("bytes a value  written  most bytes of files");
    for len in [100, 4 << 10, 64 << 10, 1 << 20] {
        let dir = room();
        let small = Db::builder(dir.path()).memtable_bytes(2 << 20).level1_bytes(2 << 20).table_file_bytes(2 << 20);
        let db = small.compression(Compression::None).open()?;
        let (mut random, keys) = (Random(1), (DATA / len) as u64);
        let mut most = 0;
        for number in 0..4 * keys {
            let number = if number < keys { number } else { random.below(keys) };
            db.insert(key(number), noise(len, &mut random))?;
            if random.below(keys) < 64 {
                most = most.max(bytes_in(dir.path(), ""));
            }
        }
        let metrics = settled(&db)?;
        let written: u64 = metrics.levels.iter().map(|level| level.written).sum();
        let flushed = metrics.flushed_user_bytes as f64;
        println!("{len:>13} {:>8.2} {:>20.2}", written as f64 / flushed, most as f64 / DATA as f64);
    }
    Ok(())
}

/// Bytes of the files whose names begin with `prefix`.
fn bytes_in(dir: &Path, prefix: &str) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    let files = files.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    files.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn keyspaces() -> Result<()> {
    const ENTRIES: u64 = 200_000;
    println!("keyspaces  tables  table bytes  manifest bytes  made in, ms  open, ms");
    for count in [1, 100, 10_000] {
        let dir = room();
        let options = |dir: &Path| Db::builder(dir).memtable_bytes(8 << 20).compression(Compression::None);
        let db = options(dir.path()).open()?;
        let begun = Instant::now();
        let spaces = (0..count).map(|n| db.keyspace(&format!("tenant {n}"))).collect::<Result<Vec<_>>>()?;
        let made = begun.elapsed();
        let mut random = Random(1);
        for number in 0..ENTRIES {
            spaces[(number % count) as usize].insert(key(number), record(number, &mut random))?;
        }
        settled(&db)?;
        db.compact()?;
        let metrics = settled(&db)?;
        let tables: u64 = metrics.levels.iter().map(|level| level.tables).sum();
        // The handles keep the directory locked.
        drop(spaces);
        db.close()?;
        let begun = Instant::now();
        let db = options(dir.path()).open()?;
        let opened = begun.elapsed();
        assert_eq!(db.keyspaces().len() as u64, count);
        println!(
            "{count:>9} {tables:>7} {:>12} {:>15} {:>11.1} {:>9.1}",
            table_bytes(&metrics),
            bytes_in(dir.path(), "MANIFEST"),
            made.as_secs_f64() * 1e3,
            opened.as_secs_f64() * 1e3
        );
    }
    Ok(())
}

/// Mebibytes of a memtable and of the cache.
const SIZES: [(usize, u64); 4] = [(64, 32), (16, 8), (4, 4), (1, 1)];

fn memory() {
    println!("memtable, MiB  cache, MiB  most memory, MiB  write amplification  hits  get, ns");
    for (at, sizes) in SIZES.iter().enumerate() {
        let program = env::current_exe().expect("this program has a path");
        let done = Command::new(program).args(["memory-of", &at.to_string()]).status().expect("this program starts");
        assert!(done.success(), "the measurement of {sizes:?} failed");
    }
}

fn memory_of((memtable, cache): (usize, u64)) -> Result<()> {
    const ENTRIES: u64 = 1_000_000;
    const GETS: u64 = 200_000;
    let dir = room();
    let sized = |builder: Builder| builder.memtable_bytes(memtable << 20).cache_bytes(cache << 20);
    let db = sized(Db::builder(dir.path()).compression(Compression::None)).open()?;
    let (mut random, mut most) = (Random(1), 0);
    for n in 0..ENTRIES {
        db.insert((n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).to_be_bytes(), noise(100, &mut random))?;
        if n % 5_000 == 0 {
            most = most.max(resident());
        }
    }
    let loaded = settled(&db)?;
    let begun = Instant::now();
    for n in 0..GETS {
        let key = random.below(ENTRIES).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes();
        assert!(db.get(key)?.is_some(), "a key is missing");
        if n % 5_000 == 0 {
            most = most.max(resident());
        }
    }
    let read = begun.elapsed().as_nanos();
    let metrics = db.metrics();
    let (hits, misses) = (metrics.cache_hits - loaded.cache_hits, metrics.cache_misses - loaded.cache_misses);
    println!(
        "{memtable:>13} {cache:>11} {:>17.1} {:>20.2} {:>4.0}% {:>8.0}",
        most as f64 / 1024.0,
        loaded.write_amplification().unwrap_or(f64::NAN),
        hits as f64 * 100.0 / (hits + misses).max(1) as f64,
        read as f64 / GETS as f64
    );
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [first, at] = &args[..]
        && first == "memory-of"
    {
        return memory_of(SIZES[at.parse::<usize>().expect("a place in the list")]);
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    if wanted("compression") {
        compression()?;
    }
    if wanted("values") {
        values()?;
    }
    if wanted("keyspaces") {
        keyspaces()?;
    }
    if wanted("memory") {
        memory();
    }
    Ok(())
}
