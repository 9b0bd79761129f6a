//! [`State`]: the directory of a state machine, and its present database.

use std::fmt;
use std::io::Result;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mini_engine::fs::{FileSystem, in_open_directory};
use mini_engine::{Db, Options};
use openraft::RaftTypeConfig;
use openraft::type_config::alias::SnapshotMetaOf;

use super::checkpoint::{Checkpoint, Temporary};
use super::names::{Kind, is_ours, parse, remove_directory};
use super::receiver::Receiver;
use crate::worker::Worker;

/// Bytes of a chunk of a snapshot that is copied on this machine.
const COPIED_TOGETHER: usize = 1 << 20;

/// The state machine as the application reads it. A cheap handle that works as long as the node does:
/// [`StateMachine::state`](crate::StateMachine::state).
#[derive(Clone)]
pub struct State {
    shared: Arc<Shared>,
}

struct Shared {
    dir: PathBuf,
    fs: Arc<dyn FileSystem>,
    options: Options,
    current: Mutex<Current>,
    /// Held while a checkpoint is made or a snapshot installed, which closes the database that the checkpoint is made of.
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
    /// Opens the newest database in `dir`, or creates the first, and removes what earlier processes have left.
    pub(super) fn open(dir: &Path, options: Options, fs: Arc<dyn FileSystem>) -> Result<Self> {
        let is_new = !fs.exists(dir)?;
        if is_new {
            // Makes each directory on the way durably.
            drop(open_db(&dir.join(Kind::State.name(0)), &options, &fs)?);
        }
        // Databases come and go by their names in it, also when it is moved.
        let fs = in_open_directory(&fs, dir)?;
        let names = if is_new { Vec::new() } else { fs.read_dir(dir)? };
        let names: Vec<String> = names.into_iter().filter_map(|name| name.into_string().ok()).collect();
        let found = || names.iter().filter_map(|name| parse(name));
        let number = found().filter(|(kind, _)| *kind == Kind::State).map(|(_, number)| number).max().unwrap_or(0);
        // A node of this process that was stopped may still hold the others: it must not remove new ones of the same names.
        let next_number = found().map(|(_, number)| number + 1).max().unwrap_or(0);
        let state = Kind::State.name(number);
        let db = open_db(&dir.join(&state), &options, &fs)?;
        // Its lock is held: no other process uses the rest.
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

    /// The present database, to read what was applied.
    ///
    /// When a snapshot from the leader has been installed, this is another database, and the old one answers [`mini_engine::Error::Closed`]. So call
    /// this for each request. To write is the state machine's part: other nodes would not have what you write here.
    pub fn db(&self) -> Db {
        lock(&self.shared.current).db.clone()
    }

    /// Begins to receive a snapshot from the leader.
    ///
    /// # Errors
    /// If its directory cannot be created.
    pub fn receive(&self) -> Result<Receiver> {
        Receiver::new(self.temporary(Kind::Incoming))
    }

    /// A snapshot of everything that was applied before the call, and perhaps of entries that are applied meanwhile. It flushes a memtable, and takes
    /// a hard link for each table.
    pub(super) fn checkpoint(&self) -> Result<Checkpoint> {
        let _one_at_a_time = lock(&self.shared.snapshots);
        let place = self.temporary(Kind::Snapshot);
        self.db().checkpoint(&place.dir)?;
        Ok(Checkpoint { place })
    }

    /// Replaces the database by a snapshot, which must have this metadata.
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
        // The snapshot has another name now, so nothing is removed when it is dropped.
        drop(snapshot);
        fs.sync_dir(dir)?;
        let db = open_db(&new, options, fs)?;
        let old = std::mem::replace(&mut *lock(current), Current { db, number: old + 1 });
        // Whoever still has a handle gets an error from now on, and no old value.
        if let Err(error) = old.db.close() {
            tracing::warn!(%error, "could not flush a database that a snapshot has replaced");
        }
        self.shared.removals.queue(dir.join(Kind::State.name(old.number)));
        Ok(())
    }

    /// A snapshot of another directory, received here.
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

fn open_db(dir: &Path, options: &Options, fs: &Arc<dyn FileSystem>) -> Result<Db> {
    Ok(Db::builder(dir).options(options.clone()).file_system(Arc::clone(fs)).open()?)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Each change of what they guard is one step, so a panic leaves it consistent.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
