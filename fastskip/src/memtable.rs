//! The table a storage engine writes to: versions of keys by sequence number.

use core::fmt;
use core::ops::Deref;
use std::io;

use crate::bounds::KeyBounds;
use crate::builder::{Builder, Table, sealed};
use crate::error::InsertError;
use crate::height::MAX_HEIGHT;
use crate::list::{Fresh, List, Outcome, Pass, Room};
use crate::node::{Draft, Kind};
use crate::search::{Schema, Target};
use crate::stats::Stats;
use crate::sync::Arc;
use crate::thread;
use crate::tuning::SPARE_LEVELS;
use crate::versions::{AllVersions, Versioned, Versions};
use crate::walk::Span;

/// One write of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op<'a> {
    /// Gives `key` a value.
    Put {
        /// The key.
        key: &'a [u8],
        /// Its value.
        value: &'a [u8],
    },
    /// Deletes `key`, whether it is in this table or not.
    Delete {
        /// The key.
        key: &'a [u8],
    },
}

impl<'a> Op<'a> {
    fn draft(self, version: u64) -> Draft<'a> {
        match self {
            Self::Put { key, value } => Draft { key, value, kind: Kind::Value, version },
            Self::Delete { key } => Draft { key, value: &[], kind: Kind::Tombstone, version },
        }
    }
}

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

/// Writing.
impl Memtable {
    /// Stores `value` as the version `seqno` of `key`. Expected O(log n).
    ///
    /// # Errors
    /// [`DuplicateKey`](InsertError::DuplicateKey) if the key has a version `seqno`: the first stays;
    /// [`Sealed`](InsertError::Sealed), [`Full`](InsertError::Full), [`TooLarge`](InsertError::TooLarge).
    pub fn put(&self, key: &[u8], seqno: u64, value: &[u8]) -> Result<(), InsertError> {
        self.write(Op::Put { key, value }, seqno)
    }

    /// Stores a tombstone as the version `seqno` of `key`, whether the key is in this table or not.
    ///
    /// # Errors
    /// As [`put`](Self::put).
    pub fn delete(&self, key: &[u8], seqno: u64) -> Result<(), InsertError> {
        self.write(Op::Delete { key }, seqno)
    }

    fn write(&self, op: Op<'_>, seqno: u64) -> Result<(), InsertError> {
        let pass = self.list.enter(thread::index(), 1)?;
        let draft = op.draft(seqno);
        if !draft.is_encodable() {
            return Err(InsertError::TooLarge);
        }
        match pass.insert(0, &draft, &mut Fresh(&pass))? {
            Outcome::New(_) => Ok(()),
            Outcome::Present(_) => Err(InsertError::DuplicateKey),
        }
    }

    /// Takes all that `ops` will need, so that applying them cannot fail (the protocol of Pebble's `arenaskl`). Until the
    /// reservation is applied or dropped, [`freeze`](Self::freeze) waits for it; so never wait for anything while
    /// holding one.
    ///
    /// ```
    /// # use fastskip::{Memtable, Op};
    /// let memtable = Memtable::new();
    /// let ops = [Op::Put { key: b"a", value: b"1" }, Op::Put { key: b"b", value: b"2" }];
    /// let reservation = memtable.reserve(&ops)?;
    /// // ... now write the log; if that fails, drop the reservation, and nothing was stored ...
    /// assert_eq!(reservation.apply(10), 2);
    /// # Ok::<(), fastskip::InsertError>(())
    /// ```
    ///
    /// # Errors
    /// [`Sealed`](InsertError::Sealed) after `freeze`; [`Full`](InsertError::Full) if the batch does not fit what is left of
    /// a limit (its last entry may pass the one on memory); [`TooLarge`](InsertError::TooLarge) if it would not fit an
    /// empty table of these limits either. Nothing is stored then.
    pub fn reserve<'a>(&'a self, ops: &'a [Op<'a>]) -> Result<Reservation<'a>, InsertError> {
        let pass = self.list.enter(thread::index(), ops.len() as u64)?;
        let (mut words, mut last, mut spare) = (0, 0, SPARE_LEVELS);
        for (index, op) in ops.iter().enumerate() {
            let draft = op.draft(0);
            if !draft.is_encodable() {
                return Err(InsertError::TooLarge);
            }
            last = u64::from(draft.words(1, Versioned::META_WORDS));
            words += last;
            spare += pass.coins(index).trailing_ones();
        }
        let spare = if ops.is_empty() { 0 } else { spare };
        let start = pass.reserve(ops.len() as u64, words + u64::from(spare), last + u64::from(spare))?;
        let rest = Rest { start, words: words as u32 + spare, spare, entries: ops.len() as u64 };
        Ok(Reservation { pass, ops, rest })
    }

    /// Refuses every later reservation with [`Sealed`](InsertError::Sealed), waits until the open ones are applied or
    /// dropped (by unwinding too), and returns the table as it then is for good. A thread that calls this while it holds
    /// a reservation of the same table waits for itself, for ever; so does any for a reservation that was leaked.
    pub fn freeze(&self) -> FrozenVersions {
        self.list.freeze();
        FrozenVersions { memtable: self.clone() }
    }
}

/// What of a reservation is not used yet.
#[derive(Debug)]
struct Rest {
    start: u32,
    words: u32,
    /// Of the words, those for towers, beyond one for each entry.
    spare: u32,
    entries: u64,
}

impl Room for Rest {
    fn most_levels(&self) -> usize {
        (self.spare as usize + 1).min(MAX_HEIGHT)
    }

    fn take(&mut self, words: u32, levels: usize) -> Result<u32, InsertError> {
        let start = self.start;
        self.start += words;
        self.words -= words;
        self.spare -= levels as u32 - 1;
        self.entries -= 1;
        Ok(start)
    }
}

/// Room in a memtable for a batch. Dropping it gives the room back, or, if the shard has handed out more since, leaves it
/// unused for good.
#[must_use = "a reservation that is dropped stores nothing"]
pub struct Reservation<'a> {
    pass: Pass<'a, Versioned>,
    ops: &'a [Op<'a>],
    rest: Rest,
}

impl Reservation<'_> {
    /// Stores the batch, the first write at `first_seqno` and each further one at the next number (numbers end at
    /// `u64::MAX`). Returns how many it stored: a key that has a version of that number keeps it.
    ///
    /// Each write is committed by itself; the batch appears at once to readers that learn its sequence numbers only
    /// after this returns.
    pub fn apply(mut self, first_seqno: u64) -> usize {
        let Self { pass, ops, rest } = &mut self;
        let mut stored = 0;
        let draft = |index: usize| ops[index].draft(first_seqno.saturating_add(index as u64));
        pass.insert_all(ops.len(), draft, rest, |_, outcome| {
            stored += usize::from(matches!(outcome, Ok(Outcome::New(_))))
        });
        stored
    }
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        if self.rest.words != 0 {
            self.pass.give_back(self.rest.entries, self.rest.start, self.rest.words);
        }
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reservation").field("ops", &self.ops.len()).finish_non_exhaustive()
    }
}

/// Reading.
impl Memtable {
    /// The newest version of `key` not newer than `seqno`. Expected O(log n).
    #[must_use]
    pub fn get(&self, key: &[u8], seqno: u64) -> Lookup<'_> {
        self.lookup(self.list.lower_bound(Target { key, version: seqno }))
    }

    fn lookup(&self, (first, has_key): (u32, bool)) -> Lookup<'_> {
        match (first, has_key) {
            (_, false) => Lookup::Absent,
            (off, true) => match self.list.node(off).entry() {
                (_, value, Kind::Value) => Lookup::Value(value),
                (_, _, Kind::Tombstone) => Lookup::Tombstone,
            },
        }
    }

    /// [`get`](Self::get) of each key, in their order.
    #[must_use]
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: &[K], seqno: u64) -> Vec<Lookup<'_>> {
        let keys: Vec<_> = keys.iter().map(|key| Target { key: key.as_ref(), version: seqno }).collect();
        let mut lookups = vec![Lookup::Absent; keys.len()];
        self.list.lower_bounds(&keys, |index, place| lookups[index] = self.lookup(place));
        lookups
    }

    /// The keys within `bounds`, each with its newest version not newer than `seqno`, tombstones included. None if the
    /// bounds are inverted.
    #[must_use]
    pub fn range(&self, bounds: impl KeyBounds, seqno: u64) -> Versions<'_> {
        Versions::new(&self.list, Span::new(bounds), seqno)
    }

    /// All keys, as by [`range`](Self::range).
    #[must_use]
    pub fn iter(&self, seqno: u64) -> Versions<'_> {
        Versions::new(&self.list, Span::all(), seqno)
    }

    /// Every version of every key: keys ascending, and of a key the newest first. What a flush writes.
    #[must_use]
    pub fn all_versions(&self) -> AllVersions<'_> {
        AllVersions::new(&self.list, Span::all())
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

/// A frozen memtable. It reads as the [`Memtable`] it was ([`Deref`]); its writes all say
/// [`Sealed`](InsertError::Sealed). A handle, like it.
#[derive(Clone)]
pub struct FrozenVersions {
    memtable: Memtable,
}

impl Deref for FrozenVersions {
    type Target = Memtable;

    fn deref(&self) -> &Memtable {
        &self.memtable
    }
}

impl fmt::Debug for FrozenVersions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FrozenVersions").field("len", &self.len()).finish_non_exhaustive()
    }
}
