//! What lookups cost after keys of every pattern came from any number of threads, counted and not timed: the nodes and blocks
//! that they look at, at once and after each key was looked up once, which mends what writers had to leave.

use clap::ValueEnum;
use fastskip::{Lookup, Memtable, Op};
use itertools::iproduct;
use rand::Rng;
use serde::{Deserialize, Serialize};

use crate::clock::{share, timed};
use crate::random::rng;
use crate::text::{Sheet, grouped, name};

/// The keys of a table, unless arguments ask for fewer.
pub(crate) const ENTRIES: usize = 100_000;
const THREADS: [usize; 4] = [1, 2, 4, 8];
const BATCHES: [usize; 2] = [1, 256];
const NEWEST: u64 = u64::MAX;

/// How the keys look, and in which order they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pattern {
    Random,
    Ascending,
    Descending,
    Zigzag,
    InterleavedRuns,
    /// Keys that are prefixes of each other.
    Prefixes,
    TrailingZeros,
    /// More than 255 shared bytes.
    LongSharedPrefix,
    /// Equal pieces everywhere: a common part before each byte that differs.
    EqualPieces,
    ReversedBits,
}

/// How threads divide the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Division {
    /// Each thread stores a range of its own.
    Ranges,
    /// The threads take turns.
    Turns,
}

/// What a lookup looks at, over all keys of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cost {
    nodes: f64,
    most_nodes: usize,
    blocks: f64,
    most_blocks: usize,
}

/// The cost of lookups in one table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PatternCost {
    pattern: Pattern,
    entries: usize,
    threads: usize,
    division: Division,
    /// Entries that are stored at a time.
    batch: usize,
    at_once: Cost,
    /// After each key was looked up once.
    mended: Cost,
}

fn decimal(number: usize) -> Vec<u8> {
    format!("{number:016}").into_bytes()
}

impl Pattern {
    /// The key that is stored as the `index`-th of `entries`.
    fn key(self, index: usize, entries: usize) -> Vec<u8> {
        let random = |stream: usize| rng(stream as u64).next_u64();
        match self {
            Self::Random => random(index).to_be_bytes().to_vec(),
            Self::Ascending => decimal(index),
            Self::Descending => decimal(entries - index),
            Self::Zigzag => decimal(if index.is_multiple_of(2) { index } else { 2 * entries - index }),
            Self::InterleavedRuns => decimal((index % 7) * entries + index / 7),
            Self::Prefixes => {
                let stem = vec![b'a' + (index % 3) as u8; 1 + index % 50];
                [stem, if index < 150 { Vec::new() } else { decimal(index) }].concat()
            }
            Self::TrailingZeros => [&(random(index / 8) as u32).to_be_bytes()[..], &[0; 8][..index % 8]].concat(),
            Self::LongSharedPrefix => [&[b'x'; 300][..], &random(index).to_be_bytes()].concat(),
            Self::EqualPieces => {
                let piece = |digit: u32| [b"common", &[b'a' + (index / 26_usize.pow(digit) % 26) as u8][..]].concat();
                (0..5).rev().flat_map(piece).collect()
            }
            Self::ReversedBits => (index as u64).reverse_bits().to_be_bytes().to_vec(),
        }
    }
}

impl Cost {
    fn of(table: &Memtable, keys: &[Vec<u8>]) -> Self {
        let mut cost = Self::default();
        for of_key in keys.iter().map(|key| table.search_cost(key, NEWEST)) {
            cost.nodes += of_key.nodes as f64 / keys.len() as f64;
            cost.blocks += of_key.blocks as f64 / keys.len() as f64;
            cost.most_nodes = cost.most_nodes.max(of_key.nodes);
            cost.most_blocks = cost.most_blocks.max(of_key.blocks);
        }
        cost
    }
}

/// Fills tables by every pattern and counts in each; calls `done` after each pattern.
pub(crate) fn count(entries: usize, mut done: impl FnMut(Pattern)) -> Result<Vec<PatternCost>, String> {
    let mut costs = Vec::new();
    for &pattern in Pattern::value_variants() {
        let keys: Vec<_> = (0..entries).map(|index| pattern.key(index, entries)).collect();
        let ways = iproduct!(BATCHES, [Division::Ranges, Division::Turns], THREADS);
        // One thread has nothing to divide.
        for (batch, division, threads) in ways.filter(|(_, division, n)| *n > 1 || *division == Division::Ranges) {
            let table = filled(&keys, threads, division, batch);
            let at_once = Cost::of(&table, &keys);
            let lost = keys.iter().filter(|key| table.get(key, NEWEST) == Lookup::Absent).count();
            if lost > 0 {
                return Err(format!("{} keys from {threads} threads: expected all, {lost} are lost", name(pattern)));
            }
            let mended = Cost::of(&table, &keys);
            costs.push(PatternCost { pattern, entries, threads, division, batch, at_once, mended });
        }
        done(pattern);
    }
    Ok(costs)
}

fn filled(keys: &[Vec<u8>], threads: usize, division: Division, batch: usize) -> Memtable {
    let table = Memtable::builder().shards(threads).build();
    timed(threads, |thread| {
        let mine: Vec<_> = match division {
            Division::Ranges => keys[share(keys.len(), threads, thread)].iter().collect(),
            Division::Turns => keys.iter().skip(thread).step_by(threads).collect(),
        };
        for keys in mine.chunks(batch) {
            let ops: Vec<_> = keys.iter().map(|key| Op::Put { key, value: b"" }).collect();
            // What is not stored is found missing.
            table.reserve(&ops).map(|reservation| reservation.apply(1)).ok();
        }
    });
    table
}

/// The costs as a table: means and, behind a stroke, the most; and the whole against that of one thread.
pub(crate) fn sheet(costs: &[PatternCost]) -> Sheet {
    let counts = ["nodes at once", "blocks at once", "nodes mended", "blocks mended", "to one thread"];
    let whole = |cost: &PatternCost| cost.mended.nodes + cost.mended.blocks;
    let row = |cost: &PatternCost| {
        let is_base = |of: &&PatternCost| (of.pattern, of.batch, of.threads) == (cost.pattern, cost.batch, 1);
        let ratio = costs.iter().find(is_base).map_or(f64::NAN, |alone| whole(cost) / whole(alone));
        let mut row = vec![name(cost.pattern), cost.threads.to_string(), name(cost.division), cost.batch.to_string()];
        for Cost { nodes, most_nodes, blocks, most_blocks } in [cost.at_once, cost.mended] {
            row.extend([format!("{nodes:.2} / {most_nodes}"), format!("{blocks:.2} / {most_blocks}")]);
        }
        row.push(format!("{ratio:.2}x"));
        row
    };
    Sheet::new(["keys", "threads", "in", "batches of"].into_iter().chain(counts), costs.iter().map(row))
}

/// The same with a line above it; empty if nothing was counted.
pub(crate) fn text(costs: &[PatternCost]) -> String {
    let above = "\nNodes and blocks a lookup, in the mean / at most, in tables of";
    costs.first().map_or_else(String::new, |of| format!("{above} {}\n\n{}", grouped(of.entries), sheet(costs)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_pattern_stores_all_its_keys_and_is_counted_from_every_number_of_threads() {
        // Catches a pattern whose keys repeat, so that its table is smaller than the others, and a count of nothing.
        for &pattern in Pattern::value_variants() {
            let keys: HashSet<_> = (0..5000).map(|index| pattern.key(index, 5000)).collect();
            assert_eq!(keys.len(), 5000, "{pattern:?}");
        }
        let costs = count(300, |_| {}).expect("counts");
        assert_eq!(costs.len(), Pattern::value_variants().len() * 2 * 7);
        assert!(costs.iter().all(|of| (1.0..=of.mended.most_nodes as f64).contains(&of.mended.nodes)));
    }
}
