//! [`Logs`]: the database of logs, and the threads that work on it.
//!
//! Purged entries are removed together, once they have [`REMOVED_TOGETHER`] bytes: one range tombstone covers all of them, and then their range is
//! compacted. The compaction drops wholly covered tables without reading them, and the tombstone with them. Mostly the purged entries are still in
//! the memtable. Then the flush at the beginning of the compaction drops them, and they are never written to a table.
//!
//! One tombstone for each purge would be worse, because each new scan collects all tombstones. Without the compaction, the space would be freed only
//! by chance.
//!
//! The same thread removes a whole group, after the purges of that group: a later purge would remove entries of a new group with the same number.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};

use mini_engine::fs::{FileSystem, StdFs};
use mini_engine::{Compression, Db, Durability, KeyBounds, Options, Result, WriteBatch};

use super::keys::Keys;
use crate::open::open;
use crate::worker::Worker;

/// Bytes of purged entries that are removed together: few enough that an open, which reads the log of the database, takes little time,
/// and many enough that the syncs of a flush and a compaction cost little.
pub(super) const REMOVED_TOGETHER: usize = 8 << 20;

/// A callback that runs once all earlier writes are durable, or their sync has failed.
type AfterSync = Box<dyn FnOnce(io::Result<()>) + Send>;

/// A database of the logs of one or several Raft groups. A cheap handle.
///
/// The groups of a process share one database so that they share its syncs. With several groups, purges cost more: tables hold entries of all groups
/// until a compaction separates them.
///
/// Written data survives the drop of the last handle and the last [`LogStore`](crate::LogStore), as it survives a killed process.
///
/// ```
/// # use openraft_mini_engine as raft;
/// # openraft::declare_raft_types!(TypeConfig: D = String, R = String, AsyncRuntime = openraft_rt_tokio::TokioRuntime);
/// # fn main() -> std::io::Result<()> {
/// # let dir = tempfile::tempdir()?;
/// let logs = raft::Logs::open(dir.path())?;
/// let log_store = logs.group::<TypeConfig>(0)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Logs {
    shared: Arc<Shared>,
}

struct Shared {
    db: Db,
    /// The groups that have a [`LogStore`](crate::LogStore).
    open: Mutex<BTreeSet<u32>>,
    syncs: Worker<AfterSync>,
    removals: Worker<Removal>,
}

enum Removal {
    /// The purged entries of a group, up to index `last`.
    Purged { group: u32, last: u64 },
    /// A whole group, and the caller that waits for its removal.
    Group { group: u32, removed: mpsc::Sender<Result<()>> },
}

impl Logs {
    /// Opens the database in directory `path`, or creates it, with [`Logs::options`].
    ///
    /// # Errors
    /// Those of [`mini_engine::Builder::open`]: damage, and a database that is already open, in any process; and a
    /// [repaired](mini_engine::REPAIRED) database, which may lack what the node has acknowledged.
    pub fn open(path: impl AsRef<Path>) -> io::Result<Logs> {
        Logs::open_with(path, Logs::options(), Arc::new(StdFs))
    }

    /// The options of [`Logs::open`]: those of an ordinary database, without features that a log does not need. Reads are of existing keys, so
    /// there are no filters; entries do not live long, so they are not compressed.
    pub fn options() -> Options {
        Options::default().filter_bits_per_key(0).compression(Compression::None)
    }

    /// Like [`Logs::open`], with other options, and on another file system: tests use one that loses unsynced data.
    pub fn open_with(path: impl AsRef<Path>, options: Options, fs: Arc<dyn FileSystem>) -> io::Result<Logs> {
        let db = open(path.as_ref(), options, &fs)?;
        let (of_syncs, of_removals) = (db.clone(), db.clone());
        let syncs = Worker::start("raft-log-sync", move |waiting| sync(&of_syncs, waiting))?;
        let removals = Worker::start("raft-log-purge", move |purged| remove(&of_removals, purged))?;
        Ok(Logs { shared: Arc::new(Shared { db, open: Mutex::default(), syncs, removals }) })
    }

    /// Writes everything to tables and closes the database. Every [`LogStore`](crate::LogStore) gets an error from then on, so end their nodes first.
    /// Without this call nothing is lost: the next open takes a little longer.
    ///
    /// # Errors
    /// Those of [`Db::close`].
    pub fn close(self) -> io::Result<()> {
        // Pending appends and votes get their sync first.
        let (sender, synced) = mpsc::channel();
        self.when_synced(move |result| drop(sender.send(result)));
        let synced = synced.recv().unwrap_or(Ok(()));
        Ok(self.shared.db.clone().close()?).and(synced)
    }

    /// Removes the entries of a group and its records, except the vote: a node never votes twice in a term. The removal is durable when this returns,
    /// and [`Logs::group`] then makes an empty log with this vote. Waits for the disk.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) while the group has a [`LogStore`](crate::LogStore); the errors of a write.
    pub fn remove_group(&self, number: u32) -> io::Result<()> {
        if !self.take(number) {
            return Err(open_already(number));
        }
        let removed = self.remove_taken(number);
        self.release(number);
        removed
    }

    fn remove_taken(&self, group: u32) -> io::Result<()> {
        if self.shared.db.range(Keys { group }.all_but_vote()).next().transpose()?.is_none() {
            return Ok(());
        }
        let (removed, receiver) = mpsc::channel();
        self.shared.removals.queue(Removal::Group { group, removed });
        let ended = || io::Error::other("the thread that removes logs has ended");
        Ok(receiver.recv().map_err(|_| ended())??)
    }

    /// The database, for its [metrics](Db::metrics), checks and so on. The keys of the default keyspace belong to the log stores; write
    /// none there.
    pub fn db(&self) -> &Db {
        &self.shared.db
    }

    /// Claims the log of a group, which only one store may write; `false` if another store has it.
    pub(super) fn take(&self, group: u32) -> bool {
        self.open_groups().insert(group)
    }

    /// Allows another store to claim the group.
    pub(super) fn release(&self, group: u32) {
        self.open_groups().remove(&group);
    }

    /// Calls `then` on another thread, once all earlier writes are durable, or the sync has failed.
    pub(super) fn when_synced(&self, then: impl FnOnce(io::Result<()>) + Send + 'static) {
        self.shared.syncs.queue(Box::new(then));
    }

    /// Removes the purged entries of a group, up to `last`, in the background.
    pub(super) fn remove_purged(&self, group: u32, last: u64) {
        self.shared.removals.queue(Removal::Purged { group, last });
    }

    fn open_groups(&self) -> MutexGuard<'_, BTreeSet<u32>> {
        self.shared.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logs").field("db", &self.shared.db).finish_non_exhaustive()
    }
}

/// Makes one sync for all waiting callbacks.
fn sync(db: &Db, waiting: Vec<AfterSync>) {
    let synced = db.persist(Durability::Synced);
    waiting.into_iter().for_each(|then| then(synced.clone().map_err(Into::into)));
}

fn remove(db: &Db, removals: Vec<Removal>) {
    // The last of several purges of a group covers the others.
    let (mut last_of_group, mut whole) = (BTreeMap::new(), Vec::new());
    for removal in removals {
        match removal {
            Removal::Purged { group, last } => drop(last_of_group.insert(group, last)),
            Removal::Group { group, removed } => whole.push((group, removed)),
        }
    }
    for (group, last) in last_of_group {
        let entries = Keys { group }.entries(0..=last);
        let hidden = hide_range(db, entries.clone(), Durability::Buffered);
        match hidden.and_then(|()| db.compact_range(entries)) {
            Ok(()) => tracing::debug!(group, last, "removed purged log entries"),
            // This is harmless: reads ignore purged entries, and the next removal covers them.
            Err(error) => tracing::warn!(group, last, %error, "could not remove purged log entries"),
        }
    }
    for (group, removed) in whole {
        let gone = hide_range(db, Keys { group }.all_but_vote(), Durability::Synced);
        // The waiting caller may have ended.
        removed.send(gone).ok();
        // The removal succeeds even if its space is not freed at once: on a full disk, the compaction may need space that the next removal frees.
        if let Err(error) = db.compact_range(Keys { group }.all_but_vote()) {
            tracing::warn!(group, %error, "could not free the space of a removed log");
        }
    }
}

/// Removes a range from all reads. Its space is freed by compactions.
fn hide_range(db: &Db, range: impl KeyBounds, durability: Durability) -> Result<()> {
    let mut batch = WriteBatch::new();
    batch.remove_range(range)?;
    db.write(batch, durability).map(drop)
}

pub(super) fn open_already(group: u32) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, format!("the log of group {group} is open already"))
}
