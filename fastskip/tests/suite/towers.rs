//! How high nodes stand, which no read shows and every search feels.

use fastskip::{Memtable, Op};

const ENTRIES: u32 = 1 << 15;
/// A node's words beside its tower: its number, and lengths, key and value. Built for a sanitizer, a gap follows.
const OTHER_WORDS: f64 = if cfg!(fastskip_poisoned) { 3.0 } else { 2.0 };

/// Levels of a node in the mean, when `key(n)` is the `n`-th key and keys come in batches of `batch`.
fn mean_levels(batch: usize, key: impl Fn(u32) -> u32) -> f64 {
    let memtable = Memtable::builder().shards(1).build();
    let keys: Vec<_> = (0..ENTRIES).map(|number| key(number).to_be_bytes()).collect();
    for keys in keys.chunks(batch) {
        let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"" }).collect();
        assert_eq!(memtable.reserve(&ops).unwrap().apply(1), ops.len());
    }
    memtable.validate();
    memtable.memory_usage() as f64 / 8.0 / f64::from(ENTRIES) - OTHER_WORDS
}

/// Catches towers that stay low where keys come in order or in batches, so that searches take as many steps as there are
/// entries, and ones so high that they cost the memory that was promised.
#[test]
fn towers_are_as_high_as_their_gaps_ask_for() {
    for batch in [1, 100] {
        for (order, levels, least, most) in [
            ("ascending", mean_levels(batch, |number| number), 1.4, 1.6),
            ("descending", mean_levels(batch, |number| ENTRIES - number), 1.4, 1.6),
            ("random", mean_levels(batch, |number| number.wrapping_mul(0x9e37_79b1)), 1.85, 2.1),
        ] {
            assert!((least..=most).contains(&levels), "{order}, by {batch}: {levels} levels in the mean");
        }
    }
}
