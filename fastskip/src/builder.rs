//! The settings of a table, and the builder that sets them by name.

use core::fmt;
use core::marker::PhantomData;
use std::hash::{BuildHasher, RandomState};
use std::io;

/// The most shards of a table.
pub const MAX_SHARDS: usize = 1024;

/// A table that a [`Builder`] can make.
pub trait Table: sealed::FromConfig {}

pub(crate) mod sealed {
    use std::io;

    use crate::builder::Config;

    pub trait FromConfig: Sized {
        #[doc(hidden)]
        fn from_config(config: Settings) -> io::Result<Self>;
    }

    /// Keeps the crate's own `Config` out of the public signature.
    #[derive(Debug)]
    pub struct Settings(pub(crate) Config);
}

/// Settings of a new table, by name.
///
/// ```
/// use fastskip::Memtable;
///
/// let memtable = Memtable::builder().shards(4).max_memory_bytes(64 << 20).build();
/// assert_eq!(memtable.stats().max_memory_bytes, 64 << 20);
/// ```
#[must_use]
pub struct Builder<T> {
    config: Config,
    table: PhantomData<fn() -> T>,
}

impl<T: Table> Builder<T> {
    pub(crate) fn new() -> Self {
        Self { config: Config::default(), table: PhantomData }
    }

    /// How many shards threads are spread over, in the order of their first write to any table; from 1 to
    /// [`MAX_SHARDS`], a number outside counts as the nearer end. Default: the available parallelism. Any number of threads
    /// may write whatever the number of shards; threads that share one are slower.
    pub fn shards(mut self, shards: usize) -> Self {
        self.config.shards = shards.clamp(1, MAX_SHARDS);
        self
    }

    /// The size of the first piece of memory that a shard takes, in bytes. Default: 64 KiB; the least is 256 bytes.
    pub fn arena_bytes_per_shard(mut self, bytes: usize) -> Self {
        self.config.chunk_bytes = bytes;
        self
    }

    /// The memory past which no further write is accepted, in bytes; 0, the default, for none. One entry may pass it, and is
    /// the last: what room there is left elsewhere stays unused then.
    ///
    /// The address range is sized by this: about a quarter more, at most 32 GiB, and 16 GiB without a limit; half as much
    /// where the system refuses (on Windows, which counts reserved memory as used: the limit itself, and 1 GiB without
    /// one). A table whose range is smaller than its limit is limited by the range. Memory is committed when it is used.
    pub fn max_memory_bytes(mut self, bytes: usize) -> Self {
        self.config.max_memory_bytes = bytes;
        self
    }

    /// The number of stored entries past which no further write is accepted; 0, the default, for none. Deleted entries
    /// count.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.config.max_entries = entries;
        self
    }

    /// The part of either limit from which the table is under back-pressure, from 0.0 to 1.0; a number outside counts as
    /// the nearer end. Default: 0.9.
    pub fn backpressure_at(mut self, part: f64) -> Self {
        self.config.backpressure_at = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
        self
    }

    /// Whether to ask the system for huge pages (from the second 2 MiB of a table on), which makes large tables faster.
    /// Default: yes. Linux only; elsewhere, and where refused, nothing changes.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.config.huge_pages = wanted;
        self
    }

    /// Makes the table.
    ///
    /// # Panics
    /// If the system refuses even the smallest address range, as `Vec` does without memory; see
    /// [`try_build`](Self::try_build).
    #[must_use]
    pub fn build(self) -> T {
        match self.try_build() {
            Ok(table) => table,
            Err(refusal) => panic!("cannot reserve memory for a table: {refusal}"),
        }
    }

    /// Makes the table.
    ///
    /// # Errors
    /// The system refuses even the smallest address range.
    pub fn try_build(self) -> io::Result<T> {
        T::from_config(sealed::Settings(Config { seed: Config::random_seed(), ..self.config }))
    }
}

// Not derived: that would ask of the table what only the settings need.
impl<T> Clone for Builder<T> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone(), table: PhantomData }
    }
}

impl<T> fmt::Debug for Builder<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.config.fmt(f)
    }
}

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
