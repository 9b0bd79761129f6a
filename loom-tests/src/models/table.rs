//! Small tables whose towers are known before they are built.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use crate::builder::Config;
use crate::builder::sealed::{FromConfig, Settings};
use crate::list::towers::coins;
use crate::sync::set_thread_index;

/// Settings for a shard of each list in `heights`: the `n`-th insert that is attempted through shard `s` makes a tower
/// of `heights[s][n]` levels. A thread writes through the shard of its own number.
pub(super) fn towers(heights: &[&[usize]]) -> Config {
    Config {
        shards: heights.len(),
        chunk_bytes: 0,
        max_memory_bytes: 0,
        max_entries: 0,
        backpressure_at: 0.9,
        huge_pages: false,
        seed: seed(heights),
    }
}

/// The first seed with which the tickets of each shard draw `heights`. Looked for once a process: every execution of a
/// model asks for the same.
fn seed(heights: &[&[usize]]) -> u64 {
    static FOUND: Mutex<BTreeMap<Vec<Vec<usize>>, u64>> = Mutex::new(BTreeMap::new());
    let owned = heights.iter().map(|heights| heights.to_vec()).collect();
    let mut found = FOUND.lock().unwrap_or_else(PoisonError::into_inner);
    *found.entry(owned).or_insert_with(|| first_seed(heights))
}

fn first_seed(heights: &[&[usize]]) -> u64 {
    let shards = heights.len() as u64;
    let draws = |seed: u64| {
        (0..).zip(heights).all(|(shard, heights)| {
            (0..).zip(*heights).all(|(ticket, wanted)| height(coins(seed, ticket * shards + shard)) == *wanted)
        })
    };
    (0..).find(|&seed| draws(seed)).expect("low towers come up soon")
}

/// The height of a node that coins alone decide.
fn height(coins: u64) -> usize {
    (coins >> 1).trailing_ones() as usize + 1
}

/// The table with these settings.
pub(super) fn table<T: FromConfig>(config: Config) -> T {
    T::from_config(Settings(config)).expect("the model's storage refuses nothing")
}

/// Runs `write` as a thread of number `shard` would.
pub(super) fn through<R>(shard: usize, write: impl FnOnce() -> R) -> R {
    set_thread_index(shard);
    write()
}
