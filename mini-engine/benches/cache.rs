//! What share of block reads does the cache answer, by its size and by how keys are chosen?
//!
//! `cargo bench -p mini-engine --bench cache`. Shares are counts of the engine's own and do not depend on the machine; times
//! are context. The seed is fixed.

use std::time::Instant;

use mini_engine::random::hash;
use mini_engine::{Compression, Db};

const ENTRIES: u64 = 400_000;
const VALUE_BYTES: usize = 100;
const BLOCK_BYTES: usize = 4096;
/// Reads before the counting begins, and reads that are counted.
const WARM_UP: u64 = 300_000;
const READS: u64 = 300_000;
const THETA: f64 = 0.99;

fn unit(n: u64) -> f64 {
    (hash(n) >> 11) as f64 / (1u64 << 53) as f64
}

/// Ranks from 0, the first the most likely (Gray et al., "Quickly Generating Billion-Record Synthetic Databases", 1994).
struct Zipf {
    zeta: f64,
    eta: f64,
}

impl Zipf {
    fn new() -> Self {
        let zeta = |n: u64| (1..=n).map(|i| (i as f64).powf(-THETA)).sum::<f64>();
        let all = zeta(ENTRIES);
        let eta = (1.0 - (2.0 / ENTRIES as f64).powf(1.0 - THETA)) / (1.0 - zeta(2) / all);
        Self { zeta: all, eta }
    }

    fn rank(&self, random: f64) -> u64 {
        let scaled = random * self.zeta;
        if scaled < 1.0 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(THETA) {
            return 1;
        }
        let rank = ENTRIES as f64 * (self.eta * random - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as u64).min(ENTRIES - 1)
    }
}

#[derive(Clone, Copy, Debug)]
enum Pattern {
    Uniform,
    /// Popular keys anywhere.
    Zipfian,
    /// As popular, and beside each other: the newest of keys that grow with time.
    Latest,
    /// One after the other, and again from the start.
    Sequential,
}

impl Pattern {
    fn index(self, zipf: &Zipf, n: u64) -> u64 {
        match self {
            Pattern::Uniform => hash(n) % ENTRIES,
            Pattern::Zipfian => hash(zipf.rank(unit(n)) ^ 0x5ca7) % ENTRIES,
            Pattern::Latest => ENTRIES - 1 - zipf.rank(unit(n)),
            Pattern::Sequential => n % ENTRIES,
        }
    }
}

fn key(index: u64) -> [u8; 16] {
    let mut key = [0; 16];
    key.copy_from_slice(format!("user{index:012}").as_bytes());
    key
}

fn read(db: &Db, pattern: Pattern, zipf: &Zipf, reads: std::ops::Range<u64>) {
    for n in reads {
        let value = db.get(key(pattern.index(zipf, n))).expect("sound");
        assert_eq!(value.map(|value| value.len()), Some(VALUE_BYTES));
    }
}

fn main() -> mini_engine::Result<()> {
    let dir = tempfile::tempdir().expect("a temporary directory");
    let open = |cache_bytes: u64| {
        let builder = Db::builder(dir.path()).compression(Compression::None).block_bytes(BLOCK_BYTES);
        builder.memtable_bytes(16 << 20).cache_bytes(cache_bytes).open()
    };
    let db = open(0)?;
    for n in 0..ENTRIES {
        // Every index once, in no order: the multiplier has no factor in common with the number of entries.
        db.insert(key(n * 7919 % ENTRIES), [b'v'; VALUE_BYTES])?;
    }
    db.flush()?;
    db.close()?;
    let data = ENTRIES * (16 + VALUE_BYTES as u64);
    let zipf = Zipf::new();
    println!("| pattern | cache, of the data | hits | blocks read per get | µs per get |\n|---|---|---|---|---|");
    for pattern in [Pattern::Uniform, Pattern::Zipfian, Pattern::Latest, Pattern::Sequential] {
        for percent in [1, 5, 10, 25, 50, 125] {
            let db = open(data * percent / 100)?;
            read(&db, pattern, &zipf, 0..WARM_UP);
            let before = db.metrics();
            let begun = Instant::now();
            read(&db, pattern, &zipf, WARM_UP..WARM_UP + READS);
            let micros = begun.elapsed().as_secs_f64() * 1e6 / READS as f64;
            let after = db.metrics();
            let (hits, misses) = (after.cache_hits - before.cache_hits, after.cache_misses - before.cache_misses);
            let hit_rate = hits as f64 / (hits + misses).max(1) as f64;
            let blocks = (after.block_reads - before.block_reads) as f64 / READS as f64;
            println!("| {pattern:?} | {percent} % | {:.1} % | {blocks:.3} | {micros:.2} |", hit_rate * 100.0);
            db.close()?;
        }
    }
    Ok(())
}
