//! What ranges cost that were removed one around the other, each seen by a snapshot of its own: so that none of them can be left out.
//!
//! A program of its own, with an allocator that counts. The skip list is not counted: its memory comes from the system.

use mini_engine::{Db, Snapshot};
use peak_alloc::PeakAlloc;

#[path = "scratch/mod.rs"]
mod scratch;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const RANGES: u32 = 5000;

/// The most bytes that were allocated during `step` beside those before it.
fn peak(step: impl FnOnce()) -> usize {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    step();
    ALLOCATED.peak_usage() - before
}

/// The number of range tombstones, and bytes, of all tables.
fn tables(db: &Db) -> (u64, u64) {
    let levels = db.metrics().levels;
    (levels.iter().map(|level| level.range_tombstones).sum(), levels.iter().map(|level| level.bytes).sum())
}

#[test]
fn nested_ranges_cost_as_much_as_so_many_beside_each_other() {
    // Catches, for each place where a range begins or ends, a list of all that cover it: 25 million numbers in memory and in a table.
    let dir = scratch::TempDir::new().unwrap();
    let db = Db::builder(dir.path()).open().unwrap();
    (0..3 * RANGES).for_each(|n| db.insert(n.to_be_bytes(), "").unwrap());
    db.flush().unwrap();
    let mut snapshots: Vec<Snapshot> = Vec::new();
    let removed = peak(|| {
        for n in 0..RANGES {
            snapshots.push(db.snapshot());
            db.remove_range((RANGES - n).to_be_bytes()..(2 * RANGES + n).to_be_bytes()).unwrap();
        }
    });
    let flushed = peak(|| db.flush().unwrap());
    let merged = peak(|| db.compact_range(..).unwrap());
    println!("bytes allocated: {removed} to remove, {flushed} to flush, {merged} to merge; tables: {:?}", tables(&db));
    for (what, bytes) in [("remove", removed), ("flush", flushed), ("merge", merged)] {
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
