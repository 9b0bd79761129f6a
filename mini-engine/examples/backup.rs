//! Copies a database while others write to it, checks the copy, keeps the last two, and restores one. `cargo run -p mini-engine --example backup`

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use mini_engine::{Db, Result};

/// The copies, oldest first. The name of an interrupted copy ends in `.incomplete`; the next copy to the same place removes it.
fn copies(directory: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> =
        fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<_>>()?;
    found.retain(|path| path.extension().is_none());
    found.sort();
    Ok(found)
}

/// Makes a copy, opens and verifies it. Tables are hard links where the file system allows them, so a copy takes a flush and some microseconds for
/// each table. It takes space only once compactions have replaced the shared tables. For another device, copy the copy's files.
fn back_up(db: &Db, directory: &Path, number: u32) -> Result<u64, Box<dyn std::error::Error>> {
    let copy = directory.join(format!("{number:04}"));
    db.checkpoint(&copy)?;
    let opened = Db::builder(&copy).read_only(true).open()?;
    let checked = opened.verify()?.into_result()?; // Reads every block.
    println!("copy {number}: {} blocks are sound", checked.blocks);
    let records = opened.iter().count() as u64;
    for old in copies(directory)?.iter().rev().skip(2) {
        fs::remove_dir_all(old)?;
    }
    Ok(records)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = tempfile::tempdir()?;
    let (path, backups) = (directory.path().join("live.db"), directory.path().join("backups"));
    fs::create_dir(&backups)?;
    let db = Db::builder(&path).memtable_bytes(256 << 10).open()?;
    db.insert("0", "the first record")?;

    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let writer = scope.spawn(|| -> Result<u64> {
            let mut written = 1;
            while !done.load(Ordering::Relaxed) {
                db.insert(written.to_string(), "value")?;
                written += 1;
            }
            Ok(written)
        });
        let mut before = 0;
        for number in 1..=4 {
            let records = back_up(&db, &backups, number)?;
            println!("copy {number}: {records} records");
            assert!(records >= before.max(1), "a copy has every write that was acknowledged before it");
            before = records;
        }
        done.store(true, Ordering::Relaxed);
        println!("{} records were written", writer.join().expect("the writer")?);
        Ok::<(), Box<dyn std::error::Error>>(())
    })?;

    // The original is lost, but a copy is a database like any other. Move the copy to the old place, or open it where it is.
    db.close()?;
    fs::remove_dir_all(&path)?;
    let kept = copies(&backups)?;
    assert_eq!(kept.len(), 2);
    fs::rename(&kept[1], &path)?;
    let restored = Db::open(&path)?;
    assert_eq!(restored.get("0")?.as_deref(), Some(&b"the first record"[..]));
    println!("restored {} records", restored.iter().count());
    restored.close()?;
    Ok(())
}
