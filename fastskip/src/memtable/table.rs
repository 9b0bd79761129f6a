//! The table and its handle: creation, lookups, statistics, freezing and reset.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Deref;

use super::version::{MemtableCore, OwnedVersion, Version, Versioned};
use crate::bounds::KeyBounds;
use crate::builder::{BuildTable, Builder, Config, Duplicates};
use crate::error::Refusal;
use crate::index::LowerBound;
use crate::iter::source::TableSource;
use crate::list::stats::{SearchCost, Stats};
use crate::list::{LazyList, List};
use crate::node::{Kind, Record, Target};
use crate::order::{Bytewise, Order};
use crate::sync::Arc;

#[cfg(doc)]
use crate::InsertError;

/// The result of looking up a key in a memtable at a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Lookup<'a> {
    /// The key has this value, whatever its tag.
    Value(&'a [u8]),
    /// The key is deleted. Lower levels need not be searched.
    Tombstone,
    /// The memtable has no visible version of the key. Lower levels must be searched.
    Absent,
}

/// A sorted multi-version map from byte keys to byte values; any number of threads can read and write it at once, without a lock around it.
///
/// Each write has a sequence number. A read at sequence number `s` sees the newest version of each key that is not newer than `s`. The result of such
/// a read no longer changes once every write up to `s` has returned. Publishing `s` to readers is the caller's task.
///
/// Keys have at most [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes (64 KiB + 7), values at most [`MAX_VALUE_LEN`](crate::MAX_VALUE_LEN)
/// (1 GiB), and a table 32 GiB.
///
/// A handle: a clone refers to the same table. The table lives until its last handle, and the last cursor, iterator and value that keeps it alive, is
/// dropped.
///
/// ```
/// use fastskip::{Lookup, Memtable, Op};
///
/// let memtable = Memtable::builder().max_memory_bytes(64 << 20).build();
/// memtable.put(b"k", 1, b"old")?;
/// let batch = [Op::Put { key: b"k", value: b"new" }, Op::Delete { key: b"gone" }];
/// memtable.reserve(&batch)?.apply(2);
/// assert_eq!(memtable.get(b"k", 1), Lookup::Value(b"old"));
/// assert_eq!(memtable.get(b"k", 2), Lookup::Value(b"new"));
/// assert_eq!(memtable.get(b"gone", 3), Lookup::Tombstone);
/// assert_eq!(memtable.get(b"other", 3), Lookup::Absent);
/// # Ok::<(), fastskip::InsertError>(())
/// ```
pub struct Memtable<O: Order = Bytewise> {
    pub(crate) list: Arc<MemtableCore<O>>,
}

// Not derived, because a derived impl would require `O: Clone`.
impl<O: Order> Clone for Memtable<O> {
    fn clone(&self) -> Self {
        Self { list: Arc::clone(&self.list) }
    }
}

impl Memtable {
    /// Creates a memtable without limits. The number of shards is the available parallelism. The memtable reserves no memory before the first write;
    /// until then it reads like an empty one. O(shards).
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Returns a builder, which sets the options of a new memtable.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }
}

impl<O: Order> Memtable<O> {
    /// Removes all versions, and returns the table open for writes, also after [`freeze`](Self::freeze). It keeps its memory and the pages that it
    /// has touched. If it got a smaller range than its limit requests, it instead releases its memory, and the next write requests the range again.
    ///
    /// ```
    /// # use fastskip::{Lookup, Memtable};
    /// let memtable = Memtable::new();
    /// memtable.put(b"k", 1, b"v")?;
    /// let frozen = memtable.freeze();
    /// let memtable = memtable.try_reset().expect_err("frozen is a handle");
    /// drop(memtable);
    /// let next = frozen.try_reset().expect("the only handle");
    /// assert_eq!(next.get(b"k", 1), Lookup::Absent);
    /// next.put(b"k", 2, b"v")?;
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// The unchanged table, while there is another handle of it, or a cursor, iterator or value that keeps it alive.
    pub fn try_reset(mut self) -> Result<Self, Self> {
        match Arc::get_mut(&mut self.list).map(LazyList::reset) {
            Some(()) => Ok(self),
            None => Err(self),
        }
    }
}

impl<O: Order> Builder<Memtable<O>> {
    /// The order of the table's keys. Default: [`Bytewise`].
    pub fn order<P: Order>(self) -> Builder<Memtable<P>> {
        self.of_table()
    }

    /// The effect of a write whose key already has a version with the same sequence number. Default: [`Duplicates::Reject`].
    pub fn duplicates(mut self, duplicates: Duplicates) -> Self {
        self.config.duplicates = duplicates;
        self
    }
}

impl<O: Order> BuildTable for Memtable<O> {
    fn new_lazy(config: Config) -> Self {
        Self { list: Arc::new(LazyList::new(config)) }
    }

    fn new_reserved(config: Config) -> Result<Self, Refusal> {
        Ok(Self { list: Arc::new(LazyList::reserved(config)?) })
    }
}

impl Default for Memtable {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn lookup(list: &List<Versioned<impl Order>>, found: LowerBound) -> Lookup<'_> {
    match found.with_key().map(|id| list.node(id).record()) {
        None => Lookup::Absent,
        Some(Record { kind: Kind::Value, value, .. }) => Lookup::Value(value),
        Some(Record { kind: Kind::Tombstone, .. }) => Lookup::Tombstone,
    }
}

/// Reading.
impl<O: Order> Memtable<O> {
    /// Returns the newest version of `key` that is not newer than `seqno`. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8], seqno: u64) -> Lookup<'_> {
        let Some(list) = self.list.made() else { return Lookup::Absent };
        lookup(list, list.index.lower_bound(Target { key, version: seqno }))
    }

    /// Returns the newest version of `key` that is not newer than `seqno`, tombstones included. Its sequence number shows whether another transaction
    /// wrote the key, and which of several sources is the newest. Expected O(log n).
    ///
    /// ```
    /// # use fastskip::{Kind, Memtable};
    /// let memtable = Memtable::new();
    /// memtable.delete(b"a", 5)?;
    /// let found = memtable.get_version(b"a", 9).map(|version| (version.seqno, version.kind));
    /// assert_eq!(found, Some((5, Kind::Tombstone)));
    /// assert_eq!(memtable.get_version(b"a", 4), None);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn get_version(&self, key: &[u8], seqno: u64) -> Option<Version<'_>> {
        Version::find(&self.list, key, seqno)
    }

    /// Looks up each key as [`get`](Self::get) does, and returns the results in the order of `keys`. Expected O(log n) for each key; the searches
    /// proceed side by side, so that their cache misses overlap.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K], seqno: u64) -> Vec<Lookup<'_>> {
        self.find_many(keys, seqno, Lookup::Absent, lookup)
    }

    /// Looks up each key as [`get_version`](Self::get_version) does, otherwise like [`get_many`](Self::get_many).
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// memtable.delete(b"b", 2)?;
    /// let found = memtable.get_many_versions(&["b", "c", "a"], 9);
    /// assert_eq!(found.iter().map(|version| version.map(|version| version.seqno)).collect::<Vec<_>>(), [Some(2), None, Some(1)]);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn get_many_versions<K: AsRef<[u8]>>(&self, keys: &[K], seqno: u64) -> Vec<Option<Version<'_>>> {
        self.find_many(keys, seqno, None, |list, found| self.list.show(list.node(found.with_key()?), None))
    }

    /// Like [`get_many_versions`](Self::get_many_versions), but each version keeps the table alive.
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let memtable = Memtable::new();
    /// memtable.put(b"a", 1, b"x")?;
    /// let found = memtable.get_many_owned(&["a", "b"], 9);
    /// drop(memtable);
    /// assert_eq!(found[0].as_ref().map(|version| version.value()), Some(&b"x"[..]));
    /// assert!(found[1].is_none());
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn get_many_owned<K: AsRef<[u8]>>(&self, keys: &[K], seqno: u64) -> Vec<Option<OwnedVersion<O>>> {
        self.find_many(keys, seqno, None, |_, found| {
            let node = found.with_key()?;
            OwnedVersion::attach(&self.list, |table| table.show(table.made()?.node(node), None))
        })
    }

    /// Searches for all keys side by side. Returns `absent` for each, if nothing was ever written.
    fn find_many<'a, K: AsRef<[u8]>, R: Clone>(
        &'a self,
        keys: &[K],
        seqno: u64,
        absent: R,
        read: impl Fn(&'a List<Versioned<O>>, LowerBound) -> R,
    ) -> Vec<R> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: seqno }).collect();
        let mut results = vec![absent; keys.len()];
        if let Some(list) = self.list.made() {
            list.lower_bounds(&keys, |index, found| results[index] = read(list, found));
        }
        results
    }
}

/// Statistics. Each counting method visits every shard: O(shards).
impl<O: Order> Memtable<O> {
    /// The number of versions stored, including tombstones. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.made().map_or(0, List::entries)
    }

    /// Whether the memtable stores no version at all.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Estimates the number of versions within `bounds`, of all sequence numbers and tombstones included, from samples of the index: for a split, or
    /// for the plan of a query. Exact up to 128 versions while no thread writes. Beyond that, the error was less than a quarter in each order of
    /// writes by one thread that was tested, and up to half with four threads; it may be any where the index lacks hints. O(log n).
    ///
    /// ```
    /// # use fastskip::Memtable;
    /// let table = Memtable::new();
    /// for key in 0..100 {
    ///     table.put(&[key], 1, b"v")?;
    /// }
    /// assert_eq!((table.approximate_len([10]..[30]), table.approximate_bytes([10]..[30])), (20, 20 * 24));
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    #[must_use]
    pub fn approximate_len(&self, bounds: impl KeyBounds) -> usize {
        self.list.estimate(bounds).entries
    }

    /// Estimates the bytes that the versions within `bounds` take in memory, without the index: keys, values and some 20 bytes each. If few values
    /// are much longer than the others, the error is larger than that of [`approximate_len`](Self::approximate_len). O(log n).
    #[must_use]
    pub fn approximate_bytes(&self, bounds: impl KeyBounds) -> usize {
        self.list.estimate(bounds).bytes
    }

    /// The bytes of the arena that hold nodes or blocks of the index, are reserved for nodes, or were lost between them. The value is a sum over the
    /// shards, O(shards): one counter for all of them would be a cache line that every write has to fetch.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.list.made().map_or(0, List::memory_usage)
    }

    /// Whether the table is frozen: every write that begins from now on is rejected. True as soon as any write was rejected because the table is
    /// frozen. Writes that began before may still be finishing; see [`is_drained`](Self::is_drained).
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.list.is_frozen()
    }

    /// Whether the table is frozen and no write is in progress: its contents no longer change. Once true, it remains true until a reset. O(shards).
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.list.is_drained()
    }

    /// Whether the fraction [`Builder::backpressure_at`] of a limit (default 90 %) is used up. Once true, it remains true. Also
    /// whether that fraction of the table's [budget](Builder::budget) is in use now.
    #[must_use]
    pub fn is_under_backpressure(&self) -> bool {
        self.list.is_under_backpressure()
    }

    /// Returns all statistics, consistent with each other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.list.stats();
        Stats { len: stats.entries, ..stats }
    }

    /// The number of nodes and blocks that a lookup of `key` at `seqno` would visit at present, for tests and benchmarks that count.
    #[must_use]
    pub fn search_cost(&self, key: &[u8], seqno: u64) -> SearchCost {
        let target = Target { key, version: seqno };
        self.list.made().map(|list| list.search_cost(target)).unwrap_or_default()
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

impl<O: Order> fmt::Debug for Memtable<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Memtable")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("frozen", &stats.is_frozen)
            .finish_non_exhaustive()
    }
}

/// Freezing.
impl<O: Order> Memtable<O> {
    /// Freezes the table and returns the frozen table, whose contents no longer change. Every later write and reservation is rejected with
    /// [`Frozen`](InsertError::Frozen).
    ///
    /// Waits until the writes in progress are finished and the open reservations are applied or dropped (also by unwinding). A thread that holds a
    /// reservation of this table must not call `freeze`: it would wait for itself forever. If a reservation was leaked, `freeze` never returns.
    /// O(shards), not counting the wait.
    ///
    /// The calling thread sleeps until the last writer leaves and wakes it; without `std` it spins. It does not park: an
    /// [`unpark`](std::thread::Thread::unpark) of this thread neither ends the wait nor is consumed by it. It may be called while a thread's
    /// thread-locals are destroyed.
    pub fn freeze(&self) -> FrozenMemtable<O> {
        self.list.freeze();
        FrozenMemtable { memtable: self.clone() }
    }

    /// Like [`freeze`](Self::freeze), but does not wait: writes in progress and open reservations may still add versions. Once
    /// [`is_drained`](Self::is_drained) returns true, the contents are final, and `freeze` returns the frozen table at once. It may be called while
    /// this thread holds a reservation. O(shards); waits at most for a first write that is reserving the table's memory.
    ///
    /// ```
    /// # use fastskip::{InsertError, Memtable, Op};
    /// let memtable = Memtable::new();
    /// let ops = [Op::Put { key: b"k", value: b"v" }];
    /// let reservation = memtable.reserve(&ops)?;
    /// memtable.begin_freeze();
    /// assert_eq!(memtable.put(b"late", 1, b""), Err(InsertError::Frozen));
    /// assert!(!memtable.is_drained());
    /// reservation.apply(1);
    /// assert!(memtable.is_drained());
    /// assert_eq!(memtable.freeze().len(), 1);
    /// # Ok::<(), InsertError>(())
    /// ```
    pub fn begin_freeze(&self) {
        self.list.begin_freeze();
    }
}

/// A frozen memtable. It dereferences to [`Memtable`], so all methods that read work; every write is rejected with [`Frozen`](InsertError::Frozen).
/// Like a [`Memtable`], it is a handle.
pub struct FrozenMemtable<O: Order = Bytewise> {
    memtable: Memtable<O>,
}

// Not derived, because a derived impl would require `O: Clone`.
impl<O: Order> Clone for FrozenMemtable<O> {
    fn clone(&self) -> Self {
        Self { memtable: self.memtable.clone() }
    }
}

impl<O: Order> FrozenMemtable<O> {
    /// Turns the table into the next memtable, as [`Memtable::try_reset`] does: empty, open for writes, with the same memory.
    ///
    /// # Errors
    /// The frozen table, while there is another handle of it, or a cursor, iterator or value that keeps it alive.
    pub fn try_reset(self) -> Result<Memtable<O>, Self> {
        self.memtable.try_reset().map_err(|memtable| Self { memtable })
    }
}

impl<O: Order> Deref for FrozenMemtable<O> {
    type Target = Memtable<O>;

    fn deref(&self) -> &Memtable<O> {
        &self.memtable
    }
}

impl<O: Order> fmt::Debug for FrozenMemtable<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenMemtable").field("len", &self.len()).finish_non_exhaustive()
    }
}
