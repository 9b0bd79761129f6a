//! The database handle, [`Db`].
//!
//! The folders, lowest first: `core` is shared by all others; `write` and `read` implement writes and reads; `transaction` uses both; `background`
//! has the threads; `recovery` opens a database; `admin` has the operations on a whole database; `care` checks, shows, copies and salvages its files.
//! `keyspace` has the public reads and writes.
//!
//! [`Db`] and [`Keyspace`] are cheap clones of one [`Handle`]. Workers, snapshots and iterators hold the [`Core`] and never a handle, so the drop of
//! the last handle is noticed: it stops and joins the workers. The lock on the directory belongs to the core. It is held until the last snapshot and
//! iterator are gone too (rule 13).

mod admin;
mod background;
mod builder;
mod care;
mod core;
mod handle;
mod keyspace;
mod read;
mod recovery;
mod transaction;
mod write;

use std::borrow::Borrow;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

use self::background::{flush_all, settle_level_0, wait_flushed, wait_idle};
use self::core::{Core, Phase};
use self::handle::Handle;
use self::transaction::{transact, transact_exclusive};
use self::write::{WriteMode, freeze_active, persist, wait_for_room, write};
use crate::error::{Error, Result};
use crate::lock::lock;
use crate::metrics::Metrics;
use crate::options::KeyspaceOptions;
use crate::types::{Durability, KeyspaceRef, SeqNo, WriteBatch, owned};

pub use self::admin::KeyspaceSize;
pub use self::builder::Builder;
pub use self::care::{
    AsideFile, LeftOut, LostKeys, LostWrites, Salvage, SalvageReport, SalvagedEntries, VerifyReport, dump,
    incomplete_directory,
};
pub use self::keyspace::{Keyspace, KeyspaceBatch};
pub use self::read::{Cursor, Iter, QuarantinedTable, Snapshot};
pub use self::recovery::{RecoveryReport, TornTail};
pub use self::transaction::{KeyspaceTransaction, Savepoint, Transaction, TransactionIter};

/// An open database. A cheap handle: clone it freely, use it from any number of threads.
///
/// When the last handle is dropped, the workers end; unflushed writes stay in the logs, from which the next open reads them. [`Db::close`] makes them
/// durable and reports errors, which a drop cannot.
///
/// After a failure to write or sync, every write returns [`Error::ReadOnly`] and reads continue; reopen the database to see which writes are
/// durable. With [`Builder::read_only`] every write is [`Error::ReadOnly`] from the start.
///
/// A handle works in the process that opened it. In a fork of that process every write, flush and close returns [`Error::ReadOnly`], because both
/// processes would write to the same log; a drop does nothing. As after every fork of a process with threads, a lock that another thread held at that
/// moment stays locked in the fork for ever. So the fork should only `exec` another program, or open a different database. The directory stays locked
/// until both processes have ended or closed their files.
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
    default: Keyspace,
}

impl Deref for Db {
    type Target = Keyspace;

    /// The default keyspace.
    #[inline]
    fn deref(&self) -> &Keyspace {
        &self.default
    }
}

impl Db {
    fn of(handle: Handle) -> Db {
        Db { default: Keyspace::new(Arc::new(handle), KeyspaceRef::DEFAULT) }
    }

    /// The keyspace `name`, a separate set of keys. If it does not exist, it is created, durably.
    ///
    /// A name has 1 to 255 bytes ([`MAX_KEYSPACE_NAME_LEN`](crate::MAX_KEYSPACE_NAME_LEN)). A database has at most 65,535 keyspaces at once, and can
    /// create 4,294,967,295 in its lifetime.
    ///
    /// # Errors
    /// [`Error::NoKeyspace`] if it does not exist and the database was opened read-only; [`Error::InvalidArgument`] for a name that is empty or too
    /// long; [`Error::Full`] if there are too many; [`Error::Io`] if it could not be created, and [`Error::ReadOnly`]; [`Error::Closed`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// db.keyspace("users")?.insert("7", "Ada")?;
    /// assert_eq!(db.keyspace("users")?.get("7")?.as_deref(), Some(&b"Ada"[..]));
    /// assert_eq!(db.keyspaces(), ["users"]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        let keyspace = admin::keyspace(self.core(), name, None)?;
        Ok(Keyspace::new(self.default.handle().clone(), keyspace))
    }

    /// Like [`Db::keyspace`], with options for this keyspace, which are stored in the database and replace all of its previous ones. [`Db::keyspace`]
    /// leaves the options unchanged.
    ///
    /// # Errors
    /// The same as for [`Db::keyspace`], and [`Error::InvalidArgument`] for an option out of range.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use mini_engine::{Compression, KeyspaceOptions};
    ///
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let logs = db.keyspace_with("logs", KeyspaceOptions::default().compression(Compression::Zstd { level: 3 }))?;
    /// logs.insert("1", "started")?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn keyspace_with(&self, name: &str, options: KeyspaceOptions) -> Result<Keyspace> {
        let keyspace = admin::keyspace(self.core(), name, Some(options))?;
        Ok(Keyspace::new(self.default.handle().clone(), keyspace))
    }

    /// The names of the keyspaces, in order, without the default one.
    pub fn keyspaces(&self) -> Vec<String> {
        self.core().keyspaces.names()
    }

    /// Drops the keyspace `name` with all of its keys. The drop is durable on return, takes the same time whatever the size, and after a crash is
    /// complete or has not happened. All earlier writes, to any keyspace, are durable before the drop. Existing handles and snapshots of the keyspace
    /// return [`Error::NoKeyspace`] from then on; iterators continue. A keyspace created with the same name later is a different one, and empty.
    ///
    /// The space of the keyspace is freed in the background: tables with no other keys are soon removed without being read, whether or not there are
    /// snapshots. Its entries in tables that it shares with other keyspaces are removed by the next compaction of these tables; [`Db::compact`] runs
    /// one at once.
    ///
    /// # Errors
    /// [`Error::NoKeyspace`] if there is no such keyspace; [`Error::Io`] if it could not be dropped, and [`Error::ReadOnly`]; [`Error::Closed`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// use mini_engine::Error;
    ///
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let users = db.keyspace("users")?;
    /// users.insert("7", "Ada")?;
    /// db.drop_keyspace("users")?;
    /// assert!(matches!(users.get("7"), Err(Error::NoKeyspace { .. })));
    /// assert_eq!(db.keyspace("users")?.get("7")?, None);
    /// # Ok(())
    /// # }
    /// ```
    pub fn drop_keyspace(&self, name: &str) -> Result<()> {
        admin::drop_keyspace(self.core(), name)
    }

    /// Applies all operations of `batch`, or none, even if a crash comes in between; returns the sequence number of the last one. The batch is
    /// visible to every read that begins after this returns. With [`Durability::Buffered`] it then survives a killed process; with
    /// [`Durability::Synced`] it also survives a power failure, together with all earlier writes. Other threads may see it before it is synced.
    ///
    /// The call waits if frozen memtables cannot be flushed fast enough, if compactions must first take tables off level 0, until a
    /// [`Keyspace::ingest`] ends, and for the next log. If the operation that it waits for fails, the wait ends with the error of that operation.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// use mini_engine::{Durability, WriteBatch};
    ///
    /// let index = db.keyspace("by colour")?;
    /// let mut batch = WriteBatch::new();
    /// batch.insert("apple", "red")?;
    /// batch.keyspace(&index).insert("red/apple", "")?;
    /// db.write(batch, Durability::Synced)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Stalled`] if level 0 is full and cannot be compacted: nothing was written, and writes succeed again once it can be compacted.
    /// [`Error::Io`] if space or file handles are lacking for the log, or for a flush or compaction that this would wait for, unless
    /// [`Options::wait_for_space`](crate::Options::wait_for_space) is set. Nothing was written, and the failed operation is tried again at least
    /// every second, so writes succeed again once there is space. Any other [`Error::Io`] of the log: it is unknown until a reopen whether the batch
    /// survives, and every later write returns [`Error::ReadOnly`]. [`Error::Full`] if the batch does not fit into memory; [`Error::Closed`].
    ///
    /// A batch that is passed by reference can be [cleared](WriteBatch::clear) and used again.
    pub fn write(&self, batch: impl Borrow<WriteBatch>, durability: Durability) -> Result<SeqNo> {
        let written = write(self.core(), batch.borrow(), durability, WriteMode::Wait)?;
        // A write that may wait always has a result.
        Ok(written.unwrap_or_else(|| self.core().visible()))
    }

    /// Like [`Db::write`], for a thread that must not wait for others, such as an event loop: returns `None` if the write would have to wait. Then
    /// nothing was written. Another thread can call [`Db::wait_for_room`] before the next attempt. RocksDB has `no_slowdown` for this purpose.
    ///
    /// With [`Durability::Synced`] it still waits for the sync, but for nothing else. If the log cannot grow because the disk is full, it is cut and
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
        write(self.core(), batch.borrow(), durability, WriteMode::NoWait)
    }

    /// Waits like a write of `batch`, but writes nothing. Other writes may take the free room before [`Db::try_write`] does.
    ///
    /// # Errors
    /// The same as for [`Db::write`].
    pub fn wait_for_room(&self, batch: impl Borrow<WriteBatch>) -> Result<()> {
        wait_for_room(self.core(), batch.borrow())
    }

    /// Begins a transaction: reads and writes that take effect together or not at all. See [`Transaction`]. O(1).
    pub fn transaction(&self) -> Transaction {
        Transaction::begin(self.core())
    }

    /// Runs `body` in a transaction and commits it, with the durability that the options set. If the commit, or [`Transaction::check`] in `body`,
    /// returns an [`Error::Conflict`], the call starts again, at most 1,000 times; it returns the result of the run that was committed. A conflict
    /// means that another write has succeeded meanwhile, so all threads together make progress.
    ///
    /// `body` may thus run several times, and should only read and write through the transaction. If `body` returns an error, of any type that
    /// implements `From<Error>`, nothing is written. The error type must be given where it cannot be inferred, as in the example.
    ///
    /// # Errors
    /// The errors of `body` and of [`Transaction::commit`].
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("alice", [100])?;
    /// let pay = |amount: u8| {
    ///     db.transact(|tx| -> Result<(), Box<dyn std::error::Error>> {
    ///         let (alice, bob) = (tx.get("alice")?, tx.get("bob")?);
    ///         let [alice, bob] = [alice, bob].map(|balance| balance.map_or(0, |value| value[0]));
    ///         tx.insert("bob", [bob + amount])?;
    ///         tx.insert("alice", [alice.checked_sub(amount).ok_or("too little money")?])?;
    ///         Ok(())
    ///     })
    /// };
    /// pay(70)?;
    /// assert_eq!(pay(70).unwrap_err().to_string(), "too little money");
    /// assert_eq!(db.get("bob")?.as_deref(), Some(&[70][..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn transact<T, E: From<Error>>(&self, body: impl FnMut(&Transaction) -> Result<T, E>) -> Result<T, E> {
        self.transact_with(self.core().store.options.durability, body)
    }

    /// Like [`Db::transact`], with this durability.
    ///
    /// # Errors
    /// The errors of `body` and of [`Transaction::commit`].
    pub fn transact_with<T, E: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact(self.core(), durability, body)
    }

    /// Like [`Db::transact`], but such calls run one at a time, in any order, and so never conflict with each other: where many threads change the
    /// same entries, `body` usually runs once. Another call waits until `body` has returned and its writes are visible; syncs are shared. Reads, plain
    /// writes and other transactions do not wait. `body` starts again if one of them has changed something that it has read.
    ///
    /// So `body` must not wait for a thread that calls this too.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = mini_engine::Db::open(dir.path())?;
    /// let (waiting, leased) = (db.keyspace("waiting")?, db.keyspace("leased")?);
    /// waiting.insert("1", "job")?;
    /// let lease = || {
    ///     db.transact_exclusive(|tx| {
    ///         let job = tx.keyspace(&waiting).pop_first()?;
    ///         job.iter().try_for_each(|(key, job)| tx.keyspace(&leased).insert(key, job))?;
    ///         Ok::<_, mini_engine::Error>(job)
    ///     })
    /// };
    /// assert!(lease()?.is_some() && lease()?.is_none());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The errors of [`Db::transact`]; [`Error::InvalidArgument`] from a call inside another one in the same thread.
    pub fn transact_exclusive<T, E: From<Error>>(
        &self,
        body: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_exclusive_with(self.core().store.options.durability, body)
    }

    /// Like [`Db::transact_exclusive`], with this durability.
    ///
    /// # Errors
    /// The errors of [`Db::transact_exclusive`].
    pub fn transact_exclusive_with<T, E: From<Error>>(
        &self,
        durability: Durability,
        body: impl FnMut(&Transaction) -> Result<T, E>,
    ) -> Result<T, E> {
        transact_exclusive(self.core(), durability, body)
    }

    /// Gives all writes so far the requested durability. Every write already has [`Durability::Buffered`].
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// for n in 0..1000_u32 {
    ///     db.insert(n.to_be_bytes(), "buffered")?;
    /// }
    /// db.persist(mini_engine::Durability::Synced)?; // one sync for all of them
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Io`] if a log cannot be synced, then [`Error::ReadOnly`] from every later write; [`Error::Closed`].
    pub fn persist(&self, durability: Durability) -> Result<()> {
        persist(self.core(), durability)
    }

    /// Flushes all memtables to tables, and waits until that is durable. Waits for room on level 0, like writers.
    ///
    /// # Errors
    /// [`Error::Io`] if space was lacking for the flush, or for the compaction that it waited for: both are tried again, and no write is lost.
    /// [`Error::Stalled`] if level 0 is full and cannot be compacted; [`Error::ReadOnly`] after any other failure; [`Error::Closed`].
    pub fn flush(&self) -> Result<()> {
        flush_all(self.core())
    }

    /// The tables that were found damaged or missing in [`RecoveryMode::Quarantine`](crate::RecoveryMode::Quarantine), by this open or an earlier
    /// one, and that were not dropped since. Reads of their keys return [`Error::Corruption`].
    pub fn quarantined(&self) -> Vec<QuarantinedTable> {
        care::quarantined(self.core())
    }

    /// Drops the quarantined table `number` for good. From then on, reads in its key range use the other tables, so older values of its keys, and
    /// keys that it had removed, may return. Returns the dropped table, which [`Db::quarantined`] listed before, with its number of entries.
    /// [`Builder::salvage`] still reads all sound blocks of the table's file, which stays in place. The drop is durable on return. Earlier snapshots
    /// and iterators still return errors.
    ///
    /// As long as the file exists, compactions keep the tombstones in its key range, so that a salvage does not bring removed keys back. Once the
    /// file is removed, the next open removes the table from the manifest.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if no such table is quarantined; [`Error::Io`] if the manifest cannot be written, and [`Error::ReadOnly`] for
    /// every later write; [`Error::Closed`].
    pub fn drop_quarantined(&self, number: u64) -> Result<QuarantinedTable> {
        care::drop_quarantined(self.core(), number)
    }

    /// The files that opens have set aside because they could not use them: torn ends of logs, logs after these, and damaged tables. You may remove
    /// these files; quarantined tables only after they are dropped. Only salvage reads them.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Closed`].
    pub fn set_aside(&self) -> Result<Vec<AsideFile>> {
        care::set_aside(self.core())
    }

    /// Makes `dir`, which must not exist, a separate database with the present contents of this one: every write acknowledged before the call, and
    /// perhaps concurrent ones, each with all writes before it. Reads and writes continue. The copy's tables are hard links to those of this database
    /// if the file system allows, and copies otherwise; it is durable on return. Costs O(tables) and a flush, if nothing has to be copied.
    ///
    /// The directory is written [under another name](incomplete_directory), and gets its own name only when it is complete. After an error, no files
    /// of it remain. A crash may leave the directory with the other name, which the next checkpoint to `dir` removes.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if `dir` exists already; the errors of [`Db::flush`]; [`Error::Io`].
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
        let dir = core::absolute(dir)?;
        // The moment of a reader must not move meanwhile.
        let follower = self.default.handle().follower.as_ref().map(lock);
        match follower {
            Some(_still) => care::checkpoint_moment(self.core(), &dir),
            None => care::checkpoint(self.core(), &dir),
        }
    }

    /// Compacts all entries of all keyspaces that were written before the call, like [`Keyspace::compact_range`] of all keys.
    pub fn compact(&self) -> Result<()> {
        admin::compact_range(self.core(), owned(&..))
    }

    /// Waits until no compaction is due or running: until the tables satisfy the policy. Writes of other threads continue; if there are many, this
    /// may take long.
    ///
    /// # Errors
    /// The error of a failed compaction, even though it will be tried again; [`Error::ReadOnly`] after a failure to write or sync; [`Error::Closed`].
    pub fn wait_for_compactions(&self) -> Result<()> {
        wait_idle(self.core())
    }

    /// Reads and checks every block of every table, and also the manifest unless the database was opened read-only, and checks that manifest and
    /// tables agree. Takes time in proportion to the database, and does not change the cache.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// let report = db.verify()?;
    /// assert!(report.is_sound(), "{report:?}");
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`]. Damage to the files is listed in the report; [`VerifyReport::into_result`] turns it into an error.
    pub fn verify(&self) -> Result<VerifyReport> {
        care::verify(self.core())
    }

    /// Makes all writes durable and ends the workers; a read-only handle has nothing to do. Flushes the writes to tables, unless they take less than
    /// 16 KiB of the logs, which the next open reads. That open writes nothing anew, unless the files were copied or changed meanwhile. Every other
    /// handle returns [`Error::Closed`] from now on; snapshots and iterators can still be read. The directory is locked until the last of all these is
    /// dropped. Due and running compactions are left to the next open, except compactions of small tables within level 0, which run first.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// db.close()?;
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// assert!(db.contains_key("apple")?);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::ReadOnly`] with the first failure, now or earlier; a reopen shows what is durable. Otherwise the errors of [`Db::flush`]: then the
    /// Writes that could not be flushed are in the logs, which were synced, so nothing is lost. The workers have ended even after an error.
    /// [`Error::Closed`] if another handle was closed before.
    pub fn close(self) -> Result<()> {
        let core = self.core();
        if core.is_forked() {
            return core.check_usable();
        }
        if core.enter_phase(Phase::Closing) != Phase::Open {
            return Err(Error::Closed);
        }
        if core.store.options.read_only {
            self.default.handle().stop();
            return Ok(());
        }
        let flushed = match core.may_leave_writes_in_logs() {
            true => core.sync_logs(),
            false => freeze_active(core, |core, _| core.check_usable()).and_then(|log| wait_flushed(core, log)),
        };
        let flushed = flushed.and_then(|()| {
            settle_level_0(core);
            core.record_clock()
        });
        if flushed.is_err()
            && let Err(error) = core.sync_logs()
        {
            tracing::warn!(%error, "closed without syncing the logs");
        }
        self.default.handle().stop();
        // A worker, or the sync of the logs, may have failed after the flush was done.
        core.check_usable().and(flushed).inspect(|()| core.note_close())
    }

    /// The report on what the open replayed, dropped and set aside.
    pub fn recovery(&self) -> &RecoveryReport {
        &self.default.handle().report
    }

    /// Moves a [reader](Builder::reader) on to the present moment, for all of its handles: reads that begin after this returns see all writes that were
    /// acknowledged before the call. Returns the sequence number of the last write that they see. Snapshots and iterators stay at their moment. Other
    /// handles always show the present moment, so for them this does nothing.
    ///
    /// Takes time in proportion to the bytes that were written since the last refresh, plus the listing of the directory; after a flush or a compaction
    /// also in proportion to the manifest and the number of tables. Now and then, a call that finds no new write searches the logs for damage.
    ///
    /// # Errors
    /// [`Error::Overtaken`] if the writer has replaced the logs again and again while they were read; [`Error::Full`] if the logs need more memory than
    /// `replay_memory_bytes`, or the tables more file handles than there are; [`Error::Io`]; [`Error::Corruption`]; [`Error::Closed`]. After an error the moment is the same as before.
    pub fn refresh(&self) -> Result<SeqNo> {
        self.core().check_open()?;
        match &self.default.handle().follower {
            Some(follower) => lock(follower).refresh(self.core()),
            None => Ok(self.core().visible()),
        }
    }

    /// The number of writers that are waiting for the write lock.
    pub fn waiting_writers(&self) -> usize {
        self.core().waiting_writers()
    }

    /// The counters since the database was opened, and the present size of its levels.
    ///
    /// ```
    /// # fn main() -> mini_engine::Result<()> {
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = mini_engine::Db::open(dir.path())?;
    /// db.insert("apple", "red")?;
    /// let metrics = db.metrics();
    /// println!("{} syncs, {} conflicts", metrics.wal_syncs, metrics.conflicts);
    /// # Ok(())
    /// # }
    /// ```
    pub fn metrics(&self) -> Metrics {
        admin::metrics(self.core())
    }

    fn core(&self) -> &Arc<Core> {
        self.default.core()
    }
}
