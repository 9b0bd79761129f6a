//! How fast is the search for a block among an index's fences, beside a binary search over the same fences?
//!
//! `cargo bench -p mini-engine --bench fences`. The search over heads is the engine's own source file. Subjects take turns,
//! round by round; medians of the rounds, and the fastest and the slowest.

use std::hint::black_box;
use std::time::Instant;

#[path = "../src/table/eytzinger.rs"]
mod eytzinger;

use eytzinger::Heads;
use mini_engine::random::hash;

const ROUNDS: usize = 5;
const SEARCHES: usize = 200_000;

/// Keys as an index has them: one behind the other, found by offset.
struct Fences {
    bytes: Vec<u8>,
    ends: Vec<u32>,
}

impl Fences {
    fn new(mut keys: Vec<Vec<u8>>) -> Self {
        keys.sort();
        keys.dedup();
        let mut fences = Self { bytes: Vec::new(), ends: vec![0] };
        for key in keys {
            fences.bytes.extend_from_slice(&key);
            fences.ends.push(fences.bytes.len() as u32);
        }
        fences
    }

    fn len(&self) -> usize {
        self.ends.len() - 1
    }

    fn key(&self, at: usize) -> &[u8] {
        &self.bytes[self.ends[at] as usize..self.ends[at + 1] as usize]
    }

    /// The first fence that is not before `key`.
    fn binary_search(&self, key: &[u8]) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            if self.key(middle) < key { from = middle + 1 } else { to = middle }
        }
        from
    }
}

fn median(times: &mut [f64]) -> (f64, f64, f64) {
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

fn compare(kind: &str, count: u64, make: fn(u64) -> Vec<u8>) {
    let fences = Fences::new((0..count).map(make).collect());
    let heads = Heads::new(fences.len(), |at| fences.key(at));
    let targets: Vec<Vec<u8>> = (0..SEARCHES as u64).map(|n| make(hash(n) % count + (n % 2) * count)).collect();
    let plain = |key: &Vec<u8>| fences.binary_search(key);
    let by_heads = |key: &Vec<u8>| heads.first_not_before(key, |at| fences.key(at) < &key[..]);
    type Search<'a> = (&'static str, Box<dyn Fn(&Vec<u8>) -> usize + 'a>);
    let mut subjects: Vec<Search<'_>> = vec![("binary", Box::new(plain)), ("eytzinger", Box::new(by_heads))];
    if kind == "random" {
        // Random keys have no prefix in common, so that their first bytes are what a search over sorted heads would see.
        let head = |key: &[u8]| u64::from_be_bytes(*key.first_chunk::<8>().expect("8 bytes"));
        let sorted: Vec<u64> = (0..fences.len()).map(|at| head(fences.key(at))).collect();
        let fences = &fences;
        let by_sorted = move |key: &Vec<u8>| {
            let at = sorted.partition_point(|&other| other < head(key));
            // As in the engine, the key whose head is the target's own is compared.
            let is_before = sorted.get(at) == Some(&head(key)) && fences.key(at) < &key[..];
            at + usize::from(is_before)
        };
        subjects.push(("binary, sorted heads", Box::new(by_sorted)));
    }
    let mut times = vec![Vec::new(); subjects.len()];
    let mut sums = vec![0; subjects.len()];
    for _ in 0..ROUNDS {
        for (at, (_, search)) in subjects.iter().enumerate() {
            let begun = Instant::now();
            sums[at] = targets.iter().map(|target| black_box(search(black_box(target)))).sum::<usize>();
            times[at].push(begun.elapsed().as_nanos() as f64 / SEARCHES as f64);
        }
    }
    assert!(sums.iter().all(|&sum| sum == sums[0]), "the searches disagree");
    for ((name, _), times) in subjects.iter().zip(&mut times) {
        let (middle, low, high) = median(times);
        let memory = if *name == "eytzinger" { heads.memory_len() as f64 / fences.len() as f64 } else { 0.0 };
        println!("| {kind} | {:>8} | {name:<20} | {middle:>6.0} ({low:.0}-{high:.0}) | {memory:.1} |", fences.len());
    }
}

fn random(n: u64) -> Vec<u8> {
    hash(n).to_be_bytes().to_vec()
}

fn decimals(n: u64) -> Vec<u8> {
    format!("user{:016}", n * 7).into_bytes()
}

fn paths(n: u64) -> Vec<u8> {
    let h = hash(n);
    format!("/home/u{:02}/projects/p{:03}/src/file{:06}.rs", h % 40, (h >> 8) % 300, (h >> 20) % 1_000_000).into_bytes()
}

fn main() {
    println!("| keys | fences | search | ns | bytes of heads per fence |\n|---|---|---|---|---|");
    for count in [10_000, 100_000, 1_000_000, 10_000_000] {
        compare("random", count, random);
        compare("decimals", count, decimals);
        compare("paths", count, paths);
    }
}
