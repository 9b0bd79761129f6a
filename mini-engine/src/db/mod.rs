//! The database handle, [`Db`].
//!
//! The folders, lowest first: `core` is what everything shares; `write` and `read` are the two journeys, `conditional` goes both; `background` has the
//! threads; `recovery` opens a database; `admin` is what an owner does to a whole database.
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
/// When the last handle is dropped the workers end; what was written stays in the logs, where the next open finds it.
/// [`Db::close`] flushes and reports errors, which a drop cannot.
///
/// After a failure to write or sync, every write returns [`Error::ReadOnly`] and reads go on; open the database again
/// to learn what is durable. With [`Builder::read_only`] every write is [`Error::ReadOnly`] from the start.
///
/// A handle works in the process that opened it. In a fork of that process every write, flush and close is [`Error::ReadOnly`], since
/// both processes would write to the same log; a drop does nothing. As after every fork of a process with threads, a lock that another
/// thread held at that moment stays held for ever in the fork, so it should do no more than `exec` another program, or open a database of
/// its own. The lock on the directory lasts until both processes have ended or closed their files.
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

/// What all clones of a handle share; its drop is the end of the last one.
#[derive(Debug)]
struct Handle {
    core: Arc<Core>,
    workers: Mutex<Option<Workers>>,
    report: RecoveryReport,
}

impl Handle {
    /// Ends the workers: a running flush or compaction is given up, its partial output removed. Its inputs, the logs among
    /// them, are where they were. What was made or kept for the next log goes.
    fn stop(&self) {
        if self.core.is_forked() {
            // The workers are threads of the other process, and so are the files its own.
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
    /// The newest value of `key`: O(log n) in memtables, and at most one block read in each table that its key range
    /// and filter do not rule out. A value from a table is a view of its cached block.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::Corruption`] of a table that may hold the key: never an older value instead;
    /// [`Error::Closed`].
    pub fn get(&self, key: impl AsRef<[u8]>) -> Result<Option<Slice>> {
        read_now(self.core(), |point| point.get(key.as_ref()))
    }

    /// The values of `keys`, in their order, all as of one moment.
    ///
    /// Cheaper than one after the other: keys are sorted and looked for together, so that their cache misses overlap
    /// and a block that holds several of them is read once. O(n log n) for the sort beside the reads.
    ///
    /// # Errors
    /// As of [`Db::get`], if any key has one.
    pub fn get_many<K: AsRef<[u8]>>(&self, keys: impl IntoIterator<Item = K>) -> Result<Vec<Option<Slice>>> {
        // The caller's iterator ends before the moment is chosen that the answers are of: it may write.
        let keys: Vec<K> = keys.into_iter().collect();
        read_now(self.core(), |point| point.get_many(&keys))
    }

    /// As [`Db::get_many`], until the values that were found have `soft_limit` bytes together: so no more bytes of values than that, and
    /// one value, are in memory at once. RocksDB's `MultiGet` has `value_size_soft_limit` for that.
    ///
    /// The answer of a key is `Some(value)` as of [`Db::get`], or `None` if the search ended before it was known. The keys that have an
    /// answer need not be the first ones: newer data is searched before older, and in either in the order of the keys. At least one key
    /// has an answer.
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
    /// As of [`Db::get`], if any key that was looked for has one.
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
        let mut batch = WriteBatch::new();
        batch.insert(key, value)?;
        self.write(batch, self.core().store.options.durability).map(drop)
    }

    /// Removes `key`, whether or not it has a value, with the durability of the options. See [`Db::write`].
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key past its limit, and those of [`Db::write`].
    pub fn remove(&self, key: impl AsRef<[u8]>) -> Result<()> {
        let mut batch = WriteBatch::new();
        batch.remove(key)?;
        self.write(batch, self.core().store.options.durability).map(drop)
    }

    /// Removes all keys within `bounds`, whether or not there are any, with the durability of the options. See [`Db::write`].
    ///
    /// It is one operation, and O(1) however many keys there are: reads pass over what it covers, and compactions take it away later.
    /// Until then scans of the range are slower than where nothing was. Inverted bounds remove nothing.
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

    /// Applies all operations of `batch`, or none, across crashes too; returns the sequence number of the last one. It
    /// is visible to every read that begins after this returns. With [`Durability::Buffered`] it survives a killed
    /// process then; with [`Durability::Synced`] a power cut, with everything written before it. Others may see it
    /// before it is synced.
    ///
    /// Waits while frozen memtables cannot be flushed fast enough, and while compactions have yet to take tables off level 0; for the end
    /// of a [`Db::ingest`]; and for the next log. Each of these waits ends with an error when what is waited for fails.
    ///
    /// # Errors
    /// [`Error::Stalled`] if level 0 is full and cannot be compacted: nothing was written, and writes go on once it can be.
    /// [`Error::Io`] for want of space or of file handles, of the log, or of the flush or the compaction that this would have to wait for,
    /// unless [`Options::wait_for_space`](crate::Options::wait_for_space) is set: nothing was written, and writes go on once there is
    /// some: what failed is tried again each second at least. Any other [`Error::Io`] of the log: whether the batch survives is then unknown until a reopen, and every later write is
    /// [`Error::ReadOnly`]. [`Error::Full`] if the batch does not fit into memory;
    /// [`Error::Closed`].
    ///
    /// By reference a batch can be [cleared](WriteBatch::clear) and used again.
    pub fn write(&self, batch: impl Borrow<WriteBatch>, durability: Durability) -> Result<SeqNo> {
        write::write(self.core(), batch.borrow(), durability)
    }

    /// As [`Db::write`], for a thread that must not wait for others, as that of an event loop: `None` if the write would have to. Then
    /// nothing was written, and [`Db::wait_for_room`] waits, on another thread, until it can be tried again. RocksDB has `no_slowdown`
    /// for that.
    ///
    /// With [`Durability::Synced`] it waits for the sync nevertheless, and nothing else. A log that cannot grow since the disk is full
    /// is cut, and synced, once.
    ///
    /// # Errors
    /// As of [`Db::write`].
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

    /// Waits as a write of `batch` would, and writes nothing. Others may take the room before [`Db::try_write`] does.
    ///
    /// # Errors
    /// As of [`Db::write`].
    pub fn wait_for_room(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        write::wait_for_room(self.core(), batch.borrow())
    }

    /// Sets `key` to `new` if its value is `expected`, in one step for all other writes and reads; `None` stands for no value. The
    /// durability is that of the options. Otherwise nothing is written, and the inner error holds the value that the key has.
    ///
    /// Costs two reads and a write. It waits for the writes that have begun. Other writes wait for the second read, for which the first
    /// one has brought the blocks into the cache.
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

    /// The entry with the smallest key. O(sources * log n), and what was removed before it since the last compaction is passed over.
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
    /// Costs two reads and a write, as [`Db::compare_and_swap`] does. Each entry that is popped leaves a tombstone, until a flush and a
    /// compaction drop it. The next pop begins behind it, so a queue stays quick. The first pop after an open, or after a [`Db::ingest`],
    /// passes over all tombstones at its end, twice; [`Db::compact_range`] drops them. Each pop sorts a copy of a memtable of the kind
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

    /// Writes `entries`, whose keys ascend and are each there once, straight into tables, as low as nothing overlaps them:
    /// into the lowest level where the range is free. Each entry is written once, past log and memtable, so this is the way
    /// to load much sorted data. All of it becomes visible at once, and is durable, when this returns; on an error or a
    /// crash before that there is none of it, unless the call was about to return. Returns the last sequence number.
    ///
    /// Flushes what is in memory first. Other writers wait until it is done, so `entries` must not write to this database
    /// itself; readers go on. Memory: a block, and index and filter of each table that it makes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for a key that is not after the one before it, or a key or value past its limit;
    /// nothing is stored then. What [`Db::flush`] fails with; [`Error::Io`]; [`Error::Full`] when sequence numbers are used
    /// up; [`Error::Closed`].
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

    /// Makes everything written so far as durable as asked. [`Durability::Buffered`] is what every write is anyway.
    ///
    /// # Errors
    /// [`Error::Io`] if a log cannot be synced, [`Error::ReadOnly`] ever after; [`Error::Closed`].
    pub fn persist(&self, durability: Durability) -> Result<()> {
        write::persist(self.core(), durability)
    }

    /// The database as it is now, for as long as the snapshot is kept. O(1). From a closed handle: a snapshot whose every
    /// read returns [`Error::Closed`].
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

    /// Writes all that is in memory to tables, and waits for it. It is durable then. Waits for room on level 0 as writers do.
    ///
    /// # Errors
    /// [`Error::Io`] if there was no space, for the flush or for the compaction that it waited for: both go on being tried, and nothing
    /// is lost. [`Error::Stalled`] if level 0 is full and cannot be compacted; [`Error::ReadOnly`]
    /// after any other failure; [`Error::Closed`].
    pub fn flush(&self) -> Result<()> {
        flush_all(self.core())
    }

    /// The tables that were found damaged or missing in [`RecoveryMode::Quarantine`](crate::RecoveryMode::Quarantine), in
    /// this open or an earlier one, and that were not dropped since. Reads of their keys are [`Error::Corruption`].
    pub fn quarantined(&self) -> Vec<QuarantinedTable> {
        admin::quarantined(self.core())
    }

    /// Gives up the quarantined table `number` for good: reads in the range of its keys show from then on what other tables
    /// hold, so older values of its keys, and keys that it had removed, may be back. Returns what was given up, with its number of
    /// entries, which [`Db::quarantined`] tells before. [`Builder::salvage`] reads more: all that is sound in the table's file, which
    /// stays where it was put aside, now and later. Durable on return. Snapshots and iterators of before go on failing.
    ///
    /// As long as the file is there, compactions keep the tombstones in its range of keys, so that salvage brings no removed key back.
    /// Once the file was removed, the next open forgets the table.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no such table is quarantined; [`Error::Io`] if the manifest cannot be written,
    /// [`Error::ReadOnly`] ever after; [`Error::Closed`].
    pub fn drop_quarantined(&self, number: u64) -> Result<QuarantinedTable> {
        admin::drop_quarantined(self.core(), number)
    }

    /// The files that opens have set aside since nothing can use them: torn ends of logs, logs behind them, damaged tables. They may be
    /// removed, of quarantined tables once these are dropped: nothing but salvage reads them.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Closed`].
    pub fn set_aside(&self) -> Result<Vec<AsideFile>> {
        admin::set_aside(self.core())
    }

    /// Makes `dir`, which must not exist, a database of its own that holds what this one holds now: every write
    /// acknowledged before the call, perhaps some of those made meanwhile, and with each all before it. Reads and writes go
    /// on. Its tables are further names of this one's files (hard links) where the file system allows, and copies elsewhere;
    /// it is durable when this returns. O(tables) and a flush, if nothing has to be copied.
    ///
    /// It is written [under another name](incomplete_directory), and has its own only when it is whole. An error leaves nothing. A
    /// crash may leave the other name, which the next checkpoint to `dir` removes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if something has that name already; what [`Db::flush`] fails with; [`Error::Io`].
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

    /// Compacts all that was written to keys within `bounds` before the call into one run: overwritten values and removed keys
    /// take no more space then, but for what snapshots see. Flushes first, and runs on the thread of the caller, beside the
    /// other compactions, which afterwards go on as the policy wants. Reads and writes go on. O(bytes in the bounds and of the
    /// tables that they share); a part of the tables at a time, so that little space is needed beside what is there.
    ///
    /// # Errors
    /// What [`Db::flush`] fails with; [`Error::Io`] and [`Error::Corruption`] of a table that was to be compacted. What was done
    /// before stays, and nothing is lost.
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

    /// Waits until no compaction is due and none is under way: until the tables are as the policy wants them. Writes go on, so
    /// that it may have to wait for long while there are many.
    ///
    /// # Errors
    /// That of a compaction that failed, though it will be tried again; [`Error::ReadOnly`] after a failure to write or sync;
    /// [`Error::Closed`].
    pub fn wait_for_compactions(&self) -> Result<()> {
        wait_idle(self.core())
    }

    /// Reads the manifest, unless the database was opened read-only, and every block of every table, and checks them and what they
    /// say about each other. Takes time in proportion to the database and leaves the cache alone.
    ///
    /// # Errors
    /// [`Error::Closed`]. What is wrong with the files is in the report: [`VerifyReport::into_result`] makes it an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        admin::verify(self.core())
    }

    /// Flushes everything to tables, syncs it, ends the workers; of a read-only handle there is nothing to do. Every other handle
    /// gets [`Error::Closed`] from then on; snapshots and iterators go on reading and keep the directory locked. Compactions that are due
    /// or under way are left to the next open, but for the tables of level 0 that are small: they are compacted with each other.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] with the first failure, now or earlier, after which a reopen tells what is durable. What [`Db::flush`] fails
    /// with otherwise: then what could not be flushed is in the logs, which were synced, and nothing is lost. The workers have ended in
    /// either case. [`Error::Closed`] if another handle was closed before.
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

    /// What opening the database replayed, dropped and set aside.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.handle.report
    }

    /// How many writers wait for the write lock now.
    pub fn waiting_writers(&self) -> usize {
        self.core().waiting_writers()
    }

    /// What the database has done since it was opened, and the size of its levels now.
    pub fn metrics(&self) -> Metrics {
        admin::metrics(self.core())
    }

    fn core(&self) -> &Arc<Core> {
        &self.handle.core
    }
}
