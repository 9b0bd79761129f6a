//! The simple table: byte keys, the first write of a key wins, a delete leaves a tombstone.

use core::fmt;
use std::io;

use crate::bounds::KeyBounds;
use crate::builder::{Builder, Table, sealed};
use crate::config::Config;
use crate::cursor::{Cursor, Entry, Iter, View};
use crate::error::{BatchError, InsertError};
use crate::list::{Fresh, List, Outcome, Pass};
use crate::node::{Draft, Kind};
use crate::search::{NodeRef, Target};
use crate::snapshot::Snapshot;
use crate::stamp::{Clock, Stamped};
use crate::stats::Stats;
use crate::thread;
use crate::walk::Span;

/// A sorted map from byte keys to byte values that any number of threads write and read without locks.
///
/// A key is stored once: later inserts of it are refused, also after [`delete`](Self::delete), which marks it as a
/// tombstone. [`Memtable`](crate::Memtable) is the type that overwrites. Slices that are returned live as long as the
/// borrow of the list; nothing moves and nothing is freed before the list is dropped or reset.
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
/// An insert costs expected O(log n); its commit is one CAS. Writers that meet retry from where they met. All methods
/// can be called from any thread; none panics whatever the number of threads.
pub struct ConcurrentSkipList {
    list: List<Stamped>,
    clock: Clock,
}

/// Making a list.
impl ConcurrentSkipList {
    /// A list without limits, with as many shards as the available parallelism.
    ///
    /// # Panics
    /// If the system has no address range left; [`Builder::try_build`] returns that as an error.
    #[must_use]
    pub fn new() -> Self {
        Self::builder().build()
    }

    /// A list without limits and with this many shards, from 1 to [`MAX_SHARDS`](crate::MAX_SHARDS).
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_shards(shards: usize) -> Self {
        Self::builder().shards(shards).build()
    }

    /// A list without limits whose shards first take `bytes` together.
    ///
    /// # Panics
    /// As [`new`](Self::new).
    #[must_use]
    pub fn with_capacity(bytes: usize) -> Self {
        let shards = Config::default().shards;
        Self::builder().arena_bytes_per_shard(bytes / shards).build()
    }

    /// A list with limits; 0 means none. See [`Builder`] for each.
    ///
    /// # Panics
    /// As [`new`](Self::new).
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

    /// Settings by name.
    pub fn builder() -> Builder<Self> {
        Builder::new()
    }

    pub(crate) fn from_settings(config: Config) -> io::Result<Self> {
        Ok(Self { list: List::new(config)?, clock: Clock::new() })
    }
}

impl sealed::FromConfig for ConcurrentSkipList {
    fn from_config(settings: sealed::Settings) -> io::Result<Self> {
        Self::from_settings(settings.0)
    }
}

impl Table for ConcurrentSkipList {}

impl Default for ConcurrentSkipList {
    fn default() -> Self {
        Self::new()
    }
}

/// What an insert came to.
enum Stored<'a> {
    New(NodeRef<'a, Stamped>),
    Present(NodeRef<'a, Stamped>),
}

/// Writing.
impl ConcurrentSkipList {
    /// Stores `key`; true if this call did. False for every error of [`try_insert`](Self::try_insert).
    pub fn insert(&self, key: &[u8], value: &[u8]) -> bool {
        self.try_insert(key, value).is_ok()
    }

    /// Stores `key`. What [`get`](Self::get) finds afterwards in any thread that learns of the return includes it.
    ///
    /// # Errors
    /// [`DuplicateKey`](InsertError::DuplicateKey) if the key is stored, tombstoned or not;
    /// [`Sealed`](InsertError::Sealed), [`Full`](InsertError::Full), [`TooLarge`](InsertError::TooLarge).
    pub fn try_insert(&self, key: &[u8], value: &[u8]) -> Result<(), InsertError> {
        match self.store(key, value, Kind::Value)? {
            Stored::New(_) => Ok(()),
            Stored::Present(_) => Err(InsertError::DuplicateKey),
        }
    }

    /// Stores every entry whose key is not stored; returns how many if that is all of them. Each entry is committed by
    /// itself, in order. The caller's `as_ref` runs once for each key and value, before anything else.
    ///
    /// # Errors
    /// [`BatchError::PartialFailure`] if any entry was refused. The others are stored.
    pub fn insert_batch<K, V>(&self, entries: &[(K, V)]) -> Result<usize, BatchError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let drafts: Vec<_> = entries
            .iter()
            .map(|(key, value)| Draft { key: key.as_ref(), value: value.as_ref(), kind: Kind::Value, version: 0 })
            .filter(Draft::is_encodable)
            .collect();
        let succeeded = self.list.enter(thread::index(), entries.len() as u64).map_or(0, |pass| {
            let mut stored = 0;
            pass.insert_all(
                drafts.len(),
                |index| drafts[index],
                &mut Fresh(&pass),
                |_, outcome| {
                    let outcome = outcome.map(|outcome| self.settled(outcome));
                    stored += usize::from(matches!(outcome, Ok(Stored::New(_))));
                },
            );
            stored
        });
        match entries.len() - succeeded {
            0 => Ok(succeeded),
            failed => Err(BatchError::PartialFailure { succeeded, failed }),
        }
    }

    /// The value stored under `key`, and whether this call stored it. If it did not, the value is the one that was there
    /// (also a tombstone's), or, where the key is absent and cannot be stored, `value` itself.
    pub fn get_or_insert<'a>(&'a self, key: &[u8], value: &'a [u8]) -> (&'a [u8], bool) {
        self.try_get_or_insert(key, value).unwrap_or((value, false))
    }

    /// The value stored under `key`, and whether this call stored it. A tombstone gives `(old value, false)`.
    ///
    /// # Errors
    /// Only if the key is absent: [`Sealed`](InsertError::Sealed), [`Full`](InsertError::Full),
    /// [`TooLarge`](InsertError::TooLarge).
    pub fn try_get_or_insert(&self, key: &[u8], value: &[u8]) -> Result<(&[u8], bool), InsertError> {
        match self.store(key, value, Kind::Value) {
            Ok(Stored::New(node)) => Ok((node.entry().1, true)),
            Ok(Stored::Present(node)) => Ok((node.entry().1, false)),
            // A sealed list still has what it has.
            Err(refusal) => self.get(key).map(|(present, _)| (present, false)).ok_or(refusal),
        }
    }

    /// Marks `key` as deleted; true if it was live and this call did it. An absent key is left absent: see
    /// [`insert_tombstone`](Self::insert_tombstone). False for every error of [`try_delete`](Self::try_delete).
    pub fn delete(&self, key: &[u8]) -> bool {
        self.try_delete(key).unwrap_or(false)
    }

    /// Marks `key` as deleted; `Ok(true)` if it was live and this call did it, `Ok(false)` if it was absent or deleted.
    ///
    /// # Errors
    /// [`Sealed`](InsertError::Sealed), [`Full`](InsertError::Full): a list past its limits takes no write at all.
    pub fn try_delete(&self, key: &[u8]) -> Result<bool, InsertError> {
        let pass = self.list.enter(thread::index(), 0)?;
        if self.list.is_full() {
            return Err(InsertError::Full);
        }
        match self.list.lower_bound(Target { key, version: 0 }) {
            (off, true) => Ok(self.mark_deleted(&pass, self.list.node(off))),
            (_, false) => Ok(false),
        }
    }

    /// Makes `key` a tombstone, stored or not: in an engine the key may live in a lower level.
    ///
    /// # Errors
    /// [`Sealed`](InsertError::Sealed), [`Full`](InsertError::Full), [`TooLarge`](InsertError::TooLarge). A key that is a
    /// tombstone already is no error.
    pub fn insert_tombstone(&self, key: &[u8]) -> Result<(), InsertError> {
        if let Stored::Present(node) = self.store(key, &[], Kind::Tombstone)? {
            if self.live().entry(node).is_some_and(|entry| entry.is_tombstone) {
                return Ok(());
            }
            let pass = self.list.enter(thread::index(), 0)?;
            if self.list.is_full() {
                return Err(InsertError::Full);
            }
            self.mark_deleted(&pass, node);
        }
        Ok(())
    }

    fn mark_deleted(&self, pass: &Pass<'_, Stamped>, node: NodeRef<'_, Stamped>) -> bool {
        // Born a tombstone: there is nothing to delete.
        if node.entry().2 == Kind::Tombstone {
            self.clock.inserted(node);
            return false;
        }
        let deleted = self.clock.delete(node);
        if deleted {
            pass.count_deleted();
        }
        deleted
    }

    /// Links a node for `key` unless there is one. The node's stamps are settled when this returns.
    fn store(&self, key: &[u8], value: &[u8], kind: Kind) -> Result<Stored<'_>, InsertError> {
        let pass = self.list.enter(thread::index(), 1)?;
        let draft = Draft { key, value, kind, version: 0 };
        if !draft.is_encodable() {
            return Err(InsertError::TooLarge);
        }
        let outcome = pass.insert(0, &draft, &mut Fresh(&pass))?;
        Ok(self.settled(outcome))
    }

    fn settled(&self, outcome: Outcome) -> Stored<'_> {
        match outcome {
            Outcome::New(off) => {
                let node = self.list.node(off);
                self.clock.inserted(node);
                Stored::New(node)
            }
            Outcome::Present(off) => {
                let node = self.list.node(off);
                self.clock.inserted(node);
                self.clock.deleted(node);
                Stored::Present(node)
            }
        }
    }
}

/// Reading.
impl ConcurrentSkipList {
    pub(crate) fn config(&self) -> &Config {
        self.list.config()
    }

    fn live(&self) -> View<'_> {
        View { list: &self.list, clock: &self.clock, until: View::LIVE }
    }

    /// The value of `key` and whether it is a tombstone, which keeps its old value. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8]) -> Option<(&[u8], bool)> {
        self.live().get(key).map(|entry| (entry.value, entry.is_tombstone))
    }

    /// The value of `key` unless it is a tombstone.
    #[must_use]
    pub fn get_live(&self, key: &[u8]) -> Option<&[u8]> {
        self.get(key).filter(|(_, is_tombstone)| !is_tombstone).map(|(value, _)| value)
    }

    /// [`get_live`](Self::get_live) of each key, in their order.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K]) -> Vec<Option<&[u8]>> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: 0 }).collect();
        let mut values = vec![None; keys.len()];
        self.list.lower_bounds(&keys, |index, (off, has_key)| {
            let entry = has_key.then(|| self.live().entry(self.list.node(off))).flatten();
            values[index] = entry.filter(|entry| !entry.is_tombstone).map(|entry| entry.value);
        });
        values
    }

    /// Whether `key` is stored and not a tombstone.
    #[must_use]
    pub fn contains_key(&self, key: &[u8]) -> bool {
        self.get_live(key).is_some()
    }

    /// All entries in order, tombstones included.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(self.live(), Span::all())
    }

    /// A cursor on the first entry.
    #[must_use]
    pub fn cursor(&self) -> Cursor<'_> {
        Cursor::new(self.live())
    }

    /// A cursor on the first entry whose key is not less than `key`, if there is one.
    #[must_use]
    pub fn cursor_at(&self, key: &[u8]) -> Option<Cursor<'_>> {
        let mut cursor = self.cursor();
        cursor.seek(key).then_some(cursor)
    }

    /// The entries within `bounds` in order; none if the bounds are inverted. The bounds are copied.
    ///
    /// ```
    /// # let list = fastskip::ConcurrentSkipList::new();
    /// list.insert(b"a", b"");
    /// list.insert(b"b", b"");
    /// list.insert(b"c", b"");
    /// let keys: Vec<_> = list.range("b"..).rev().map(|entry| entry.key).collect();
    /// assert_eq!(keys, [b"c", b"b"]);
    /// ```
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds) -> Iter<'_> {
        Iter::new(self.live(), Span::new(bounds))
    }

    /// The entries whose keys begin with `prefix`, in order.
    #[must_use]
    pub fn prefix(&self, prefix: &[u8]) -> Iter<'_> {
        Iter::new(self.live(), Span::prefix(prefix))
    }

    /// The list as it is now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new(View { until: self.clock.snapshot(), ..self.live() })
    }
}

/// Freezing and starting anew.
impl ConcurrentSkipList {
    /// Refuses every later write with [`Sealed`](InsertError::Sealed), and returns when the writes inside are done: what
    /// they stored is in the list for good. Blocks only while writers are inside.
    pub fn freeze(&self) {
        self.list.freeze();
    }

    /// Empties the list and opens it again. Its memory stays with it. That nothing borrowed from it is left is what
    /// `&mut` proves.
    pub fn reset(&mut self) {
        self.list.reset();
        self.clock = Clock::new();
    }
}

/// Figures. Each costs a pass over the shards; [`stats`](ConcurrentSkipList::stats) costs one for all.
impl ConcurrentSkipList {
    /// Live keys. Exact when no writer is active.
    #[must_use]
    pub fn len(&self) -> usize {
        self.list.live_entries()
    }

    /// Whether no key is live.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Inserts attempted, refused ones included.
    #[must_use]
    pub fn total_inserts(&self) -> usize {
        self.stats().total_inserts
    }

    /// Bytes of the arena that hold nodes or were lost between them.
    #[must_use]
    pub fn memory_usage(&self) -> usize {
        self.stats().memory_usage
    }

    /// Bytes of the arena handed out to shards.
    #[must_use]
    pub fn memory_reserved(&self) -> usize {
        self.stats().memory_reserved
    }

    /// Bytes handed out to shards and not used yet.
    #[must_use]
    pub fn memory_idle(&self) -> usize {
        self.stats().memory_idle
    }

    /// The used part of what is handed out, from 0.0 to 1.0.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        self.stats().memory_utilization()
    }

    /// Mean length of the stored keys, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_key_size(&self) -> f64 {
        self.stats().avg_key_size
    }

    /// Mean length of the stored values, in bytes; 0.0 for an empty list.
    #[must_use]
    pub fn avg_value_size(&self) -> f64 {
        self.stats().avg_value_size
    }

    /// The limit on memory in bytes; 0 means none.
    #[must_use]
    pub fn max_memory_bytes(&self) -> usize {
        self.list.config().max_memory_bytes
    }

    /// The limit on stored entries; 0 means none.
    #[must_use]
    pub fn max_entries(&self) -> usize {
        self.list.config().max_entries
    }

    /// Whether the list is frozen.
    #[must_use]
    pub fn is_sealed(&self) -> bool {
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
        self.list.stats()
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

impl<'a> IntoIterator for &'a ConcurrentSkipList {
    type Item = Entry<'a>;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl fmt::Debug for ConcurrentSkipList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stats = self.stats();
        f.debug_struct("ConcurrentSkipList")
            .field("len", &stats.len)
            .field("memory_usage", &stats.memory_usage)
            .field("sealed", &stats.is_sealed)
            .finish_non_exhaustive()
    }
}
