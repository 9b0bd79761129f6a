//! The costs of an engine with many tables: the time to open it and to plan compactions, its memory, and the longest wait of a put.
//!
//! `cargo bench -p mini-engine --bench scale [-- full]`. Two tables are printed:
//! * Opening. A database of N tables, each as small as possible (about 1 KiB; with tables of 64 MiB, 16,000 would be 1 TB), is loaded and opened
//!   again in a process of its own. Columns: the time to open, to compute the metrics (which plans a compaction), and of a get of a key whose table
//!   is not open; the memory of the process after that, and after a get from every table. Uses `/dev/shm` if there is one, so that no device is
//!   measured. `edits` is the number of edits in the manifest; half of the databases have as many as fit before a new manifest begins.
//! * Longest put. Random keys are put into memtables of 1 MiB for each policy. Printed are the longest put, the 99.99th percentile, and the mean; the
//!   most bytes that files took, for each byte of data after a full compaction; and the bytes of tables written for each byte of keys and values.
//!
//! Sizes are 1,000 and 16,000 tables, 100 and 400 MB; `full` adds 100,000 tables and 1,600 MB.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs};

use mini_engine::{Compaction, Compression, Db, Result};
use proof::Random;

const VALUE: [u8; 240] = [7; 240];
/// Entries that fill the smallest table.
const PER_TABLE: u64 = 5;
const POLICIES: [Compaction; Compaction::ALL.len()] = *Compaction::ALL.first_chunk().unwrap();

fn open(dir: &Path) -> Result<Db> {
    // Level 0 is not compacted: the bench measures existing tables, and not due compactions.
    let builder = Db::builder(dir).table_file_bytes(1 << 10).compression(Compression::None).l0_trigger(500);
    builder.l0_slowdown(1000).l0_stop(1000).cache_bytes(1 << 20).open()
}

/// Loads `tables` tables, and adds edits until the manifest has `edits` more.
fn load(dir: &Path, tables: u64, edits: u64) -> Result<()> {
    let db = open(dir)?;
    db.ingest((0..tables * PER_TABLE).map(|n| (n.to_be_bytes(), VALUE)))?;
    let first = db.metrics().levels.iter().map(|level| level.tables).sum::<u64>();
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

/// Kilobytes of anonymous memory of this process; 0 where the system does not report it.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn measure_open(dir: &Path, tables: u64) -> Result<()> {
    let begun = Instant::now();
    let db = open(dir)?;
    let opened = begun.elapsed();
    let begun = Instant::now();
    let found: u64 = db.metrics().levels.iter().map(|level| level.tables).sum();
    let planned = begun.elapsed();
    let begun = Instant::now();
    assert!(db.get((tables * PER_TABLE / 2).to_be_bytes())?.is_some());
    let cold = begun.elapsed();
    let before = resident();
    for table in 0..tables {
        assert!(db.get((table * PER_TABLE).to_be_bytes())?.is_some(), "table {table}");
    }
    println!(
        "{opened:>9.1?} {planned:>9.1?} {cold:>9.1?} {:>9.1} {:>9.1}   ({found} tables, {} open)",
        before as f64 / 1024.0,
        resident() as f64 / 1024.0,
        db.metrics().open_files
    );
    Ok(())
}

fn bytes_in(dir: &Path) -> u64 {
    let files = fs::read_dir(dir).into_iter().flatten().flatten();
    files.filter_map(|entry| entry.metadata().ok()).map(|metadata| metadata.len()).sum()
}

fn measure_puts(dir: &Path, policy: Compaction, megabytes: u64) -> Result<()> {
    let builder = Db::builder(dir).compaction(policy).memtable_bytes(1 << 20).compression(Compression::None);
    let db = builder.open()?;
    let (puts, mut random) = (megabytes * 1_000_000 / 116, Random(1));
    let mut times: Vec<Duration> = Vec::with_capacity(puts as usize);
    let (begun, mut most_bytes) = (Instant::now(), 0);
    for n in 0..puts {
        let key = format!("{:016}", random.next() % (puts * 4));
        let put = Instant::now();
        db.insert(key, [n as u8; 100])?;
        times.push(put.elapsed());
        if n % 100_000 == 0 {
            most_bytes = most_bytes.max(bytes_in(dir));
        }
    }
    let mean = begun.elapsed() / puts as u32;
    let most_tables = db.metrics().levels.first().map_or(0, |level| level.tables);
    times.sort_unstable();
    let longest = times.last().copied().unwrap_or_default();
    let rare = times.get(times.len() - times.len() / 10_000 - 1).copied().unwrap_or_default();
    db.flush()?;
    db.wait_for_compactions()?;
    most_bytes = most_bytes.max(bytes_in(dir));
    let done = db.metrics();
    let written = done.levels.iter().map(|level| level.written).sum::<u64>() as f64 / done.flushed_user_bytes as f64;
    db.compact_range(..)?;
    let least: u64 = db.metrics().levels.iter().map(|level| level.bytes).sum();
    let metrics = db.metrics();
    println!(
        "{:<12} {megabytes:>6} {longest:>9.1?} {rare:>9.1?} {mean:>9.2?} {:>8} {:>8} {:>9} {:>6.2} {written:>8.2}",
        format!("{policy:?}"),
        metrics.stalls,
        metrics.slowdowns,
        most_tables,
        most_bytes as f64 / least as f64
    );
    Ok(())
}

/// Runs this program again for one measurement, so that the memory of another measurement is not counted.
fn in_child(args: &[String]) {
    let program = env::current_exe().expect("this program has a path");
    let done = Command::new(program).args(args).status().expect("this program starts");
    assert!(done.success(), "{args:?} failed");
}

fn main() -> Result<()> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let number = |at: usize| args.get(at).and_then(|arg| arg.parse::<u64>().ok()).unwrap_or(0);
    match args.first().map(String::as_str) {
        Some("load") => load(Path::new(&args[1]), number(2), number(3)),
        Some("open") => measure_open(Path::new(&args[1]), number(2)),
        Some("puts") => measure_puts(Path::new(&args[1]), POLICIES[number(2) as usize], number(3)),
        first => {
            // What selects groups of the other benches selects nothing here.
            if first.is_none_or(|first| first == "full") {
                run_all(first.is_some());
            }
            Ok(())
        }
    }
}

fn run_all(full: bool) {
    println!("  tables    edits      open      plan  cold get  MiB open  MiB read");
    let memory = Path::new("/dev/shm");
    let parent: PathBuf = if memory.is_dir() { memory.to_path_buf() } else { env::temp_dir() };
    let sizes: &[u64] = if full { &[1_000, 16_000, 100_000] } else { &[1_000, 16_000] };
    for (&tables, edits) in sizes.iter().flat_map(|tables| [(tables, 0), (tables, 4_000)]) {
        let dir = tempfile::tempdir_in(&parent).expect("a temporary directory");
        let path = dir.path().display().to_string();
        in_child(&["load".to_owned(), path.clone(), tables.to_string(), edits.to_string()]);
        print!("{tables:>8} {edits:>8} ");
        std::io::Write::flush(&mut std::io::stdout()).expect("standard output");
        in_child(&["open".to_owned(), path, tables.to_string()]);
    }
    println!("\npolicy           MB   longest  1 in 10^4      mean   stalls slowdowns  level 0  space  written");
    let sizes: &[u64] = if full { &[100, 400, 1600] } else { &[100, 400] };
    for (policy, megabytes) in (0..POLICIES.len()).flat_map(|policy| sizes.iter().map(move |&size| (policy, size))) {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().display().to_string();
        in_child(&["puts".to_owned(), path, policy.to_string(), megabytes.to_string()]);
    }
}
