//! The speed of replaying a log, by an open that only reads (into memory) and by one that may write (into tables).
//!
//! `cargo bench -p mini-engine --bench replay [-- OPERATIONS BATCH]`. One log has 350,000 (or OPERATIONS) random keys of 16 bytes with values of 100
//! in batches of 1 (or BATCH); each open gets a copy of it in its own directory. Prints megabytes of keys and values a second: medians of five opens,
//! and the slowest and the fastest. The two kinds take turns. `REPLAY_DIR` names the directory for the databases.

use std::path::Path;
use std::time::Instant;
use std::{env, fs};

use mini_engine::{Compression, Db, Durability, Result, WriteBatch};
use proof::scattered_key as key;

const VALUE: [u8; 100] = [7; 100];
const ENTRY_BYTES: u64 = 16 + 100;
const ROUNDS: usize = 5;

fn open(dir: &Path, read_only: bool) -> Result<Db> {
    Db::builder(dir).compression(Compression::None).read_only(read_only).open()
}

/// Makes in `to` the files that a killed process leaves of a database with all its entries in the log.
fn write(dir: &Path, to: &Path, operations: u64, batch: u64) -> Result<()> {
    let db = open(dir, false)?;
    for first in (0..operations).step_by(batch as usize) {
        let mut writes = WriteBatch::new();
        (first..operations.min(first + batch)).try_for_each(|n| writes.insert(key(n), VALUE))?;
        db.write(writes, Durability::Buffered)?;
    }
    copy(dir, to);
    Ok(())
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory for the copy");
    for entry in fs::read_dir(from).expect("a directory").flatten() {
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

/// The megabytes a second of one open; checks that it has found all `operations`.
fn measure(original: &Path, dir: &Path, read_only: bool, operations: u64) -> Result<f64> {
    copy(original, dir);
    let begun = Instant::now();
    let db = open(dir, read_only)?;
    let time = begun.elapsed();
    assert_eq!(db.recovery().operations_replayed, operations);
    assert!((0..operations).step_by(1 + operations as usize / 1000).all(|n| db.get(key(n)).unwrap().is_some()));
    drop(db);
    fs::remove_dir_all(dir).expect("the copy can be removed");
    Ok((operations * ENTRY_BYTES) as f64 / 1e6 / time.as_secs_f64())
}

fn main() -> Result<()> {
    let numbers: Vec<u64> = env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (operations, batch) = (numbers.first().copied().unwrap_or(350_000), numbers.get(1).copied().unwrap_or(1));
    let parent = env::var_os("REPLAY_DIR").map_or_else(env::temp_dir, Into::into);
    let place = tempfile::tempdir_in(parent).expect("a temporary directory");
    let original = place.path().join("original");
    write(&place.path().join("first"), &original, operations, batch)?;
    let mut rates = [Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        for (rates, read_only) in rates.iter_mut().zip([true, false]) {
            rates.push(measure(&original, &place.path().join("copy"), read_only, operations)?);
        }
    }
    println!("{operations} operations in batches of {batch}      MB/s   slowest  fastest");
    for (mut rates, name) in rates.into_iter().zip(["into memory", "into tables"]) {
        rates.sort_by(f64::total_cmp);
        println!("{name:36} {:7.0}   {:7.0}  {:7.0}", rates[ROUNDS / 2], rates[0], rates[ROUNDS - 1]);
    }
    Ok(())
}
