//! The memory of large values and nested ranges, measured by a counting allocator. The skip list's memory comes from the system and
//! is not counted.

use mini_engine::{Compression, Db, Snapshot};
use peak_alloc::PeakAlloc;

use proof::TempDir;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const LEN: usize = 64 << 20;

/// The peak of allocated bytes during `step`, without those allocated before it.
fn peak_bytes<T>(step: impl FnOnce() -> T) -> (T, usize) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let done = step();
    (done, ALLOCATED.peak_usage() - before)
}

/// That peak for each byte of the large value.
fn peak<T>(step: impl FnOnce() -> T) -> (T, f64) {
    let (done, bytes) = peak_bytes(step);
    (done, bytes as f64 / LEN as f64)
}

pub(crate) fn a_large_value_costs_little_more_than_twice_its_size_at_each_step() {
    // Catches buffers that double for the last few bytes, and copies that are made only to be written.
    let value = proof::noise(LEN, 1);
    for compression in [Compression::None, Compression::Lz4] {
        let dir = TempDir::new().unwrap();
        let open = || Db::builder(dir.path()).compression(compression).cache_bytes(1 << 20).open().unwrap();
        // Until it is written, a block is in memory both compressed and uncompressed.
        let compressed = if compression == Compression::None { 0.0 } else { 1.1 };
        let mut costs = Vec::new();
        let mut note = |what: &'static str, cost: f64, limit: f64| costs.push((what, cost, limit + 0.05));
        let db = open();
        // The peak has the batch and, in the worst case, the frame of the log in a buffer that doubles.
        note("insert", peak(|| db.insert("key", &value).unwrap()).1, 4.0);
        note("flush", peak(|| db.flush().unwrap()).1, 1.0 + compressed);
        let (found, cost) = peak(|| db.get("key").unwrap().unwrap());
        note("get", cost, 1.0);
        assert!(found[..] == value);
        drop(found);
        let (found, cost) = peak(|| db.iter().next().unwrap().unwrap().1);
        note("scan", cost, 1.0);
        assert!(found[..] == value);
        drop(found);
        db.remove("other").unwrap();
        db.flush().unwrap();
        // The peak has the block that is read and the block that is written.
        note("compaction", peak(|| db.compact_range(..).unwrap()).1, (1.0 + compressed).max(2.0));
        note("verify", peak(|| assert!(db.verify().unwrap().problems.is_empty())).1, 1.0);
        db.insert("key", &value).unwrap();
        drop(db);
        // The peak has the frame that is read and the entry, and later the entry and the block that is written.
        let (db, cost) = peak(open);
        note("replay", cost, 2.0 + compressed);
        assert!(db.get("key").unwrap().as_deref() == Some(&value[..]));
        println!("{compression:?}, as a part of the value: {costs:.2?}");
        for (what, cost, limit) in costs {
            assert!(cost <= limit, "{compression:?}, {what}: {cost:.2}, expected at most {limit:.2}");
        }
    }
}

const RANGES: u32 = 5000;

/// The number of range tombstones of all tables, and the bytes of all tables.
fn tables(db: &Db) -> (u64, u64) {
    let levels = db.metrics().levels;
    (levels.iter().map(|level| level.range_tombstones).sum(), levels.iter().map(|level| level.bytes).sum())
}

pub(crate) fn nested_ranges_cost_as_much_as_so_many_beside_each_other() {
    // Each range tombstone is visible to a snapshot of its own, so that no tombstone can be dropped. Catches a representation that
    // lists, at each bound of a range, all tombstones that cover it: 25 million numbers in memory and in a table.
    let dir = TempDir::new().unwrap();
    let db = Db::open(dir.path()).unwrap();
    (0..3 * RANGES).for_each(|n| db.insert(n.to_be_bytes(), "").unwrap());
    db.flush().unwrap();
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let ((), removed) = peak_bytes(|| {
        for n in 0..RANGES {
            snapshots.push(db.snapshot());
            db.remove_range((RANGES - n).to_be_bytes()..(2 * RANGES + n).to_be_bytes()).unwrap();
        }
    });
    let ((), flushed) = peak_bytes(|| db.flush().unwrap());
    let ((), compacted) = peak_bytes(|| db.compact_range(..).unwrap());
    println!(
        "bytes allocated: {removed} to remove, {flushed} to flush, {compacted} to compaction; tables: {:?}",
        tables(&db)
    );
    for (what, bytes) in [("remove", removed), ("flush", flushed), ("compaction", compacted)] {
        assert!(bytes < 16 << 20, "{bytes} bytes to {what}");
    }
    let (ranges, bytes) = tables(&db);
    assert!(ranges <= 2 * u64::from(RANGES) && bytes < 2 << 20, "{ranges} ranges in {bytes} bytes");
    for (n, snapshot) in (0..RANGES).zip(&snapshots).step_by(499) {
        let sees = |key: u32| snapshot.contains_key(key.to_be_bytes()).unwrap();
        assert!(sees(RANGES - n) && sees(2 * RANGES + n), "{n}");
        assert!(n == 0 || !sees(RANGES - n + 1) && !sees(2 * RANGES + n - 2), "{n}");
        let left = RANGES as usize * 3 - if n == 0 { 0 } else { (RANGES + 2 * (n - 1)) as usize };
        assert_eq!((snapshot.iter().count(), snapshot.iter().rev().count()), (left, left), "{n}");
    }
}
