//! What a table is made with.

use std::hash::{BuildHasher, RandomState};

/// A first chunk for each shard that suits tables of any size: 64 KiB.
const CHUNK_BYTES: usize = 64 << 10;

/// The settings behind a builder. Sizes are in bytes; 0 means no limit.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) shards: usize,
    pub(crate) chunk_bytes: usize,
    pub(crate) max_memory_bytes: usize,
    pub(crate) max_entries: usize,
    /// The part of a limit from which the table says that it is under pressure.
    pub(crate) backpressure_at: f64,
    pub(crate) huge_pages: bool,
    /// Makes heights unpredictable.
    pub(crate) seed: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            shards: std::thread::available_parallelism().map_or(1, usize::from),
            chunk_bytes: CHUNK_BYTES,
            max_memory_bytes: 0,
            max_entries: 0,
            backpressure_at: 0.9,
            huge_pages: true,
            seed: Self::random_seed(),
        }
    }
}

impl Config {
    /// A number that nobody can guess.
    pub(crate) fn random_seed() -> u64 {
        RandomState::new().hash_one(0_u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches tables whose towers somebody could foresee who has seen those of another.
    #[test]
    fn each_table_has_a_seed_of_its_own() {
        assert_ne!(Config::default().seed, Config::default().seed);
    }
}
