//! What lookups cost after keys of every pattern came from any number of threads, counted in nodes and blocks that they look at.

use std::thread;

use fastskip::{Memtable, Op};

const ENTRIES: usize = 24_000;

/// The finaliser of splitmix64.
fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn decimal(number: usize) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

/// The `index`-th key to be inserted.
type Pattern = fn(usize) -> Vec<u8>;

const PATTERNS: [(&str, Pattern); 10] = [
    ("random", |i| mix(i as u64).to_be_bytes().to_vec()),
    ("ascending", decimal),
    ("descending", |i| decimal(ENTRIES - i)),
    ("zigzag", |i| decimal(if i % 2 == 0 { i } else { 2 * ENTRIES - i })),
    ("interleaved runs", |i| decimal((i % 7) * ENTRIES + i / 7)),
    ("prefixes of each other", |i| {
        let mut key = vec![b'a' + (i % 3) as u8; 1 + i % 50];
        key.extend(if i < 150 { Vec::new() } else { decimal(i) });
        key
    }),
    ("trailing zeros", |i| [&(mix(i as u64 / 8) as u32).to_be_bytes()[..], &[0; 8][..i % 8]].concat()),
    ("long shared prefix", |i| [&[b'x'; 300][..], &mix(i as u64).to_be_bytes()].concat()),
    ("a common part after each byte", |i| {
        (0..5).flat_map(|j| [b"common", &[b'a' + (mix(i as u64) >> (8 * j)) as u8 % 26][..]].concat()).collect()
    }),
    ("reversed bits", |i| (i as u64).reverse_bits().to_be_bytes().to_vec()),
];

/// How the keys are divided among threads.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Share {
    Ranges,
    Turns,
}

/// A table of the pattern's keys, from `threads` threads, one by one or in batches.
fn filled(pattern: Pattern, threads: usize, share: Share, batch: usize) -> Memtable {
    let memtable = Memtable::builder().shards(2).build();
    thread::scope(|scope| {
        for thread in 0..threads {
            let memtable = &memtable;
            scope.spawn(move || {
                let keys: Vec<_> = match share {
                    Share::Ranges => {
                        (ENTRIES * thread / threads..ENTRIES * (thread + 1) / threads).map(pattern).collect()
                    }
                    Share::Turns => (thread..ENTRIES).step_by(threads).map(pattern).collect(),
                };
                for keys in keys.chunks(batch) {
                    let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"" }).collect();
                    memtable.reserve(&ops).unwrap().apply(1);
                }
            });
        }
    });
    memtable.validate();
    memtable
}

/// Nodes and blocks in the mean, and the most nodes.
fn cost(memtable: &Memtable, pattern: Pattern) -> (f64, usize) {
    let costs: Vec<_> = (0..ENTRIES).map(|i| memtable.search_cost(&pattern(i), u64::MAX)).collect();
    let sum: usize = costs.iter().map(|cost| cost.nodes + cost.blocks).sum();
    (sum as f64 / ENTRIES as f64, costs.iter().map(|cost| cost.nodes).max().unwrap_or(0))
}

/// Catches lookups that grow linear where threads append side by side, or where keys defeat the partial keys. Every key is looked
/// up once, which mends what writers had to leave; from then on a lookup looks at no more than one and a half times what it
/// looks at in a table that one thread filled.
#[test]
fn lookups_cost_the_same_whoever_filled_the_table() {
    for (name, pattern) in PATTERNS {
        for batch in [1, 64] {
            let (alone, _) = cost(&filled(pattern, 1, Share::Ranges, batch), pattern);
            for threads in [2, 4, 8] {
                for share in [Share::Ranges, Share::Turns] {
                    let memtable = filled(pattern, threads, share, batch);
                    let at_once = cost(&memtable, pattern);
                    (0..ENTRIES)
                        .for_each(|i| assert_ne!(memtable.get(&pattern(i), u64::MAX), fastskip::Lookup::Absent));
                    let (together, most) = cost(&memtable, pattern);
                    println!(
                        "{name}, {batch}, {threads} {share:?}: {alone:.2}, at once {at_once:?}, mended {together:.2} {most}"
                    );
                    assert!(
                        together <= 1.5 * alone,
                        "{name} by {batch}, {threads} threads, {share:?}: {together}, alone {alone}"
                    );
                }
            }
        }
    }
}
