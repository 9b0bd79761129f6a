//! The counted cases. Every case is a function that does [`OPERATIONS`] operations; its setup, which is not counted, fills the table.

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

/// Reads use another order than the inserts.
fn shuffled(mut keys: Keys) -> Keys {
    keys.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(29));
    keys
}

/// Leaks `input`, so that no case counts its drop.
fn leak<T>(input: T) -> &'static T {
    Box::leak(Box::new(input))
}

main!(
    config = LibraryBenchmarkConfig::default()
        // Counts each instruction by itself, so that atomic ones can be distinguished; other threads are not counted.
        .tool(Callgrind::with_args(["--cache-sim=no", "--dump-instr=yes", "--separate-threads=no"])),
    library_benchmark_groups = [list, memtable, engine]
);

/// Counts all cases, each in a process of its own under valgrind. In such a process, runs one case.
pub(crate) fn run() {
    main();
}
