//! [`Keyspace`]: the reads and writes of one keyspace.

mod batch;

use std::sync::Arc;
use std::time::SystemTime;

use super::admin::{KeyspaceSize, approximate_size, compact_range, ingest};
use super::core::Core;
use super::handle::Handle;
use super::read::{Cursor, Iter, PointRead, Scan, Snapshot, read_now};
use super::transaction::{ConflictCheck, KeyspaceTransaction, Transaction, update};
use super::write::{WriteMode, write, write_one};
use crate::error::{Error, Result};
use crate::types::{
    CompareAndSwapError, Durability, KeyBounds, KeyspaceRef, SeqNo, Slice, WriteBatch, check_key, check_value,
    prefix_bounds, system_time,
};

pub use self::batch::KeyspaceBatch;

/// A separate set of keys in a database, created by [`Db::keyspace`](crate::Db::keyspace); RocksDB calls it a column family. A cheap handle: clone it
/// freely, use it from any number of threads.
///
/// All keyspaces of a database share its log, so a [`WriteBatch`] and a [`Snapshot`] span them. A [`Db`](crate::Db) derefs to its default keyspace:
/// so `db.get(..)` and all other methods of this type read and write there. Each keyspace costs memory for its name, and two to six bytes for each
/// key, before the common prefixes of neighbouring keys are compressed.
///
/// A key has at most [`MAX_KEY_LEN`](crate::MAX_KEY_LEN) bytes, in every keyspace. It is stored after the prefix of its keyspace, which has two bytes
/// in the first 247 keyspaces that a database creates, four up to the 65,535th, and six at most. Keys of the default keyspace that begin with the
/// byte 0xff have a prefix of two bytes; its other keys have none.
///
/// Like a [`Db`](crate::Db), a handle keeps the database open. After [`Db::drop_keyspace`](crate::Db::drop_keyspace) every call, and every read of a
/// snapshot, returns [`Error::NoKeyspace`], even if a keyspace of that name is created again; existing iterators continue.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// use mini_engine::{Db, Durability, WriteBatch};
///
/// let db = Db::open(dir.path())?;
/// let (users, emails) = (db.keyspace("users")?, db.keyspace("emails")?);
/// let mut batch = WriteBatch::new();
/// batch.keyspace(&users).insert("7", "Ada")?;
/// batch.keyspace(&emails).insert("ada@example.org", "7")?;
/// db.write(batch, Durability::Synced)?;
/// assert_eq!(users.get("7")?.as_deref(), Some(&b"Ada"[..]));
/// assert_eq!(db.get("7")?, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Keyspace {
    handle: Arc<Handle>,
    keyspace: KeyspaceRef,
}

impl Keyspace {
    pub(super) fn new(handle: Arc<Handle>, keyspace: KeyspaceRef) -> Keyspace {
        Keyspace { handle, keyspace }
    }

    /// The name of the keyspace; empty for the default one.
    pub fn name(&self) -> &str {
        self.keyspace.name()
    }

    /// The newest value of `key`. Costs O(log n) in memtables, plus at most one block read in each table whose key range and filter do not rule the
    /// key out. A value of more than 128 bytes from a table is a slice of its cached block.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"red"[..]));
    /// assert_eq!(db.get("pear")?, None);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] if a table that may hold the key cannot be read (an older value is never returned instead);
    /// [`Error::Closed`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        let key = key.as_ref();
        // `read_key` is not used here: its closure appears twice there, and would not be inlined.
        match self.keyspace.prefix.is_plain(key) {
            true => read_now(self.core(), None, |read| read.get(key)),
            false => self.read_prefixed(key, |read, key| read.get(key)),
        }
    }

    /// The values of `keys`, in the order of `keys`, all as of one moment.
    ///
    /// Cheaper than separate reads: keys are sorted and searched for together, so that cache misses overlap and a block with several of the keys is
    /// read once. O(n log n) for the sort, besides the reads.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// let colours = db.get_many(["pear", "apple"])?;
    /// assert!(colours[0].is_none() && colours[1].as_deref() == Some(b"red"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same as for [`Keyspace::get`], if the read of any key fails.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        // The caller's iterator may write to the database, so it is read to its end before the moment of the read is chosen.
        self.keyspace.prefix.with_all_stored(keys, |keys| self.read(|read| read.get_many(keys)))
    }

    /// Like [`Keyspace::get_many`], but the search ends when the values found have `soft_limit` bytes together: so at most that many bytes of values,
    /// plus one value, are in memory at once. RocksDB's `MultiGet` has `value_size_soft_limit` for this purpose.
    ///
    /// The answer for a key is `Some(result)`, with the result of [`Keyspace::get`], or `None` if the search ended before the result was known. The
    /// keys with an answer need not be the first ones: newer sources are searched before older ones, and each in the order of the keys. At least one
    /// key has an answer.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("a", vec![0; 1000])?;
    /// db.insert("b", vec![0; 1000])?;
    /// let answers = db.get_many_up_to(1000, ["a", "b"])?;
    /// assert!(matches!(&answers[..], [Some(Some(_)), None]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The same as for [`Keyspace::get`], if the read of any key that was searched for fails.
    pub fn get_many_up_to<K: AsRef<[u8]>>(
        &self,
        soft_limit: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Option<Slice>>>> {
        let read_all = |keys: &[&[u8]]| self.read(|read| read.get_many_up_to(Some(soft_limit), keys));
        self.keyspace.prefix.with_all_stored(keys, read_all)
    }

    /// Whether `key` has a value; no value of more than 128 bytes is copied. Errors are those of [`Keyspace::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        self.read_key(key.as_ref(), |read, key| read.contains(key))
    }

    /// Sets `key` to `value`, with the durability that the options set. See [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// db.insert([0, 1, 2], 7_u64.to_be_bytes())?;
    /// db.insert("apple", "green")?;
    /// assert_eq!(db.get("apple")?.as_deref(), Some(&b"green"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key or value past its limit, and the errors of [`Db::write`](crate::Db::write).
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        write_one(self.core(), &self.keyspace, key.as_ref(), Some(value.as_ref()), self.durability())
    }

    /// Removes `key`, whether or not it has a value, with the durability that the options set. See [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// db.remove("apple")?;
    /// db.remove("pear")?;
    /// assert!(!db.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key past its limit, and the errors of [`Db::write`](crate::Db::write).
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        write_one(self.core(), &self.keyspace, key.as_ref(), None, self.durability())
    }

    /// Removes all keys within `bounds`, whether or not there are any, with the durability that the options set. See [`Db::write`](crate::Db::write).
    ///
    /// The removal is one operation, and O(1) however many keys there are: reads skip the covered entries, and compactions remove them later. Until
    /// then scans of the range are slower than those of an empty range. Inverted bounds remove nothing.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a bound that is a key past its limit, and the errors of [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// for key in ["a", "b", "c"] {
    ///     db.insert(key, "")?;
    /// }
    /// db.remove_range("a".."c")?;
    /// assert_eq!(db.iter().count(), 1);
    /// # Ok(())
    /// # }
    /// ```
    pub fn remove_range(&self, bounds: impl KeyBounds) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.note_keyspace(&self.keyspace);
        batch.remove_range_in(self.keyspace.prefix, &bounds)?;
        self.write(&batch)
    }

    /// Removes all keys that begin with `prefix`, like [`Keyspace::remove_range`].
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        self.remove_range(prefix_bounds(prefix.as_ref()))
    }

    /// If the value of `key` is `expected`, sets it to `new`, atomically with respect to all other writes and reads; `None` means no value. The
    /// durability is the one that the options set. If the value differs, nothing is written, and the inner error holds the present value of the key.
    ///
    /// Costs a read, a write, and in between a search for other writes of the key since the read; the search stays in memory, unless there was a
    /// flush. It waits for concurrent writes that have begun, and other writes wait for a part of the search, as for [`Transaction::commit`]. If the
    /// search finds another write of the key, all of this is repeated.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key or value past its limit, and the errors of [`Keyspace::get`] and [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir()?;
    /// let db = mini_engine::Db::open(dir.path())?;
    /// db.compare_and_swap("leader", None, Some(b"a"))??;
    /// let refused = db.compare_and_swap("leader", None, Some(b"b"))?.unwrap_err();
    /// assert_eq!(refused.current.as_deref(), Some(&b"a"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn compare_and_swap(
        &self,
        key: impl AsRef<[u8]>,
        expected: Option<&[u8]>,
        new: Option<&[u8]>,
    ) -> Result<std::result::Result<(), CompareAndSwapError>> {
        let key = key.as_ref();
        check_key(key)?;
        new.map_or(Ok(()), check_value)?;
        // The check of the commit finds every other write of the key, even one of an equal value.
        update(self.core(), &self.keyspace, ConflictCheck::InView, |entries| {
            let current = entries.get(key)?;
            if current.as_deref() != expected {
                return Ok(Err(CompareAndSwapError { current }));
            }
            match new {
                Some(value) => entries.insert(key, value)?,
                None => entries.remove(key)?,
            }
            Ok(Ok(()))
        })
    }

    /// Sets `key` to `value` until the time `at`, with the durability that the options set. From that time on the key is absent from every read, scan
    /// and count, as if it were removed then. Compactions remove the entry later. If the time has passed already, the key is removed at once; any
    /// later write of the key replaces the value and its expiry.
    ///
    /// Times are kept in whole milliseconds, rounded down, and refer to the clock of the database ([`Keyspace::now`]). A snapshot, an iterator and a
    /// cursor see the database as of their creation, including entries that have expired since.
    ///
    /// With `None` instead of a time the entry never expires, even in a keyspace whose entries expire by default
    /// ([`KeyspaceOptions::expire_after`](crate::KeyspaceOptions::expire_after)). So `at` may be a result of [`Keyspace::get_with_expiry`].
    ///
    /// Each entry that expires takes 8 bytes for its time; other entries, and databases without such entries, have no additional cost.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key past its limit, or a value longer than its limit, which is 8 bytes less for an entry that expires, and
    /// the errors of [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let (now, hour) = (db.now(), std::time::Duration::from_secs(3600));
    /// db.insert_with_expiry("session", "alice", now + hour)?;
    /// db.insert_with_expiry("outdated", "bob", now - hour)?;
    /// assert!(db.contains_key("session")? && !db.contains_key("outdated")?);
    /// db.set_expiry("session", None)?;
    /// assert_eq!(db.get_with_expiry("session")?.unwrap().1, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn insert_with_expiry(
        &self,
        key: impl AsRef<[u8]>,
        value: impl AsRef<[u8]>,
        at: impl Into<Option<SystemTime>>,
    ) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.note_keyspace(&self.keyspace);
        batch.insert_in(self.keyspace.prefix, key.as_ref(), value.as_ref(), at.into())?;
        self.write(&batch)
    }

    /// The newest value of `key`, and the time at which it expires, if it does. Costs and errors are those of [`Keyspace::get`].
    pub fn get_with_expiry(&self, key: impl AsRef<[u8]>) -> Result<Option<(Slice, Option<SystemTime>)>> {
        let found = self.read_key(key.as_ref(), |read, key| read.get_with_expiry(key))?;
        Ok(found.map(|(value, at)| (value, at.map(system_time))))
    }

    /// The present time by the clock of the database, to which a lifetime is added for an expiry: `db.now() + span`. O(1).
    ///
    /// The clock is the system's, but never goes back within a database: when the system's clock is set back, the database's stands still until the
    /// system's reaches it again, also after the database was closed and opened again. [`Metrics::clock_ahead`](crate::Metrics::clock_ahead) is the
    /// difference between the two; it is logged if it is a second or more. Only a crash may set the clock back, to its value at the last flush or
    /// compaction: if the system's clock had jumped ahead, and was set back before the crash, keys that had expired meanwhile exist again.
    pub fn now(&self) -> SystemTime {
        self.core().clock.time()
    }

    /// Whether any entry of the database, in any keyspace, may expire. If it is false, no key has an expiry. O(1).
    pub fn has_expiring_entries(&self) -> bool {
        self.core().clock.latest() != 0
    }

    /// Makes the entry of `key` expire at `at`, or never if it is `None`; the value stays. Returns false if the key is absent. Atomic with respect to
    /// all other writes and reads. Costs and durability are those of [`Keyspace::compare_and_swap`].
    ///
    /// # Errors
    /// The errors of [`Keyspace::get`] and [`Keyspace::insert_with_expiry`].
    pub fn set_expiry(&self, key: impl AsRef<[u8]>, at: impl Into<Option<SystemTime>>) -> Result<bool> {
        let (key, at) = (key.as_ref(), at.into());
        update(self.core(), &self.keyspace, ConflictCheck::InView, |entries| {
            let Some(value) = entries.get(key)? else { return Ok(false) };
            entries.insert_with_expiry(key, value, at)?;
            Ok(true)
        })
    }

    /// The entry with the smallest key. Costs O(sources * log n) amortised, however many entries were removed before this one: tombstones that a read
    /// has stepped over are skipped by later reads. The same holds for the first and the last entry of a range or a prefix, of a snapshot, and of a
    /// transaction.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("b", "2")?;
    /// db.insert("a", "1")?;
    /// let (key, value) = db.first()?.expect("there are two");
    /// assert_eq!((&*key, &*value), (&b"a"[..], &b"1"[..]));
    /// assert_eq!(db.last()?.map(|(key, _)| key.to_vec()), Some(b"b".to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the tables searched; [`Error::Closed`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next().transpose()
    }

    /// The entry with the largest key. Costs and errors are those of [`Keyspace::first`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        self.iter().next_back().transpose()
    }

    /// Removes the entry with the smallest key, and returns it: no two callers get the same entry. The durability is the one that the options set.
    ///
    /// Costs [`Keyspace::first`] and the commit of a [`Transaction`](crate::Transaction); both are repeated while other writers take the entry first
    /// or insert one before it. [`Transaction::pop_first`](crate::Transaction::pop_first) does the same as part of a transaction. Each popped entry
    /// leaves a tombstone until a flush and a compaction drop it. The first reads after an open, or after a [`Keyspace::ingest`], step over all
    /// tombstones at that end of the keyspace; later reads skip them. With the memtable kind [`MemtableKind::Vector`](crate::MemtableKind::Vector),
    /// each pop sorts a copy of a memtable: do not use that kind for a queue.
    ///
    /// # Errors
    /// The errors of [`Keyspace::first`] and [`Db::write`](crate::Db::write).
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let queue = mini_engine::Db::open(dir.path())?;
    /// queue.insert("1", "first")?;
    /// queue.insert("2", "second")?;
    /// assert_eq!(queue.pop_first()?.unwrap().1.as_ref(), b"first");
    /// assert_eq!(queue.first()?, queue.last()?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn pop_first(&self) -> Result<Option<(Slice, Slice)>> {
        // An insertion of an entry before this one is a conflict, and so is another pop of this one. `core/dead_ranges.rs` skips the tombstones that
        // earlier pops left.
        update(self.core(), &self.keyspace, ConflictCheck::InRecord, |entries| entries.pop_first())
    }

    /// Removes the entry with the largest key, and returns it. Otherwise like [`Keyspace::pop_first`].
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        update(self.core(), &self.keyspace, ConflictCheck::InRecord, |entries| entries.pop_last())
    }

    /// Writes `entries`, which must be in ascending order of distinct keys, directly into tables, on the lowest level where no table overlaps their
    /// key range. Each entry is written once, without the log and the memtable, so this is the way to load large amounts of sorted data. When this
    /// returns, all entries are visible at once and durable. After an error, or a crash before that, none of them is present, unless the call was
    /// about to return. Returns the last sequence number.
    ///
    /// Flushes the memtables first. Other writers wait until the ingest is done, so `entries` must not write to this database itself; readers
    /// continue. Takes memory for a block, and for the index and filter of each table that it writes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that is not after the one before it, or a key or value past its limit; then nothing is stored. The errors
    /// of [`Db::flush`](crate::Db::flush); [`Error::Io`]; [`Error::Full`] when sequence numbers are used up; [`Error::Closed`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// db.ingest((0..1000u32).map(|n| (n.to_be_bytes(), "value")))?;
    /// assert_eq!(db.iter().count(), 1000);
    /// # Ok(())
    /// # }
    /// ```
    pub fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(&self, entries: impl IntoIterator<Item = (K, V)>) -> Result<SeqNo> {
        self.try_ingest(entries.into_iter().map(Ok::<_, Error>))
    }

    /// Like [`Keyspace::ingest`], from a source that can fail. The first error of `entries` is returned, and then nothing is stored.
    ///
    /// # Errors
    /// The errors of `entries`, and of [`Keyspace::ingest`].
    pub fn try_ingest<K: AsRef<[u8]>, V: AsRef<[u8]>, E: From<Error>>(
        &self,
        entries: impl IntoIterator<Item = Result<(K, V), E>>,
    ) -> Result<SeqNo, E> {
        let mut failure = None;
        let entries = entries.into_iter().map(|entry| {
            entry.map_err(|error| {
                failure = Some(error);
                Error::InvalidArgument("the source of the entries has failed".into())
            })
        });
        let loaded = ingest(self.core(), &self.keyspace, entries);
        match failure {
            Some(error) => Err(error),
            None => loaded.map_err(E::from),
        }
    }

    /// All present entries in key order, readable from both ends. The iterator yields errors.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// for (key, value) in [("b", "2"), ("a", "1")] {
    ///     db.insert(key, value)?;
    /// }
    /// for entry in db.iter() {
    ///     let (key, value) = entry?;
    ///     println!("{} is {}", key.escape_ascii(), value.escape_ascii());
    /// }
    /// assert_eq!(db.iter().rev().count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn iter(&self) -> Iter {
        self.range(..)
    }

    /// The entries whose keys lie in `bounds`. Inverted bounds are empty. The iterator yields errors.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// for n in 0..100_u32 {
    ///     db.insert(n.to_be_bytes(), "")?;
    /// }
    /// let (from, to) = (10_u32.to_be_bytes(), 20_u32.to_be_bytes());
    /// assert_eq!(db.range(from..to).count(), 10);
    /// // The next page of a list: what comes behind the last key of this page.
    /// use std::ops::Bound::{Excluded, Unbounded};
    /// let next = db.range((Excluded(from), Unbounded)).take(5);
    /// assert_eq!(next.last().transpose()?.map(|(key, _)| key.to_vec()), Some(15_u32.to_be_bytes().to_vec()));
    /// # Ok(())
    /// # }
    /// ```
    pub fn range(&self, bounds: impl KeyBounds) -> Iter {
        Iter::new(self.scan(), self.keyspace.prefix, self.keyspace.prefix.bounds(&bounds))
    }

    /// The entries whose keys start with `prefix`. The iterator yields errors.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// for key in ["user/1/name", "user/1/mail", "user/10/name"] {
    ///     db.insert(key, "")?;
    /// }
    /// assert_eq!(db.prefix("user/1/").count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.range(prefix_bounds(prefix.as_ref()))
    }

    /// A cursor over all present entries.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// for key in ["a", "c", "e"] {
    ///     db.insert(key, "")?;
    /// }
    /// let mut cursor = db.cursor();
    /// cursor.seek("b")?;
    /// assert_eq!(cursor.key(), b"c");
    /// cursor.retreat()?;
    /// assert!(cursor.valid() && cursor.key() == b"a");
    /// # Ok(())
    /// # }
    /// ```
    pub fn cursor(&self) -> Cursor {
        Cursor::new(self.scan(), self.keyspace.prefix, self.keyspace.prefix.bounds(&..))
    }

    /// The database at this moment, for as long as the snapshot is kept. O(1). The snapshot reads this keyspace, and [`Snapshot::keyspace`] another
    /// one at the same moment. The snapshot of a closed handle returns [`Error::Closed`] from every read.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("balance", "100")?;
    /// let before = db.snapshot();
    /// db.insert("balance", "70")?;
    /// assert_eq!(before.get("balance")?.as_deref(), Some(&b"100"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::now(self.core(), self.keyspace.clone())
    }

    /// Compacts all entries within `bounds` that were written before the call into one run: overwritten values and removed keys then take no space,
    /// except those that snapshots see. Flushes first, and runs on the caller's thread, concurrently with the other compactions, which then continue
    /// by the policy. Reads and writes continue. O(bytes of the tables that overlap the bounds). Compacts only a part of the tables at a time, so it
    /// needs little additional space.
    ///
    /// # Errors
    /// The errors of [`Db::flush`](crate::Db::flush); [`Error::Io`] and [`Error::Corruption`] of an input table. After an error the completed parts
    /// stay, and nothing is lost.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("a", "1")?;
    /// db.remove("a")?;
    /// db.compact_range("a"..="b")?;
    /// db.compact_range(..)?;
    /// assert!(db.metrics().levels.iter().all(|level| level.bytes == 0));
    /// # Ok(())
    /// # }
    /// ```
    pub fn compact_range(&self, bounds: impl KeyBounds) -> Result<()> {
        self.keyspace.check()?;
        compact_range(self.core(), self.keyspace.prefix.bounds(&bounds))
    }

    /// The approximate size of the keyspace in tables; entries that are only in memtables do not count, and overwritten entries do. O(tables), plus a
    /// read of one or two blocks in each table that the keyspace shares with others.
    ///
    /// # Errors
    /// [`Error::NoKeyspace`]; [`Error::Closed`]. A table that cannot be read counts with its full size.
    pub fn approximate_size(&self) -> Result<KeyspaceSize> {
        approximate_size(self.core(), &self.keyspace)
    }

    fn write(&self, batch: &WriteBatch) -> Result<()> {
        write(self.core(), batch, self.durability(), WriteMode::Wait).map(drop)
    }

    /// Reads `key` at the present moment.
    #[inline(always)]
    fn read_key<T>(&self, key: &[u8], read: impl Fn(PointRead<'_>, &[u8]) -> Result<T>) -> Result<T> {
        match self.keyspace.prefix.is_plain(key) {
            // Only the default keyspace has such keys, and it is never dropped.
            true => read_now(self.core(), None, |of| read(of, key)),
            false => self.read_prefixed(key, read),
        }
    }

    #[inline(never)]
    fn read_prefixed<T>(&self, key: &[u8], read: impl Fn(PointRead<'_>, &[u8]) -> Result<T>) -> Result<T> {
        self.keyspace.prefix.with_stored(key, |key| self.read(|of| read(of, key)))
    }

    fn read<T>(&self, read: impl FnOnce(PointRead<'_>) -> Result<T>) -> Result<T> {
        read_now(self.core(), Some(&self.keyspace), read)
    }

    fn scan(&self) -> Result<Arc<Scan>> {
        Scan::now(self.core(), &self.keyspace)
    }

    fn durability(&self) -> Durability {
        self.core().store.options.durability
    }

    pub(super) fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }
}

impl Snapshot {
    /// The snapshot of the same moment in another keyspace of the same database. If the snapshot is older than the keyspace, it shows none of its
    /// keys.
    ///
    /// # Errors
    /// None here; reads return [`Error::NoKeyspace`] if the keyspace was dropped, and [`Error::InvalidArgument`] if it belongs to another database.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.insert("7", "Ada")?;
    /// let snapshot = db.snapshot();
    /// users.remove("7")?;
    /// assert!(snapshot.keyspace(&users).contains_key("7")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace(&self, keyspace: &Keyspace) -> Snapshot {
        self.of_keyspace(keyspace.core(), &keyspace.keyspace)
    }
}

impl Transaction {
    /// Returns the view of this transaction in `keyspace`, for reads and writes there. The commit, and every read, returns [`Error::NoKeyspace`] if
    /// the keyspace was dropped by then, and [`Error::InvalidArgument`] if it belongs to another database.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let (users, emails) = (db.keyspace("users")?, db.keyspace("emails")?);
    /// let is_new = db.transact(|tx| -> mini_engine::Result<bool> {
    ///     if tx.keyspace(&emails).contains_key("ada@example.org")? {
    ///         return Ok(false);
    ///     }
    ///     tx.keyspace(&users).insert("7", "Ada")?;
    ///     tx.keyspace(&emails).insert("ada@example.org", "7")?;
    ///     Ok(true)
    /// })?;
    /// assert!(is_new && users.contains_key("7")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace(&self, keyspace: &Keyspace) -> KeyspaceTransaction<'_> {
        self.of_keyspace(&keyspace.keyspace)
    }
}
