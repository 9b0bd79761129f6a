//! The costs of options and of shapes of data that the workloads of `engine` do not have.
//!
//! `cargo bench -p mini-engine --bench tuning [-- compression | keyspaces | tables | full]`: three tables, or one of them. Bytes hardly depend on the
//! machine; times need it idle. Flushes and compactions have ended before a time is taken.
//! * Compression: bytes of tables after a full compaction, and of the log, for each byte of keys and values, with records in JSON and with random
//!   bytes; time for each entry to read all in order, in the best of five rounds.
//! * Keyspaces: the same records in one keyspace and in many: tables, their bytes, bytes of the manifest, the time to make the keyspaces, and the
//!   time of an open.
//! * Tables: a database of N tables, each as small as possible (about 1 KiB; with tables of 64 MiB, 16,000 would be 1 TB), is loaded and opened
//!   again in a process of its own. Columns: the time to open, to compute the metrics (which plans a compaction), and of a get of a key whose table
//!   is not open; the memory of the process after that, and after a get from every table. Uses `/dev/shm` if there is one, so that no device is
//!   measured. `edits` is the number of edits in the manifest; half of the databases have as many as fit before a new manifest begins. Sizes are
//!   1,000 and 16,000; `full` adds 100,000.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use memtable_bench::anonymous;
use mini_engine::{Compression, Db, Durability, Metrics, Result, WriteBatch};
use proof::Random;
use tempfile::{tempdir, tempdir_in};

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

fn settled(db: &Db) -> Result<Metrics> {
    db.flush()?;
    db.wait_for_compactions()?;
    Ok(db.metrics())
}

fn table_bytes(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.bytes).sum()
}

fn tables_of(metrics: &Metrics) -> u64 {
    metrics.levels.iter().map(|level| level.tables).sum()
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
    let dir = tempdir().expect("a temporary directory");
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
        let dir = tempdir().expect("a temporary directory");
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
        let tables = tables_of(&metrics);
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

const VALUE: [u8; 240] = [7; 240];
/// Entries that fill the smallest table.
const PER_TABLE: u64 = 5;
fn open_small(dir: &Path) -> Result<Db> {
    // Level 0 is not compacted: the bench measures existing tables, and not due compactions.
    let builder = Db::builder(dir).table_file_bytes(1 << 10).compression(Compression::None).l0_trigger(500);
    builder.l0_slowdown(1000).l0_stop(1000).cache_bytes(1 << 20).open()
}

/// Loads `tables` tables, and adds edits until the manifest has `edits` more.
fn load(dir: &Path, tables: u64, edits: u64) -> Result<()> {
    let db = open_small(dir)?;
    db.ingest((0..tables * PER_TABLE).map(|n| (n.to_be_bytes(), VALUE)))?;
    let first = tables_of(&db.metrics());
    assert!(first >= tables * 9 / 10, "{first} tables");
    let mut random = Random(1);
    for _ in 0..edits / 2 {
        // A flush and a compaction add two edits.
        let key = random.next() % (tables * PER_TABLE);
        db.insert(key.to_be_bytes(), VALUE)?;
        db.flush()?;
        db.compact_range(key.to_be_bytes()..=key.to_be_bytes())?;
    }
    // The next open reads the manifest unchanged; closing would not change it either.
    drop(db);
    Ok(())
}

fn measure_open(dir: &Path, tables: u64) -> Result<()> {
    let begun = Instant::now();
    let db = open_small(dir)?;
    let opened = begun.elapsed();
    let begun = Instant::now();
    let found = tables_of(&db.metrics());
    let planned = begun.elapsed();
    let begun = Instant::now();
    assert!(db.get((tables * PER_TABLE / 2).to_be_bytes())?.is_some());
    let cold = begun.elapsed();
    let resident = || anonymous().unwrap_or(0) as f64 / f64::from(1 << 20);
    let before = resident();
    for table in 0..tables {
        assert!(db.get((table * PER_TABLE).to_be_bytes())?.is_some(), "table {table}");
    }
    println!(
        "{opened:>9.1?} {planned:>9.1?} {cold:>9.1?} {:>9.1} {:>9.1}   ({found} tables, {} open)",
        before,
        resident(),
        db.metrics().open_files
    );
    Ok(())
}

/// Runs this program again for one step, so that the memory of another one is not counted.
fn in_child(args: &[&str]) {
    let program = env::current_exe().expect("this program has a path");
    let done = Command::new(program).args(args).status().expect("this program starts");
    assert!(done.success(), "{args:?} failed");
}

fn tables(full: bool) {
    println!("  tables    edits      open      plan  cold get  MiB open  MiB read");
    let memory = Path::new("/dev/shm");
    let parent: PathBuf = if memory.is_dir() { memory.to_path_buf() } else { env::temp_dir() };
    let sizes: &[u64] = if full { &[1_000, 16_000, 100_000] } else { &[1_000, 16_000] };
    for (tables, edits) in sizes.iter().flat_map(|tables| [(tables, "0"), (tables, "4000")]) {
        let dir = tempdir_in(&parent).expect("a temporary directory");
        let (path, tables) = (dir.path().display().to_string(), tables.to_string());
        in_child(&["child-load", &path, &tables, edits]);
        print!("{tables:>8} {edits:>8} ");
        std::io::Write::flush(&mut std::io::stdout()).expect("standard output");
        in_child(&["child-open", &path, &tables]);
    }
}

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |at: usize| args[at].parse::<u64>().expect("a number");
    match args.first().map(String::as_str) {
        Some("child-load") => return load(Path::new(&args[1]), number(2), number(3)),
        Some("child-open") => return measure_open(Path::new(&args[1]), number(2)),
        _ => {}
    }
    let wanted = |name: &str| args.is_empty() || args.iter().any(|arg| arg == name);
    if wanted("compression") {
        compression()?;
    }
    if wanted("keyspaces") {
        keyspaces()?;
    }
    if wanted("tables") || wanted("full") {
        tables(args.iter().any(|arg| arg == "full"));
    }
    Ok(())
}
