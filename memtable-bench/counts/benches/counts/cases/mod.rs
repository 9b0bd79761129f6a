//! What is counted. Every case is a function that does [`OPERATIONS`] operations; its setup, which is not counted, fills the table.

mod db;
mod skiplist;
mod table;

use bench_keys::{KeySet, SHORTEST_KEY, stored};
use gungraun::{Callgrind, LibraryBenchmarkConfig, main};
use rand::SeedableRng;
use rand::rngs::Xoshiro256PlusPlus;
use rand::seq::SliceRandom;

use db::engine;
use skiplist::list;
use table::memtable;

pub(crate) const OPERATIONS: usize = 100_000;
const BATCH: usize = 256;
const VALUE: [u8; 100] = [7; 100];

type Keys = Vec<Vec<u8>>;

fn keys(set: KeySet) -> Keys {
    stored(set, SHORTEST_KEY, OPERATIONS, 0..OPERATIONS).iter().map(Into::into).collect()
}

/// Readers come in an order of their own.
fn shuffled(mut keys: Keys) -> Keys {
    keys.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(29));
    keys
}

/// Lives as long as the process, so that no case counts how it is dropped.
fn leak<T>(input: T) -> &'static T {
    Box::leak(Box::new(input))
}

main!(
    config = LibraryBenchmarkConfig::default()
        // Each instruction by itself, so that the atomic ones can be told; other threads count for nothing.
        .tool(Callgrind::with_args(["--cache-sim=no", "--dump-instr=yes", "--separate-threads=no"])),
    library_benchmark_groups = [list, memtable, engine]
);

/// Counts all cases, each in a process of its own under valgrind; or is such a process, and does one case.
pub(crate) fn run() {
    main();
}
