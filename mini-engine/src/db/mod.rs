//! The database handle, [`Db`].
//!
//! The folders, lowest first: `core` is shared by all others; `write` and `read` are the two journeys, and `conditional` does both; `background`
//! has the threads; `recovery` opens a database; `admin` has the operations on a whole database.
//!
//! [`Db`] is a cheap clone of one [`Handle`]. Workers, snapshots and iterators hold the [`Core`] and never a handle, so dropping the
//! last handle is noticed: it stops and joins the workers. The lock on the directory belongs to the core. It is held until the last
//! snapshot and iterator are gone too (rule 13).

mod admin;
mod background;
mod builder;
mod conditional;
mod core;
mod read;
mod recovery;
mod write;

use std::borrow::Borrow;
use std::path::Path;
use std::sync::{Arc, Mutex};

use self::background::{Workers, flush_all, settle_level_0, wait_flushed, wait_idle};
use self::conditional::{compare_and_swap, entry_at, pop};
use self::core::{Core, Edge, Phase, remove_spare};
use self::read::{Pinned, Registered, read_now};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::types::{CompareAndSwapError, Durability, KeyBounds, SeqNo, Slice, WriteBatch, owned, prefix_bounds};

pub use self::admin::{
    AsideFile, LeftOut, LostWrites, Salvage, SalvageReport, SalvagedEntries, VerifyReport, incomplete_directory,
};
pub use self::builder::Builder;
pub use self::read::{Cursor, Iter, QuarantinedTable, Snapshot};
pub use self::recovery::{RecoveryReport, TornTail};

/// An open database. A cheap handle: clone it freely, use it from any number of threads.
///
/// When the last handle is dropped the workers end; unflushed writes stay in the logs, where the next open finds them.
/// [`Db::close`] flushes and reports errors, which a drop cannot.
///
/// After a failure to write or sync, every write returns [`Error::ReadOnly`] and reads continue; reopen the database to see which writes are
/// durable. With [`Builder::read_only`] every write is [`Error::ReadOnly`] from the start.
///
/// A handle works in the process that opened it. In a fork of that process every write, flush and close is [`Error::ReadOnly`], because both
/// processes would write to the same log; a drop does nothing. As after every fork of a process with threads, a lock that another thread held at
/// that moment stays held for ever in the fork. So the fork should only `exec` another program, or open a different database. The lock on the
/// directory lasts until both processes have ended or closed their files.
///
/// ```
/// # fn main() -> mini_engine::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path();
/// use mini_engine::{Db, Durability, WriteBatch};
///
/// let db = Db::open(path)?;
/// db.insert("apple", "red")?;
/// let mut batch = WriteBatch::new();
/// batch.insert("banana", "yellow")?;
/// batch.remove("apple")?;
/// db.write(batch, Durability::Synced)?;
/// assert_eq!(db.get("apple")?, None);
/// assert_eq!(db.get("banana")?.as_deref(), Some(&b"yellow"[..]));
/// db.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Db {
    handle: Arc<Handle>,
}

/// The part that all clones of a handle share. It is dropped with the last clone.
#[derive(Debug)]
struct Handle {
    core: Arc<Core>,
    workers: Mutex<Option<Workers>>,
    report: RecoveryReport,
}

impl Handle {
    /// Ends the workers: a running flush or compaction is given up, and its partial output is removed. Its inputs, including the logs, stay in
    /// place. The log and the file that were prepared for the next log are removed.
    fn stop(&self) {
        if self.core.is_forked() {
            // The workers and the files belong to the other process.
            return;
        }
        self.core.enter(Phase::Stopped);
        // Taken out first, so that the lock is not held while joining.
        let workers = lock(&self.workers).take();
        if let Some(workers) = workers {
            workers.join();
        }
        remove_spare(&self.core);
        self.core.store.tables.close_all();
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Db {
    /// The newest value of `key`: O(log n) in memtables, plus at most one block read in each table that its key range and filter do not rule out. A
    /// value from a table is a view of its cached block.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of a table that may hold the key: never an older value instead;
    /// [`Error::Closed`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        read_now(self.core(), |point| point.get(key.as_ref()))
    }

    /// The values of `keys`, in their order, all as of one moment.
    ///
    /// Cheaper than separate reads: keys are sorted and searched for together, so that their cache misses overlap and a block that holds several of
    /// them is read once. O(n log n) for the sort, besides the reads.
    ///
    /// # Errors
    /// The same as for [`Db::get`], if any key has one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        // The caller's iterator may write, so it is read to its end before the moment of the answers is chosen.
        let keys: Vec<K> = keys.into_iter().collect();
        read_now(self.core(), |point| point.get_many(&keys))
    }

    /// Like [`Db::get_many`], until the values found have `soft_limit` bytes together: so at most that many bytes of values, plus one value, are in
    /// memory at once. RocksDB's `MultiGet` has `value_size_soft_limit` for that.
    ///
    /// The answer for a key is `Some(result)`, with the result of [`Db::get`], or `None` if the search ended before it was known. The keys that
    /// have an answer need not be the first ones: newer data is searched before older data, and each in the order of the keys. At least one key has
    /// an answer.
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
    /// The same as for [`Db::get`], if any key that was looked for has one.
    pub fn get_many_up_to<K: AsRef<[u8]>>(
        &self,
        soft_limit: usize,
        keys: impl IntoIterator<Item = K>,
    ) -> Result<Vec<Option<Option<Slice>>>> {
        let keys: Vec<K> = keys.into_iter().collect();
        read_now(self.core(), |point| point.get_many_up_to(Some(soft_limit), &keys))
    }

    /// Whether `key` has a value, which is not copied. Errors as of [`Db::get`].
    pub fn contains_key(&self, key: impl AsRef<[u8]>) -> Result<bool> {
        read_now(self.core(), |point| point.contains(key.as_ref()))
    }

    /// Sets `key` to `value`, with the durability of the options. See [`Db::write`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key or value past its limit, and those of [`Db::write`].
    pub fn insert(&self, key: impl AsRef<[u8]>, value: impl AsRef<[u8]>) -> Result<()> {
        let core = self.core();
        write::write_one(core, key.as_ref(), Some(value.as_ref()), core.store.options.durability)
    }

    /// Removes `key`, whether or not it has a value, with the durability of the options. See [`Db::write`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key past its limit, and those of [`Db::write`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let core = self.core();
        write::write_one(core, key.as_ref(), None, core.store.options.durability)
    }

    /// Removes all keys within `bounds`, whether or not there are any, with the durability of the options. See [`Db::write`].
    ///
    /// It is one operation, and O(1) however many keys there are: reads pass over the covered entries, and compactions remove them later. Until
    /// then scans of the range are slower than those of an empty range. Inverted bounds remove nothing.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a bound that is a key past its limit, and those of [`Db::write`].
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
        batch.remove_range(bounds)?;
        self.write(batch, self.core().store.options.durability).map(drop)
    }

    /// Removes all keys that begin with `prefix`: as [`Db::remove_range`].
    pub fn remove_prefix(&self, prefix: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.remove_prefix(prefix)?;
        self.write(batch, self.core().store.options.durability).map(drop)
    }

    /// Applies all operations of `batch`, or none, across crashes too; returns the sequence number of the last one. The batch is visible to every
    /// read that begins after this returns. With [`Durability::Buffered`] it then survives a killed process; with [`Durability::Synced`] it also
    /// survives a power cut, with everything written before it. Other threads may see it before it is synced.
    ///
    /// Waits while frozen memtables cannot be flushed fast enough, while compactions must first take tables off level 0, for the end of a
    /// [`Db::ingest`], and for the next log. If the awaited operation fails, the wait ends with its error.
    ///
    /// # Errors
    /// [`Error::Stalled`] if level 0 is full and cannot be compacted: nothing was written, and writes succeed again once it can be. [`Error::Io`]
    /// for lack of space or of file handles, in the log, or in the flush or the compaction that this would have to wait for, unless
    /// [`Options::wait_for_space`](crate::Options::wait_for_space) is set: nothing was written, and the failed operation is tried again at least
    /// every second, so writes succeed again once there is space. Any other [`Error::Io`] of the log: whether the batch survives is unknown until a
    /// reopen, and every later write is [`Error::ReadOnly`]. [`Error::Full`] if the batch does not fit into memory; [`Error::Closed`].
    ///
    /// A batch that is passed by reference can be [cleared](WriteBatch::clear) and used again.
    pub fn write(&self, batch: impl Borrow<WriteBatch>, durability: Durability) -> Result<SeqNo> {
        write::write(self.core(), batch.borrow(), durability)
    }

    /// Like [`Db::write`], for a thread that must not wait for others, such as that of an event loop: `None` if the write would have to wait. Then
    /// nothing was written, and [`Db::wait_for_room`] waits, on another thread, until it can be tried again. RocksDB has `no_slowdown` for that.
    ///
    /// With [`Durability::Synced`] it still waits for the sync, but for nothing else. A log that cannot grow because the disk is full is cut and
    /// synced, once.
    ///
    /// # Errors
    /// The same as for [`Db::write`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// use mini_engine::{Durability, WriteBatch};
    ///
    /// let mut batch = WriteBatch::new();
    /// batch.insert("a", "1")?;
    /// while db.try_write(&batch, Durability::Buffered)?.is_none() {
    ///     db.wait_for_room(&batch)?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn try_write(&self, batch: impl Borrow<WriteBatch>, durability: Durability) -> Result<Option<SeqNo>> {
        write::try_write(self.core(), batch.borrow(), durability)
    }

    /// Waits as a write of `batch` would, and writes nothing. Other writes may take the room before [`Db::try_write`] does.
    ///
    /// # Errors
    /// The same as for [`Db::write`].
    pub fn wait_for_room(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        write::wait_for_room(self.core(), batch.borrow())
    }

    /// Sets `key` to `new` if its value is `expected`, atomically with respect to all other writes and reads; `None` means no value. The durability
    /// is that of the options. Otherwise nothing is written, and the inner error holds the present value of the key.
    ///
    /// Costs two reads and a write. It waits for the writes that have begun. Other writes wait for the second read, whose blocks the first read has
    /// brought into the cache.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key or value past its limit, and those of [`Db::get`] and [`Db::write`].
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
        compare_and_swap(self.core(), key.as_ref(), expected, new)
    }

    /// The entry with the smallest key. O(sources * log n), plus the tombstones before it, which the next compaction drops.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of the tables asked; [`Error::Closed`].
    pub fn first(&self) -> Result<Option<(Slice, Slice)>> {
        entry_at(self.core(), Edge::First)
    }

    /// The entry with the largest key. As [`Db::first`].
    pub fn last(&self) -> Result<Option<(Slice, Slice)>> {
        entry_at(self.core(), Edge::Last)
    }

    /// Removes the entry with the smallest key, and returns it: no two callers get the same one. The durability is that of the options.
    ///
    /// Costs two reads and a write, as [`Db::compare_and_swap`] does. Each popped entry leaves a tombstone until a flush and a compaction drop it.
    /// The next pop begins behind it, so a queue stays quick. The first pop after an open, or after a [`Db::ingest`], passes over all tombstones at
    /// its end, twice; [`Db::compact_range`] drops them. Each pop sorts a copy of a memtable of the kind
    /// [`MemtableKind::Vector`](crate::MemtableKind::Vector): do not use that kind for a queue.
    ///
    /// # Errors
    /// Those of [`Db::first`] and [`Db::write`].
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
        pop(self.core(), Edge::First)
    }

    /// Removes the entry with the largest key, and returns it. As [`Db::pop_first`].
    pub fn pop_last(&self) -> Result<Option<(Slice, Slice)>> {
        pop(self.core(), Edge::Last)
    }

    /// Writes `entries`, which must be in ascending order of distinct keys, directly into tables, on the lowest level where the key range is free.
    /// Each entry is written once, bypassing the log and the memtable, so this is the way to load much sorted data. When this returns, the whole
    /// load is visible at once and durable. After an error or a crash before that, none of it is there, unless the call was about to return.
    /// Returns the last sequence number.
    ///
    /// Flushes the memtables first. Other writers wait until it is done, so `entries` must not write to this database itself; readers continue.
    /// Memory: a block, and the index and filter of each table that it makes.
    ///
    /// # Errors [`Error::InvalidArgument`] for a key that is not after the one before it, or a key or value past its limit; nothing is stored then.
    /// The errors of [`Db::flush`]; [`Error::Io`]; [`Error::Full`] when sequence numbers are used up; [`Error::Closed`].
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
        admin::ingest(self.core(), entries)
    }

    /// Gives everything written so far the requested durability. Every write already has [`Durability::Buffered`].
    ///
    /// # Errors
    /// [`Error::Io`] if a log cannot be synced, then [`Error::ReadOnly`] from every later write; [`Error::Closed`].
    pub fn persist(&self, durability: Durability) -> Result<()> {
        write::persist(self.core(), durability)
    }

    /// The database as it is now, for as long as the snapshot is kept. O(1). The snapshot of a closed handle returns [`Error::Closed`] from every
    /// read.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot::new(Registered::now(self.core()), self.core().visible())
    }

    /// All entries in key order, from both ends, as they are now. Errors are yielded.
    pub fn iter(&self) -> Iter {
        Iter::new(Pinned::now(self.core()), owned(&..))
    }

    /// The entries whose keys lie in `bounds`. Inverted bounds are empty. Errors are yielded.
    pub fn range(&self, bounds: impl KeyBounds) -> Iter {
        Iter::new(Pinned::now(self.core()), owned(&bounds))
    }

    /// The entries whose keys start with `prefix`. Errors are yielded.
    pub fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        Iter::new(Pinned::now(self.core()), prefix_bounds(prefix.as_ref()))
    }

    /// A cursor over all entries as they are now.
    pub fn cursor(&self) -> Cursor {
        Cursor::new(Pinned::now(self.core()), owned(&..))
    }

    /// Writes all memtables to tables, and waits until that is durable. Waits for room on level 0 as writers do.
    ///
    /// # Errors
    /// [`Error::Io`] if there was no space, for the flush or for the compaction that it waited for: both are tried again, and no write is lost.
    /// [`Error::Stalled`] if level 0 is full and cannot be compacted; [`Error::ReadOnly`]
    /// after any other failure; [`Error::Closed`].
    pub fn flush(&self) -> Result<()> {
        flush_all(self.core())
    }

    /// The tables that were found damaged or missing in [`RecoveryMode::Quarantine`](crate::RecoveryMode::Quarantine), in
    /// this open or an earlier one, and that were not dropped since. Reads of their keys are [`Error::Corruption`].
    pub fn quarantined(&self) -> Vec<QuarantinedTable> {
        admin::quarantined(self.core())
    }

    /// Gives up the quarantined table `number` for good. From then on, reads in its key range show the contents of other tables, so older values of
    /// its keys, and keys that it had removed, may return. Returns the dropped table with its number of entries, which [`Db::quarantined`] shows
    /// before. [`Builder::salvage`] still reads all sound blocks of the table's file, which stays in its place. Durable on return. Earlier
    /// snapshots and iterators continue to fail.
    ///
    /// As long as the file exists, compactions keep the tombstones in its key range, so that salvage brings no removed key back. Once the file is
    /// removed, the next open forgets the table.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no such table is quarantined; [`Error::Io`] if the manifest cannot be written, and [`Error::ReadOnly`] for
    /// every later write; [`Error::Closed`].
    pub fn drop_quarantined(&self, number: u64) -> Result<QuarantinedTable> {
        admin::drop_quarantined(self.core(), number)
    }

    /// The files that opens have set aside because they could not use them: torn ends of logs, logs after these, damaged tables. You may remove
    /// them, quarantined tables once they are dropped: only salvage reads them.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Closed`].
    pub fn set_aside(&self) -> Result<Vec<AsideFile>> {
        admin::set_aside(self.core())
    }

    /// Makes `dir`, which must not exist, a separate database with the present contents of this one: every write acknowledged before the call, and
    /// perhaps some concurrent ones, each with all earlier writes. Reads and writes continue. Its tables are hard links to this one's files where
    /// the file system allows, and copies elsewhere; it is durable when this returns. O(tables) and a flush, if nothing has to be copied.
    ///
    /// It is written [under another name](incomplete_directory), and gets its own name only when it is complete. An error leaves nothing. A crash
    /// may leave the other name, which the next checkpoint to `dir` removes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if something has that name already; the errors of [`Db::flush`]; [`Error::Io`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path().join("db"))?;
    /// db.insert("a", "1")?;
    /// db.checkpoint(dir.path().join("copy"))?;
    /// db.remove("a")?;
    /// let copy = mini_engine::Db::open(dir.path().join("copy"))?;
    /// assert!(copy.contains_key("a")? && !db.contains_key("a")?);
    /// # Ok(())
    /// # }
    /// ```
    pub fn checkpoint(&self, dir: impl AsRef<Path>) -> Result<()> {
        let dir = dir.as_ref();
        admin::checkpoint(self.core(), &std::path::absolute(dir).map_err(Error::io("find", dir))?)
    }

    /// Compacts everything that was written to keys within `bounds` before the call into one run: overwritten values and removed keys then take no
    /// space, except those that snapshots see. Flushes first, and runs on the caller's thread, beside the other compactions, which then continue by
    /// the policy. Reads and writes continue. O(bytes in the bounds and of the tables that they share). Only a part of the tables is compacted at a
    /// time, so little additional space is needed.
    ///
    /// # Errors
    /// The errors of [`Db::flush`]; [`Error::Io`] and [`Error::Corruption`] of an input table. Completed parts stay, and nothing is lost.
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
        admin::compact_range(self.core(), owned(&bounds))
    }

    /// Waits until no compaction is due and none is under way: until the tables satisfy the policy. Other writes continue; while there are many,
    /// this may take long.
    ///
    /// # Errors
    /// The error of a compaction that failed, though it will be tried again; [`Error::ReadOnly`] after a failure to write or sync;
    /// [`Error::Closed`].
    pub fn wait_for_compactions(&self) -> Result<()> {
        wait_idle(self.core())
    }

    /// Reads and checks every block of every table, and the manifest unless the database was opened read-only, and checks that they agree with each
    /// other. Takes time in proportion to the database and leaves the cache alone.
    ///
    /// # Errors
    /// [`Error::Closed`]. Damage to the files is in the report: [`VerifyReport::into_result`] makes it an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        admin::verify(self.core())
    }

    /// Flushes everything to tables, syncs it, and ends the workers; a read-only handle has nothing to do. Every other handle gets
    /// [`Error::Closed`] from then on; snapshots and iterators continue to read and keep the directory locked. Due and running compactions are left
    /// to the next open, except that small tables of level 0 are compacted with each other.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] with the first failure, now or earlier; a reopen shows what is durable. Otherwise the errors of [`Db::flush`]: then the
    /// writes that could not be flushed are in the logs, which were synced, and nothing is lost. The workers have ended in either case.
    /// [`Error::Closed`] if another handle was closed before.
    pub fn close(self) -> Result<()> {
        let core = self.core();
        if core.is_forked() {
            return core.check_usable();
        }
        if core.enter(Phase::Closing) != Phase::Open {
            return Err(Error::Closed);
        }
        if core.store.options.read_only {
            self.handle.stop();
            return Ok(());
        }
        let frozen = write::freeze_active(core, |core, _| core.check_usable());
        let flushed = frozen.and_then(|log| wait_flushed(core, log));
        match &flushed {
            Ok(()) => settle_level_0(core),
            Err(_) => {
                if let Err(error) = write::sync_logs(core) {
                    tracing::warn!(%error, "closed without syncing the logs");
                }
            }
        }
        self.handle.stop();
        // A worker may have failed after the flush was done, or the sync of the logs.
        core.check_usable().and(flushed)
    }

    /// The report of what opening the database replayed, dropped and set aside.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.handle.report
    }

    /// The number of writers that wait for the write lock now.
    pub fn waiting_writers(&self) -> usize {
        self.core().waiting_writers()
    }

    /// The counters since the database was opened, and the present size of its levels.
    pub fn metrics(&self) -> Metrics {
        admin::metrics(self.core())
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }
}
