//! [`State`]: the directory of a state machine, and its present database.

use std::fmt;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mini_engine::fs::{FileSystem, in_open_directory};
use mini_engine::{Db, Options};
use openraft::RaftTypeConfig;
use openraft::type_config::alias::{LogIdOf, SnapshotMetaOf, SnapshotOf};

use super::checkpoint::{Checkpoint, Temporary};
use super::names::{Kind, is_ours, newest, parse, remove_directory};
use super::receiver::Receiver;
use super::record::Applied;
use crate::open::open;
use crate::worker::Worker;

/// The chunk size for a snapshot that is copied on this machine.
const COPIED_TOGETHER: usize = 1 << 20;

/// Read access to the state machine for the application. A cheap handle, which works as long as the
/// node does: [`StateMachine::state`](crate::StateMachine::state).
#[derive(Clone)]
pub struct State {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    fs: Arc<dyn FileSystem>,
    options: Options,
    current: Mutex<Current>,
    /// Held while a checkpoint is made or a snapshot is installed: an installation closes the database, and a checkpoint needs it open.
    snapshots: Mutex<()>,
    /// The number of the next snapshot, sent or received.
    next_number: AtomicU64,
    removals: Arc<Worker<PathBuf>>,
}

/// The database, and the number of its directory.
#[derive(Debug)]
struct Current {
    db: Db,
    number: u64,
}

impl State {
    /// Opens the newest database in `dir`, or creates the first, and removes leftovers of earlier processes.
    pub(super) fn open(dir: &Path, options: Options, fs: Arc<dyn FileSystem>) -> Result<Self> {
        let is_new = !fs.exists(dir)?;
        if is_new {
            // Makes `dir` and its parents durably.
            drop(open(&dir.join(Kind::State.name(0)), options.clone(), &fs)?);
        }
        // Databases are opened by their names in this open directory, so it may be moved.
        let fs = in_open_directory(&fs, dir)?;
        let names = if is_new { Vec::new() } else { fs.read_dir(dir)? };
        let names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        let number = newest(names.iter().map(String::as_str)).unwrap_or(0);
        // A stopped node of this process may still remove its own directories, so new ones must have other names.
        let numbers = names.iter().filter_map(|name| parse(name)).map(|(_, number)| number);
        let next_number = numbers.map(|number| number + 1).max().unwrap_or(0);
        let state = Kind::State.name(number);
        let db = open(&dir.join(&state), options.clone(), &fs)?;
        // This process holds the lock of the state, so no other process uses the other directories.
        for name in names.iter().filter(|name| **name != state && is_ours(name)) {
            remove_directory(&*fs, &dir.join(name));
        }
        let of_removals = Arc::clone(&fs);
        let remove = move |dirs: Vec<PathBuf>| dirs.iter().for_each(|dir| remove_directory(&*of_removals, dir));
        let removals = Arc::new(Worker::start("raft-remove", remove)?);
        let current = Mutex::new(Current { db, number });
        let (dir, next_number) = (dir.to_path_buf(), AtomicU64::new(next_number));
        Ok(Self {
            shared: Arc::new(Shared { dir, fs, options, current, snapshots: Mutex::default(), next_number, removals }),
        })
    }

    /// The present database, for reads of applied entries.
    ///
    /// After a snapshot from the leader is installed, this returns another database, and calls of the old one return [`mini_engine::Error::Closed`].
    /// So call this for each request. Only the state machine may write: other nodes would not have your writes.
    pub fn db(&self) -> Db {
        lock(&self.shared.current).db.clone()
    }

    /// The last entry whose effects the database has.
    ///
    /// # Errors
    /// Returns errors of reading the database.
    pub fn applied<C: RaftTypeConfig>(&self) -> Result<Option<LogIdOf<C>>> {
        Ok(Applied::<C>::of(&self.db())?.last)
    }

    /// Begins to receive a snapshot from the leader.
    ///
    /// # Errors
    /// If its directory cannot be created.
    pub fn receive(&self) -> Result<Receiver> {
        Receiver::new(self.temporary(Kind::Incoming))
    }

    /// A snapshot of all entries that were applied before the call, and perhaps of entries that are applied meanwhile. Flushes a memtable, and makes
    /// a hard link for each table; call it where a task may block. openraft makes its own snapshots; this one is for a backup.
    ///
    /// # Errors
    /// The errors of [`Db::checkpoint`].
    pub fn snapshot<C: RaftTypeConfig>(&self) -> Result<SnapshotOf<C, Checkpoint>> {
        let checkpoint = {
            let _one_at_a_time = lock(&self.shared.snapshots);
            let place = self.temporary(Kind::Snapshot);
            self.db().checkpoint(&place.dir)?;
            Checkpoint { place }
        };
        checkpoint.into_snapshot::<C>()
    }

    /// Replaces the database by a snapshot, whose metadata must equal `meta`.
    pub(super) fn install<C: RaftTypeConfig>(&self, meta: &SnapshotMetaOf<C>, snapshot: Checkpoint) -> Result<()> {
        let is_here = Arc::ptr_eq(&snapshot.place.removals, &self.shared.removals);
        let snapshot = if is_here { snapshot } else { self.copy::<C>(snapshot)? };
        let found = snapshot.meta::<C>()?;
        if found != *meta {
            let what = format!("a snapshot is not what it is said to be: expected {meta}, found {found}");
            return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, what));
        }
        let Shared { dir, fs, options, current, snapshots, .. } = &*self.shared;
        let _one_at_a_time = lock(snapshots);
        let old = lock(current).number;
        let new = dir.join(Kind::State.name(old + 1));
        fs.rename(&snapshot.place.dir, &new)?;
        // The directory was renamed, so the drop of the snapshot removes no files.
        drop(snapshot);
        fs.sync_dir(dir)?;
        let db = open(&new, options.clone(), fs)?;
        let old = std::mem::replace(&mut *lock(current), Current { db, number: old + 1 });
        // Existing handles of the old database now return an error, and no old value.
        if let Err(error) = old.db.close() {
            tracing::warn!(%error, "could not flush a database that a snapshot has replaced");
        }
        self.shared.removals.queue(dir.join(Kind::State.name(old.number)));
        Ok(())
    }

    /// Copies a snapshot from another directory into this directory.
    fn copy<C: RaftTypeConfig>(&self, snapshot: Checkpoint) -> Result<Checkpoint> {
        let mut receiver = self.receive()?;
        for chunk in snapshot.chunks(COPIED_TOGETHER)? {
            receiver.write(&chunk?)?;
        }
        Ok(receiver.finish::<C>()?.snapshot)
    }

    fn temporary(&self, kind: Kind) -> Temporary {
        let Shared { dir, fs, options, next_number, removals, .. } = &*self.shared;
        // ORDERING: Relaxed; the number only has to be another one each time.
        let number = next_number.fetch_add(1, Ordering::Relaxed);
        let (dir, fs, options) = (dir.join(kind.name(number)), Arc::clone(fs), options.clone());
        Temporary { dir, fs, options, removals: Arc::clone(removals) }
    }
}

impl fmt::Debug for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shared = &self.shared;
        f.debug_struct("State")
            .field("dir", &shared.dir)
            .field("current", &*lock(&shared.current))
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of the guarded data is one step, so a panic leaves the data consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
