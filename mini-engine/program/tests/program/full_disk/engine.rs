//! The engine on a file system that is actually full.
//!
//! A ballast file takes almost all of the space, so that in each round the disk becomes full at another write: of the log, a table, or the manifest.
//! Writes are then refused, but flushes and opens are not. After a refused write the ballast is removed, and everything goes on without a reopen.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use mini_engine::{Compression, Db, Durability, Error, WriteBatch};

use crate::support::mount::Mount;
use proof::environment::step;
use proof::pairs;

const DISK: u64 = 3 << 20;
const WRITES: u64 = 600;
/// The rounds for each durability, and the bytes that the ballast leaves more in each round than in the one before.
const ROUNDS: u64 = 40;
const STEP: u64 = 5 << 10;

fn open(path: &Path) -> Result<Db, Error> {
    let builder = Db::builder(path).memtable_bytes(32 << 10).l0_trigger(2).cache_bytes(0);
    builder.compression(Compression::None).open()
}

fn value(n: u64) -> Vec<u8> {
    vec![(n % 251) as u8; 200]
}

/// Write `n`: three keys of its own and one key that all writes share.
fn batch(n: u64) -> WriteBatch {
    let mut batch = WriteBatch::new();
    for part in 0..3 {
        batch.insert(format!("{n:05}.{part}"), value(n)).unwrap();
    }
    batch.insert("last", n.to_le_bytes()).unwrap();
    batch
}

/// Writes everything, each `sync_every`-th write synced, and repeats each write until it is acknowledged. Counts the writes that were refused for
/// lack of space.
fn write_all(db: &Db, sync_every: u64, refused: &AtomicU64, context: &str) {
    for n in 0..WRITES {
        let durability = if (n + 1).is_multiple_of(sync_every) { Durability::Synced } else { Durability::Buffered };
        while let Err(error) = db.write(batch(n), durability) {
            assert!(is_full(&error), "{context}: {error}");
            refused.fetch_add(1, Ordering::SeqCst);
            std::thread::yield_now();
        }
    }
}

/// Checks that the database has exactly the first `written` writes.
fn check(path: &Path, written: u64, context: &str) {
    let db = open(path).unwrap_or_else(|error| panic!("{context}: {error}"));
    let last = db.get("last").unwrap().map(|value| u64::from_le_bytes(value[..].try_into().unwrap()));
    assert_eq!(last, Some(written - 1), "{context}");
    let expected = (0..written).flat_map(|n| (0..3).map(move |part| (format!("{n:05}.{part}").into_bytes(), value(n))));
    assert!(pairs(db.range(.."last")).into_iter().eq(expected), "{context}: a part of a batch");
    assert_eq!(db.range("last"..).count(), 1, "{context}");
    assert!(db.verify().unwrap().problems.is_empty(), "{context}");
    db.close().unwrap_or_else(|error| panic!("{context}: {error}"));
}

/// Fills the disk except for `left` bytes.
fn ballast(path: &Path, left: u64) {
    let mut file = fs::File::create(path).expect("the ballast");
    let full = loop {
        if let Err(error) = file.write_all(&[1; 4096]) {
            break error;
        }
    };
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    file.set_len(file.metadata().expect("known").len() - left).expect("cut");
}

/// Runs a round; returns the number of refused writes.
fn round(mount: &Mount, left: u64, sync_every: u64) -> u64 {
    let (path, weight) = (mount.path("db"), mount.path("ballast"));
    let context = format!("{left} bytes left, every {sync_every}th write synced");
    drop(open(&path).unwrap());
    ballast(&weight, left);
    let db = open(&path).unwrap_or_else(|error| panic!("{context}: {error}"));
    let writes = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| write_all(&db, sync_every, &writes, &context));
        // The ballast is removed after two refused writes.
        while !writer.is_finished() && writes.load(Ordering::SeqCst) < 2 {
            db.flush().unwrap_or_else(|error| panic!("{context}: {error}"));
        }
        drop(fs::remove_file(&weight));
        writer.join().unwrap();
    });
    // All writes are checked without a reopen, and again after one.
    db.close().unwrap_or_else(|error| panic!("{context}: {error}"));
    check(&path, WRITES, &context);
    fs::remove_dir_all(&path).unwrap();
    writes.into_inner()
}

/// There is no room for a table, so the flush uses the reserve (rule 8).
fn flush_without_room(mount: &Mount) {
    let (path, weight) = (mount.path("db"), mount.path("ballast"));
    let db = open(&path).unwrap();
    for n in 0..20 {
        db.write(batch(n), Durability::Buffered).unwrap();
    }
    ballast(&weight, 4 << 10);
    db.flush().unwrap();
    assert!(db.metrics().flushes == 1 && db.iter().count() == 20 * 3 + 1);
    db.remove("absent").unwrap();
    fs::remove_file(&weight).unwrap();
    while let Err(error) = db.write(batch(20), Durability::Synced) {
        assert!(is_full(&error), "{error}");
    }
    db.close().unwrap();
    check(&path, 21, "a flush without room");
    fs::remove_dir_all(&path).unwrap();
}

fn is_full(error: &Error) -> bool {
    matches!(error, Error::Io { source, .. } if source.kind() == ErrorKind::StorageFull)
}

#[test]
fn a_disk_that_is_really_full_loses_nothing_acknowledged() {
    // Catches a defect that a simulated disk cannot show: a call may fail for lack of space later than the write that needed it.
    let Some(mount) = Mount::new(DISK, "a_disk_that_is_really_full_loses_nothing_acknowledged") else { return };
    flush_without_room(&mount);
    for (name, sync_every) in [("buffered", u64::MAX), ("mixed", 8), ("synced", 1)] {
        let rounds = (0..ROUNDS).step_by(step(3));
        let met: Vec<u64> = rounds.map(|n| round(&mount, 4096 + n * STEP, sync_every)).collect();
        let writes = met.iter().filter(|refused| **refused > 0).count();
        println!("{name}: space was missing for writes in {writes} of {} rounds; all resumed", met.len());
        assert!(writes > 0, "{name}: {met:?}");
    }
}
