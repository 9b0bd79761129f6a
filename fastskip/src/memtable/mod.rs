//! The table a storage engine writes to: versions of keys by sequence number.

mod cursor;
mod frozen;
mod versions;
mod write;

use core::fmt;
use std::io;

use self::versions::Versioned;
use crate::bounds::KeyBounds;
use crate::builder::{Builder, Table, sealed};
use crate::list::stats::Stats;
use crate::list::{List, RangeIter, SeekResult};
use crate::node::{Kind, Target};
use crate::sync::Arc;

pub use cursor::{Hold, MemtableCursor, OwnedCursor};
pub use frozen::FrozenVersions;
pub use versions::{AllVersions, Version, Versions};
pub use write::{Op, Reservation};

/// What a memtable knows of a key at a sequence number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup<'a> {
    /// It has this value.
    Value(&'a [u8]),
    /// It is deleted: lower levels need not be asked.
    Tombstone,
    /// Nothing: ask the lower levels.
    Absent,
}

/// A sorted multi-version map from byte keys to byte values, written and read by any number of threads without locks.
///
/// A write carries a sequence number; a read at number `s` sees, of each key, the newest version not newer than `s`. Such
/// a read is stable once every write up to `s` has returned; the caller publishes `s`.
///
/// This is a handle: a clone is the same table, which lives as long as the last of its handles, cursors and frozen
/// handles.
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
#[derive(Clone)]
pub struct Memtable {
    list: Arc<List<Versioned>>,
}

impl Memtable {
    /// A memtable without limits, with as many shards as the available parallelism.
    ///
    /// # Panics
    /// If the system has no address range left; [`Builder::try_build`] returns that as an error.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// Settings by name.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    pub(crate) fn list(&self) -> &List<Versioned> {
        &self.list
    }
}

impl sealed::FromConfig for Memtable {
    fn from_config(settings: sealed::Settings) -> io::Result<Self> {
        Ok(Self { list: Arc::new(List::new(settings.0)?) })
    }
}

impl Table for Memtable {}

impl Default for Memtable {
    fn default() -> Self {
        Self::new()
    }
}

/// Reading.
impl Memtable {
    /// The newest version of `key` not newer than `seqno`. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8], seqno: u64) -> Lookup<'_> {
        self.lookup(self.list.lower_bound(Target { key, version: seqno }))
    }

    fn lookup(&self, found: SeekResult) -> Lookup<'_> {
        match found.with_key().map(|id| self.list.node(id).entry()) {
            None => Lookup::Absent,
            Some((_, value, Kind::Value)) => Lookup::Value(value),
            Some((_, _, Kind::Tombstone)) => Lookup::Tombstone,
        }
    }

    /// [`get`](Self::get) of each key, in their order.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K], seqno: u64) -> Vec<Lookup<'_>> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: seqno }).collect();
        let mut lookups = vec![Lookup::Absent; keys.len()];
        self.list.lower_bounds(&keys, |index, found| lookups[index] = self.lookup(found));
        lookups
    }

    /// The keys within `bounds`, each with its newest version not newer than `seqno`, tombstones included. None if the
    /// bounds are inverted.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds, seqno: u64) -> Versions<'_> {
        Versions::new(&self.list, RangeIter::new(bounds), seqno)
    }

    /// All keys, as by [`range`](Self::range).
    #[must_use]
    pub fn iter(&self, seqno: u64) -> Versions<'_> {
        Versions::new(&self.list, RangeIter::all(), seqno)
    }

    /// Every version of every key: keys ascending, and of a key the newest first. What a flush writes.
    #[must_use]
    pub fn all_versions(&self) -> AllVersions<'_> {
        AllVersions::new(&self.list, RangeIter::all())
    }
}

/// Figures.
impl Memtable {
    /// Versions stored, tombstones included. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.entries()
    }

    /// Whether nothing is stored.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the arena that hold nodes, are reserved for them or were lost between them.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.list.memory_usage()
    }

    /// Whether the table is frozen.
    #[must_use]
    pub fn is_frozen(&self) -> bool {
        self.list.is_frozen()
    }

    /// Whether 90 % of a limit (see [`Builder::backpressure_at`]) is used up. Once true, always true.
    #[must_use]
    pub fn is_under_backpressure(&self) -> bool {
        self.list.is_under_backpressure()
    }

    /// All figures, consistent with each other.
    #[must_use]
    pub fn stats(&self) -> Stats {
        let stats = self.list.stats();
        Stats { len: stats.entries, ..stats }
    }

    /// Checks the structure's invariants by walking every level; for tests. Call it while nothing writes. O(n log n).
    ///
    /// # Panics
    /// If one does not hold; the message begins with its number.
    #[doc(hidden)]
    pub fn validate(&self) {
        self.list.validate();
    }
}

impl fmt::Debug for Memtable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("Memtable")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("frozen", &stats.is_sealed)
            .finish_non_exhaustive()
    }
}
