//! What a value costs in memory that is much larger than a block, on its way from the batch through the log into a table and back.
//!
//! A program of its own, with an allocator that counts. The skip list is not counted: its memory comes from the system.

use mini_engine::{Compression, Db};
use peak_alloc::PeakAlloc;

#[path = "scratch/mod.rs"]
mod scratch;

#[global_allocator]
static ALLOCATED: PeakAlloc = PeakAlloc;

const LEN: usize = 64 << 20;

/// The most bytes that were allocated during `step` beside those before it, for each byte of the value.
fn peak<T>(step: impl FnOnce() -> T) -> (T, f64) {
    let before = ALLOCATED.current_usage();
    ALLOCATED.reset_peak_usage();
    let done = step();
    (done, (ALLOCATED.peak_usage() - before) as f64 / LEN as f64)
}

/// Bytes that no codec makes shorter.
fn noise() -> Vec<u8> {
    let mut random = mini_engine::random::Random(1);
    (0..LEN / 8).flat_map(|_| random.next().to_le_bytes()).collect()
}

#[test]
fn a_large_value_costs_little_more_than_twice_its_size_at_each_step() {
    // Catches buffers that double to take the last few bytes, and copies that are made only to be written.
    let value = noise();
    for compression in [Compression::None, Compression::Lz4] {
        let dir = scratch::TempDir::new().unwrap();
        let open = || Db::builder(dir.path()).compression(compression).cache_bytes(1 << 20).open().unwrap();
        // Compressed, a block is there twice until it is written.
        let compressed = if compression == Compression::None { 0.0 } else { 1.1 };
        let mut costs = Vec::new();
        let mut note = |what: &'static str, cost: f64, limit: f64| costs.push((what, cost, limit + 0.05));
        let db = open();
        // The batch, and in the worst case the frame of the log in a buffer that doubles.
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
        // The block that is read and the block that is written.
        note("merge", peak(|| db.compact_range(..).unwrap()).1, (1.0 + compressed).max(2.0));
        note("verify", peak(|| assert!(db.verify().unwrap().problems.is_empty())).1, 1.0);
        db.insert("key", &value).unwrap();
        drop(db);
        // The frame that is read and the entry; then the entry and the block that is written.
        let (db, cost) = peak(open);
        note("replay", cost, 2.0 + compressed);
        assert!(db.get("key").unwrap().as_deref() == Some(&value[..]));
        println!("{compression:?}, as a part of the value: {costs:.2?}");
        for (what, cost, limit) in costs {
            assert!(cost <= limit, "{compression:?}, {what}: {cost:.2}, expected at most {limit:.2}");
        }
    }
}
