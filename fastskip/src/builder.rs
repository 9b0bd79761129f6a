//! The settings of a table, and the builder that sets them.

use core::fmt;
use core::marker::PhantomData;

use crate::error::Refusal;
use crate::mem::arena::Layout;
use crate::mem::budget::MemoryBudget;
use crate::mem::storage::TablePool;

/// The maximum number of shards of a table.
pub const MAX_SHARDS: usize = 1024;

/// A table that a [`Builder`] can create. This trait is sealed.
pub trait BuildTable: Sized {
    /// Creates a table that reserves its memory when it is first written to.
    #[doc(hidden)]
    fn new_lazy(config: Config) -> Self;

    /// Creates a table that has reserved its memory.
    #[doc(hidden)]
    fn new_reserved(config: Config) -> Result<Self, Refusal>;
}

/// The effect of a write to a [`Memtable`](crate::Memtable) whose key already has a version with the same sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Duplicates {
    /// The write fails with [`DuplicateKey`](crate::InsertError::DuplicateKey), and the stored version stays. For engines that give each write its
    /// own sequence number: two writes of one key with the same number are then a defect, which the error reports.
    #[default]
    Reject,
    /// The write replaces the stored version: the last write of a key and sequence number wins. For engines that give all writes of a batch one
    /// sequence number and store them one by one, such as fjall, SlateDB and mini-lsm.
    ///
    /// When the write has returned, every reader at that sequence number sees the new value or tombstone, or that of a later write; so does every
    /// iterator that later reaches the key. A concurrent reader sees either the whole old version or the whole new one. All readers see concurrent
    /// replacements in the same order. Slices that a reader already has do not change. A replacement takes memory like a new entry, and the table
    /// keeps that memory until it is dropped or reset. A replacement does not count for `len` and [`max_entries`](Builder::max_entries). For a
    /// [reservation](crate::Memtable::reserve) the sequence numbers are not known yet, so it counts all its entries as new; the count is corrected
    /// when it is applied. An entry takes up to 16 bytes more than in a table that rejects. Expected O(log n), and one atomic swap.
    ///
    /// ```
    /// use fastskip::{Duplicates, Lookup, Memtable};
    ///
    /// let memtable = Memtable::builder().duplicates(Duplicates::Replace).build();
    /// memtable.put(b"k", 7, b"first")?;
    /// let written = memtable.put(b"k", 7, b"last")?;
    /// assert_eq!((written.replaced, memtable.len()), (1, 1));
    /// assert_eq!(memtable.get(b"k", 7), Lookup::Value(b"last"));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    Replace,
}

/// Sets the options of a new table and creates it.
///
/// ```
/// use fastskip::Memtable;
///
/// let memtable = Memtable::builder().shards(4).max_memory_bytes(64 << 20).build();
/// assert_eq!(memtable.stats().max_memory_bytes, 64 << 20);
/// ```
#[must_use]
pub struct Builder<T> {
    pub(crate) config: Config,
    table: PhantomData<fn() -> T>,
}

impl<T: BuildTable> Builder<T> {
    pub(crate) fn new() -> Self {
        Self { config: Config::new(), table: PhantomData }
    }

    /// The same settings, for a table of another type.
    pub(crate) fn of_table<U: BuildTable>(self) -> Builder<U> {
        Builder { config: self.config, table: PhantomData }
    }

    /// The number of shards, from 1 to [`MAX_SHARDS`]; other numbers are clamped to this range. Default: the available parallelism, or 1 without `std`.
    ///
    /// Threads are assigned to shards in turn, in the order of their first write to any table; without `std`, by the addresses of their stacks. There
    /// may be more threads than shards; threads that share a shard write more slowly.
    pub fn shards(mut self, shards: usize) -> Self {
        self.config.arena.shards = shards.clamp(1, MAX_SHARDS);
        self
    }

    /// The size of the first chunk of memory that each shard allocates, in bytes. Default: 64 KiB; minimum: 256 bytes.
    pub fn arena_bytes_per_shard(mut self, bytes: usize) -> Self {
        self.config.arena.chunk_bytes = bytes;
        self
    }

    /// The limit on memory, in bytes; 0, the default, means no limit. A table that has reached its limit accepts no further write. One entry may
    /// exceed the limit, once the idle memory of the other shards is used up too; this entry is the last one.
    ///
    /// On its first write the table reserves an address range that is about half larger than this limit, at most 32 GiB. Without a limit it reserves
    /// 16 GiB, and less if the process has more than 2048 such tables. All tables of a process have at most 64 TiB together. If a request for a range
    /// fails, the table repeatedly divides the size by sixteen. A request fails if these 64 TiB are used up, if the system refuses, or if it would
    /// leave too few addresses to the process: fewer than the range has, or than all tables have (up to 256 MiB). [`try_reset`](crate::Memtable::try_reset)
    /// lets the table request the whole size again. Windows counts reserved memory as used, so there the range is as large as the limit, or 1 GiB
    /// without one. On 32-bit targets, wasm32 too, and without `std`, all of the range comes from the allocator: 64 MiB without a limit, and 2 GiB for
    /// all tables. If the range is smaller than the limit, the table is full when the range is used up; see
    /// [`Stats::effective_max_memory_bytes`](crate::Stats::effective_max_memory_bytes). Memory is committed only when it is first used.
    pub fn max_memory_bytes(mut self, bytes: usize) -> Self {
        self.config.arena.max_memory_bytes = bytes;
        self
    }

    /// The expected memory use of the table, in bytes; 0, the default, means unknown. With a hint for a small table, the shards take smaller chunks.
    /// The hint is not a limit: the table may grow beyond it.
    pub fn expected_memory_bytes(mut self, bytes: usize) -> Self {
        self.config.arena.size_hint = bytes;
        self
    }

    /// The pool from which the table takes its memory, and to which it returns it. Default: [`TablePool::shared`]; without `std`, none.
    pub fn pool(mut self, pool: &TablePool) -> Self {
        self.config.pool = Some(pool.clone());
        self
    }

    /// The budget that limits the memory of this table and others together, in addition to [`max_memory_bytes`](Self::max_memory_bytes). Default:
    /// none.
    pub fn budget(mut self, budget: &MemoryBudget) -> Self {
        self.config.arena.budget = Some(budget.clone());
        self
    }

    /// The limit on stored entries; 0, the default, means no limit. A table that has reached its limit accepts no further write, except one that
    /// [replaces](Duplicates::Replace) an entry: it adds none. Deleted entries count.
    pub fn max_entries(mut self, entries: usize) -> Self {
        self.config.max_entries = entries;
        self
    }

    /// The fraction of either limit, or of the [budget](Self::budget), at which the table is under backpressure, from 0.0 to 1.0; a number outside
    /// this range is clamped to it. Default: 0.9.
    pub fn backpressure_at(mut self, part: f64) -> Self {
        self.config.backpressure_at = if part.is_nan() { 1.0 } else { part.clamp(0.0, 1.0) };
        self
    }

    /// Whether to ask the system for huge pages, for memory after the first 2 MiB of a table. Huge pages make large tables faster.
    /// Default: yes. This affects Linux only. On other systems, and if the system refuses, nothing changes.
    pub fn huge_pages(mut self, wanted: bool) -> Self {
        self.config.arena.huge_pages = wanted;
        self
    }

    /// Creates the table. It reserves no memory before its first write. If the system then refuses even the smallest range, that write fails with
    /// [`Full`](crate::InsertError::Full), and the next write asks again. [`try_build`](Self::try_build) reserves the memory at once.
    #[must_use]
    pub fn build(self) -> T {
        T::new_lazy(self.config.with_shards())
    }

    /// Creates the table and reserves its memory.
    ///
    /// # Errors
    /// Returns the system's error if the system refuses even the smallest address range.
    #[cfg(feature = "std")]
    pub fn try_build(self) -> std::io::Result<T> {
        T::new_reserved(self.config.with_shards())
    }
}

// Not derived, because a derived impl would require `T: Clone`.
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

/// The default size of a shard's first chunk, 64 KiB. It suits tables of any size.
const CHUNK_BYTES: usize = 64 << 10;

/// The settings behind a builder. 0 means no limit, and as a number of shards that it was not set.
#[derive(Debug, Clone)]
pub struct Config {
    /// The layout of the arena, except for its head.
    pub(crate) arena: Layout,
    pub(crate) max_entries: usize,
    /// The fraction of a limit at which the table is under backpressure.
    pub(crate) backpressure_at: f64,
    pub(crate) pool: Option<TablePool>,
    pub(crate) duplicates: Duplicates,
}

impl Config {
    /// The default settings, with 0 shards.
    // No `Default` implementation: it would be part of the public interface.
    pub(crate) fn new() -> Self {
        let (shards, chunk_bytes) = (0, CHUNK_BYTES);
        let (max_memory_bytes, size_hint, head_words) = (0, 0, 0);
        let arena =
            Layout { shards, chunk_bytes, max_memory_bytes, size_hint, huge_pages: true, head_words, budget: None };
        Self { arena, max_entries: 0, backpressure_at: 0.9, pool: None, duplicates: Duplicates::Reject }
    }

    /// Whether the fraction for backpressure of the budget is in use now.
    pub(crate) fn is_budget_pressed(&self) -> bool {
        self.arena.budget.as_ref().is_some_and(|budget| budget.is_under_backpressure(self.backpressure_at))
    }

    /// The same settings; with as many shards as the available parallelism if the number of shards was not set.
    fn with_shards(mut self) -> Self {
        if self.arena.shards == 0 {
            self.arena.shards = parallelism();
        }
        self
    }
}

/// The available parallelism, cached because the system reads some ten files to compute it: this takes as long as several hundred inserts.
#[cfg(feature = "std")]
pub(crate) fn parallelism() -> usize {
    static PARALLELISM: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *PARALLELISM.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Without `std` the parallelism is not known.
#[cfg(not(feature = "std"))]
pub(crate) fn parallelism() -> usize {
    1
}
