//! How fast is a probe of the filter, and how many false positives does it give for its bits, beside `fastbloom` and a
//! Bloom filter without lines?
//!
//! `cargo bench -p mini-engine --bench filter` compares; `-- curve` measures the rate at 1 to 32 bits per key. The filter is the engine's own source
//! file. Subjects take turns, round by round; medians of the rounds, and the fastest and the slowest.

use std::hint::black_box;
use std::time::Instant;

use fastbloom::BloomFilter;

#[path = "../src/table/filter.rs"]
mod filter;
#[path = "../src/table/theory.rs"]
mod theory;

use filter::Filter;
use mini_engine::random::hash;

const ROUNDS: usize = 7;
/// Keys that are asked for in one round.
const ASKED: usize = 1 << 20;
/// Keys of one batch, about a block of a large `get_many`.
const BATCH: usize = 256;

fn hashes(from: u64, count: usize) -> Vec<u64> {
    (from..).take(count).map(hash).collect()
}

/// The textbook's filter: probes anywhere, by double hashing (Kirsch and Mitzenmacher, 2006).
struct Unblocked {
    words: Vec<u64>,
    probes: u32,
}

impl Unblocked {
    fn build(hashes: &[u64], bits_per_key: f64) -> Self {
        let bits = (hashes.len() as f64 * bits_per_key) as usize;
        let probes = (bits_per_key * std::f64::consts::LN_2).round().max(1.0) as u32;
        let mut filter = Self { words: vec![0; bits.div_ceil(64)], probes };
        for &hash in hashes {
            for probe in 0..probes {
                let bit = filter.bit(hash, probe);
                filter.words[bit / 64] |= 1 << (bit % 64);
            }
        }
        filter
    }

    fn bit(&self, hash: u64, probe: u32) -> usize {
        let step = hash.rotate_left(32).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let at = hash.wrapping_add(step.wrapping_mul(u64::from(probe)));
        ((u128::from(at) * (self.words.len() as u128 * 64)) >> 64) as usize
    }

    fn may_contain(&self, hash: u64) -> bool {
        (0..self.probes).all(|probe| {
            let bit = self.bit(hash, probe);
            self.words[bit / 64] & (1 << (bit % 64)) != 0
        })
    }
}

/// How many of these hashes pass.
type Ask<'a> = dyn Fn(&[u64]) -> usize + 'a;

/// One way of asking a filter for many keys.
struct Subject<'a> {
    name: &'static str,
    bits: f64,
    ask: Box<Ask<'a>>,
}

fn median(times: &mut [f64]) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

fn compare(keys: usize, bits_per_key: f64) {
    let stored = hashes(0, keys);
    let encoded = Filter::build(&stored, bits_per_key);
    let own = Filter::decode(&encoded).expect("own encoding");
    let unblocked = Unblocked::build(&stored, bits_per_key);
    let mut peer = BloomFilter::with_num_bits((keys as f64 * bits_per_key) as usize).expected_items(keys);
    stored.iter().for_each(|&hash| {
        peer.insert_hash(hash);
    });
    let batched = |asked: &[u64]| {
        let mut passing = Vec::with_capacity(BATCH);
        let pass = |batch: &[u64]| {
            passing.clear();
            own.may_contain_many(batch, &mut passing);
            passing.len()
        };
        asked.chunks(BATCH).map(pass).sum()
    };
    let subjects = [
        Subject {
            name: "mini-engine, one by one",
            bits: filter::encoded_len(keys, bits_per_key) as f64 * 8.0,
            ask: Box::new(|asked| asked.iter().filter(|&&hash| own.may_contain(hash)).count()),
        },
        Subject {
            name: "mini-engine, batches",
            bits: filter::encoded_len(keys, bits_per_key) as f64 * 8.0,
            ask: Box::new(batched),
        },
        Subject {
            name: "fastbloom",
            bits: peer.num_bits() as f64,
            ask: Box::new(|asked| asked.iter().filter(|&&hash| peer.contains_hash(hash)).count()),
        },
        Subject {
            name: "unblocked",
            bits: unblocked.words.len() as f64 * 64.0,
            ask: Box::new(|asked| asked.iter().filter(|&&hash| unblocked.may_contain(hash)).count()),
        },
    ];
    for (question, asked) in [("absent", hashes(1 << 40, ASKED)), ("stored", shuffled(&stored))] {
        let mut times = vec![Vec::new(); subjects.len()];
        let mut passed = vec![0; subjects.len()];
        for _ in 0..ROUNDS {
            for (at, subject) in subjects.iter().enumerate() {
                let begun = Instant::now();
                passed[at] = black_box((subject.ask)(black_box(&asked)));
                times[at].push(begun.elapsed().as_nanos() as f64 / asked.len() as f64);
            }
        }
        for ((subject, times), passed) in subjects.iter().zip(&mut times).zip(passed) {
            let (middle, low, high) = median(times);
            let rate = passed as f64 / asked.len() as f64;
            assert!(question == "absent" || passed == asked.len(), "{}: a stored key was denied", subject.name);
            println!(
                "| {keys:>9} | {bits_per_key:>4} | {question} | {:<23} | {middle:>6.1} ({low:.1}-{high:.1}) | {:>8.4} % | {:>6.2} |",
                subject.name,
                rate * 100.0,
                subject.bits / keys as f64
            );
        }
    }
}

/// Stored keys in no order that the memory knows, at most [`ASKED`] of them.
fn shuffled(stored: &[u64]) -> Vec<u64> {
    (0..stored.len().min(ASKED) as u64).map(|n| stored[(hash(n ^ 0x5eed) % stored.len() as u64) as usize]).collect()
}

/// The rate at each whole number of bits, with the number of probes that `build` chooses.
fn curve() {
    let stored = hashes(0, 4 << 20);
    println!("| bits per key | measured | expected in lines | expected without lines |\n|---|---|---|---|");
    for bits in 1..=32u32 {
        let encoded = Filter::build(&stored, f64::from(bits));
        let filter = Filter::decode(&encoded).expect("own encoding");
        let asked = 1u64 << 26;
        let passed = (1 << 40..).take(asked as usize).filter(|&n| filter.may_contain(hash(n))).count();
        let best = |rate: fn(f64, u32) -> f64| (1..=24).map(|k| rate(f64::from(bits), k)).fold(1.0, f64::min);
        let (lines, ideal) = (best(theory::blocked), best(theory::unblocked));
        println!("| {bits} | {:.4e} | {lines:.4e} | {ideal:.4e} |", passed as f64 / asked as f64);
    }
}

fn main() {
    if std::env::args().any(|argument| argument == "curve") {
        return curve();
    }
    println!(
        "| keys | bits | question | subject | ns per probe | pass | bits per key |\n|---|---|---|---|---|---|---|"
    );
    for keys in [100_000, 1_000_000, 10_000_000] {
        compare(keys, 10.0);
    }
    compare(1_000_000, 5.0);
    compare(1_000_000, 16.0);
}
