//! The list itself: creation, freezing, sealing, statistics and reset.

use alloc::boxed::Box;
use core::fmt;
use core::ops::Deref;

use super::stamp::{StampClock, Stamped};
use crate::bounds::KeyBounds;
use crate::builder::{BuildTable, Builder, Config, parallelism};
use crate::error::Refusal;
use crate::list::stats::Stats;
use crate::list::{LazyList, List};
use crate::order::{Bytewise, Order};

#[cfg(doc)]
use crate::InsertError;

/// A sorted map from byte keys to byte values; any number of threads can read and write it at once, without a lock around it.
///
/// A key is stored only once. Later inserts of the same key are rejected, even after [`delete`](Self::delete), which marks
/// the key as a tombstone. Use [`Memtable`](crate::Memtable) to overwrite keys. Returned slices borrow from the list. No entry
/// is moved or freed before the list is dropped or reset.
///
/// ```
/// use fastskip::ConcurrentSkipList;
///
/// let list = ConcurrentSkipList::new();
/// std::thread::scope(|scope| {
///     for thread in 0..4_u8 {
///         let list = &list;
///         scope.spawn(move || list.insert(&[thread], b"value"));
///     }
/// });
/// assert_eq!(list.len(), 4);
/// assert_eq!(list.get_live(&[2]), Some(&b"value"[..]));
/// ```
///
/// Keys have at most [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes (64 KiB + 7), values at most [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN)
/// (1 GiB), and a list 32 GiB.
///
/// An insert takes expected O(log n) and commits with one compare-and-swap (CAS). If the CAS fails because of another writer, the insert continues
/// from the same position. All methods can be called from any thread. No method panics because too many threads call it.
pub struct ConcurrentSkipList<O: Order = Bytewise> {
    pub(crate) list: LazyList<Stamped<O>>,
    pub(super) clock: StampClock,
}

/// Creating a list.
impl ConcurrentSkipList {
    /// Creates a list without limits. The number of shards is the available parallelism. The list reserves no memory before the first write; until
    /// then it reads like an empty one. O(shards), like every method that creates a list.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Creates a list without limits that has `shards` shards, from 1 to [`MAX_SHARDS`](crate::MAX_SHARDS).
    #[must_use]
    pub fn with_shards(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }

    /// Creates a list without limits. The first chunks of its shards have `bytes` bytes in total.
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        Self::builder().arena_bytes_per_shard(bytes / parallelism()).build()
    }

    /// Creates a list with limits; 0 means no limit. See [`Builder`] for each parameter.
    #[must_use]
    pub fn with_capacity_and_shards(
        arena_bytes_per_shard: usize,
        shards: usize,
        max_memory_bytes: usize,
        max_entries: usize,
    ) -> Self {
        Self::builder()
            .arena_bytes_per_shard(arena_bytes_per_shard)
            .shards(shards)
            .max_memory_bytes(max_memory_bytes)
            .max_entries(max_entries)
            .build()
    }

    /// Returns a builder, which sets the options of a new list.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }
}

impl<O: Order> Builder<ConcurrentSkipList<O>> {
    /// The order of the list's keys. Default: [`Bytewise`].
    pub fn order<P: Order>(self) -> Builder<ConcurrentSkipList<P>> {
        self.of_table()
    }
}

impl<O: Order> BuildTable for ConcurrentSkipList<O> {
    fn new_lazy(config: Config) -> Self {
        Self { list: LazyList::new(config), clock: StampClock::new() }
    }

    fn new_reserved(config: Config) -> Result<Self, Refusal> {
        Ok(Self { list: LazyList::reserved(config)?, clock: StampClock::new() })
    }
}

impl Default for ConcurrentSkipList {
    fn default() -> Self {
        Self::new()
    }
}

/// Freezing and resetting.
impl<O: Order> ConcurrentSkipList<O> {
    /// Freezes the list: every later write is rejected with [`Frozen`](crate::InsertError::Frozen). Waits for the writes in progress, like
    /// [`Memtable::freeze`](crate::Memtable::freeze); their entries are in the frozen list. O(shards), not counting the wait.
    pub fn freeze(&self) {
        self.list.freeze();
    }

    /// Like [`freeze`](Self::freeze), but does not wait; see [`Memtable::begin_freeze`](crate::Memtable::begin_freeze). O(shards).
    pub fn begin_freeze(&self) {
        self.list.begin_freeze();
    }

    /// Removes all entries and accepts writes again, also after [`freeze`](Self::freeze). The list keeps its memory. If it got a smaller range than
    /// its limit requests, it instead releases its memory, and the next write requests the range again. The `&mut` borrow guarantees that no slice,
    /// cursor or snapshot of the list exists.
    pub fn reset(&mut self) {
        self.list.reset();
        self.clock = StampClock::new();
    }
}

/// Sealing: the list becomes a frozen table, and a new, empty list replaces it.
impl<O: Order> ConcurrentSkipList<O> {
    /// Freezes the list and creates an empty list with the same settings. O(shards), not counting the wait for writers.
    ///
    /// # Errors
    /// [`SealError`] if the system refuses the address range of the new list. The list is then not frozen, and
    /// [`SealError::into_list`] returns it.
    pub fn seal(self) -> Result<(FrozenList<O>, Self), SealError<O>> {
        match Self::new_reserved(self.list.config.clone()) {
            Ok(fresh) => {
                self.freeze();
                Ok((FrozenList { list: self }, fresh))
            }
            Err(source) => Err(SealError { list: Box::new(self), source }),
        }
    }
}

/// A frozen list. It dereferences to [`ConcurrentSkipList`], so all methods that read work; every write is rejected with
/// [`Frozen`](InsertError::Frozen).
pub struct FrozenList<O: Order = Bytewise> {
    list: ConcurrentSkipList<O>,
}

impl<O: Order> FrozenList<O> {
    /// The frozen list itself; it stays frozen. In an `Arc`, [owned](ConcurrentSkipList::owned_range) iterators can read it.
    #[must_use]
    pub fn into_list(self) -> ConcurrentSkipList<O> {
        self.list
    }
}

impl<O: Order> Deref for FrozenList<O> {
    type Target = ConcurrentSkipList<O>;

    fn deref(&self) -> &ConcurrentSkipList<O> {
        &self.list
    }
}

impl<O: Order> fmt::Debug for FrozenList<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenList").field("len", &self.list.len()).finish_non_exhaustive()
    }
}

/// The new list could not be created, so nothing was frozen. [`into_list`](Self::into_list) returns the list.
pub struct SealError<O: Order = Bytewise> {
    list: Box<ConcurrentSkipList<O>>,
    source: Refusal,
}

impl<O: Order> SealError<O> {
    /// Returns the list, which still accepts writes. O(1).
    #[must_use]
    pub fn into_list(self) -> ConcurrentSkipList<O> {
        *self.list
    }
}

impl<O: Order> fmt::Display for SealError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot reserve the arena of the next table")
    }
}

impl<O: Order> core::error::Error for SealError<O> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        Some(&self.source)
    }
}

impl<O: Order> fmt::Debug for SealError<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealError").field("source", &self.source).finish_non_exhaustive()
    }
}

/// Statistics. Each counting method visits every shard: O(shards). [`stats`](ConcurrentSkipList::stats) returns all statistics at once.
impl<O: Order> ConcurrentSkipList<O> {
    /// The number of live keys. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.made().map_or(0, List::live_entries)
    }

    /// Whether the list has no live key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimates the number of entries within `bounds`, tombstones included, as [`Memtable::approximate_len`](crate::Memtable::approximate_len) does.
    /// O(log n).
    ///
    /// ```
    /// # use fastskip::ConcurrentSkipList;
    /// let table = ConcurrentSkipList::new();
    /// for key in 0..100 {
    ///     table.try_insert(&[key], b"v")?;
    /// }
    /// assert_eq!((table.approximate_len([10]..[30]), table.approximate_bytes([10]..[30])), (20, 20 * 32));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self, bounds: impl KeyBounds) -> usize {
        self.list.estimate(bounds).entries
    }

    /// Estimates the bytes of these entries, as [`Memtable::approximate_bytes`](crate::Memtable::approximate_bytes) does. O(log n).
    #[must_use]
    pub fn approximate_bytes(&self, bounds: impl KeyBounds) -> usize {
        self.list.estimate(bounds).bytes
    }

    /// The number of attempted inserts, including rejected ones.
    #[must_use]
    pub fn total_inserts(&self) -> usize {
        self.stats().total_inserts
    }

    /// The bytes of the arena that hold nodes or blocks of the index, or were lost between them. The value is a sum over the shards, O(shards): one
    /// counter for all of them would be a cache line that every write has to fetch.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.list.made().map_or(0, List::memory_usage)
    }

    /// The bytes of the arena that were handed out to shards.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.stats().memory_reserved
    }

    /// The bytes that were handed out to shards and are not yet used.
    #[must_use]
    pub fn memory_idle(&self) -> usize {
        self.stats().memory_idle
    }

    /// [`memory_usage`](Self::memory_usage) as a fraction of [`memory_reserved`](Self::memory_reserved), from 0.0 to 1.0; 0.0
    /// for an empty list.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        self.stats().memory_utilization()
    }

    /// The mean length of the stored keys, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_key_size(&self) -> f64 {
        self.stats().avg_key_size
    }

    /// The mean length of the stored values, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_value_size(&self) -> f64 {
        self.stats().avg_value_size
    }

    /// The limit on memory, in bytes; 0 means no limit.
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        self.list.config.arena.max_memory_bytes
    }

    /// The limit on stored entries; 0 means no limit.
    #[must_use]
    pub fn max_entries(&self) -> usize {
        self.list.config.max_entries
    }

    /// Whether the list is frozen: every write that begins from now on is rejected. True as soon as any write was rejected because the list is
    /// frozen. Writes that began before may still be finishing; see [`is_drained`](Self::is_drained).
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.list.is_frozen()
    }

    /// The same as [`is_frozen`](Self::is_frozen); the name comes from fastskip 0.1.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
        self.is_frozen()
    }

    /// Whether the list is frozen and no write is in progress: its contents no longer change. Once true, it remains true until a reset. O(shards).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.list.is_drained()
    }

    /// Whether the fraction [`Builder::backpressure_at`](crate::Builder::backpressure_at) of a limit, by default 90 %, is used
    /// up. Once true, it remains true until the list is reset. Also whether that fraction of the list's
    /// [budget](crate::Builder::budget) is in use now.
    #[must_use]
    pub fn is_under_backpressure(&self) -> bool {
        self.list.is_under_backpressure()
    }

    /// Returns all statistics, consistent with each other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.list.stats()
    }

    /// Checks the invariants of the list by walking it. For tests. Call it only while no thread writes. O(n).
    ///
    /// # Panics
    /// Panics if an invariant does not hold. The message begins with the number of the invariant.
    #[doc(hidden)]
    pub fn validate(&self) {
        self.list.made().into_iter().for_each(|list| list.validate(true));
    }
}

impl<O: Order> fmt::Debug for ConcurrentSkipList<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("ConcurrentSkipList")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("frozen", &stats.is_frozen)
            .finish_non_exhaustive()
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    /// Catches an error that hides its cause, or that loses or freezes the list that it should return.
    #[test]
    fn a_seal_that_failed_says_why_and_gives_the_list_back() {
        let list = ConcurrentSkipList::with_shards(1);
        assert!(list.insert(b"a", b"1"));
        let error = SealError { list: list.into(), source: std::io::ErrorKind::OutOfMemory.into() };
        assert_eq!(format!("{error:?}"), "SealError { source: Kind(OutOfMemory), .. }");
        let list = error.into_list();
        assert!(!list.is_sealed() && list.insert(b"b", b"2"));
        assert_eq!(list.len(), 2);
    }
}
