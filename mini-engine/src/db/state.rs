//! The core of an open database: everything that handles, snapshots, iterators and workers share.
//!
//! Locks, in the order in which they may be taken: `manifest` before `state` before `spare`; the snapshot registry and a log's
//! own locks last. `state` is the write lock: it guards the log writer, the sequence numbers and the publishing of views.
//! Nobody syncs or waits for the device while holding it, except a rotation, which creates a log. Both condition
//! variables belong to it: `work` wakes the workers, `room` whoever waits for what workers do.
//!
//! Failure (rule 7) is a state that is never left: the first error is kept, every later write gets `ReadOnly` with it.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;

use arc_swap::ArcSwap;

use super::commit::CommitQueue;
use super::pace::Pace;
use super::registry::SnapshotRegistry;
use super::view::View;
use crate::compaction::{OpenTable, Running, TableStore};
use crate::error::{Error, Result};
use crate::manifest::{Manifest, Version, VersionEdit};
use crate::metrics::Counters;
use crate::types::SeqNo;
use crate::wal;

/// How far the life of a database has come. Only ever moves on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    Open,
    /// No handle may write or read any more; workers still flush.
    Closing,
    /// Workers end.
    Stopped,
}

/// What the write lock guards.
pub(super) struct State {
    pub(super) log: wal::Writer,
    /// The logs of the frozen memtables, oldest first.
    pub(super) frozen_logs: VecDeque<Arc<wal::Segment>>,
    /// The last sequence number given out, which is also the last that is visible whenever the lock is free.
    pub(super) last_seqno: SeqNo,
    /// The active memtable takes no further write: it holds a batch that has it for itself.
    pub(super) active_is_full: bool,
    pub(super) phase: Phase,
    /// A bulk load is under way: nobody writes.
    pub(super) is_ingesting: bool,
    /// Flushes that failed for want of space, and the last such error.
    pub(super) flush_failures: u64,
    pub(super) flush_error: Option<Error>,
    /// The merges under way.
    pub(super) running: Running,
    /// Callers that wait for merges to get out of the way of theirs.
    pub(super) ranges_waiting: usize,
    /// How fast writers may be.
    pub(super) pace: Pace,
    /// Why the last merge failed, if it did.
    pub(super) compaction_error: Option<Error>,
    /// The last merge of level 0 failed: waiting for the next one could be waiting for ever.
    pub(super) level_0_fails: bool,
}

/// What everything of one open database shares.
pub(super) struct Core {
    pub(super) store: TableStore,
    pub(super) view: ArcSwap<View>,
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    pub(super) snapshots: SnapshotRegistry,
    pub(super) manifest: Mutex<Manifest>,
    state: Mutex<State>,
    /// The file that the next log will have, if there is one. `recycle` alone locks it.
    pub(super) spare: Mutex<Option<wal::Spare>>,
    /// Who waits for the write lock, with what. Locked last, under the write lock or without it.
    pub(super) commits: CommitQueue,
    pub(super) room: Condvar,
    pub(super) work: Condvar,
    /// Whoever syncs a log holds it: those who wait here find that it was done for them too (group commit).
    sync_turn: Mutex<()>,
    failure: OnceLock<String>,
    closed: AtomicBool,
    /// Tells a running copy of tables to end.
    pub(super) cancel: AtomicBool,
    /// The lock on the directory. The last field: everything that reads the files is gone when it goes (rule 13).
    _lock: DirectoryLock,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Not what it holds: that is the database.
        f.debug_struct("Core").field("dir", &self.store.dir).field("visible", &self.visible).finish_non_exhaustive()
    }
}

/// The lock on a database's directory, held until dropped.
pub(super) struct DirectoryLock {
    _held: Box<dyn Send + Sync>,
}

impl DirectoryLock {
    pub(super) fn new(held: Box<dyn Send + Sync>) -> DirectoryLock {
        DirectoryLock { _held: held }
    }
}

/// What recovery found, from which the core is made.
pub(super) struct Opened {
    pub(super) store: TableStore,
    pub(super) view: View,
    pub(super) log: wal::Writer,
    pub(super) last_seqno: SeqNo,
    pub(super) manifest: Manifest,
    pub(super) lock: DirectoryLock,
}

impl Core {
    pub(super) fn new(opened: Opened) -> Core {
        let state = State {
            log: opened.log,
            frozen_logs: VecDeque::new(),
            last_seqno: opened.last_seqno,
            active_is_full: false,
            phase: Phase::Open,
            is_ingesting: false,
            flush_failures: 0,
            flush_error: None,
            running: Running::default(),
            ranges_waiting: 0,
            pace: Pace::default(),
            compaction_error: None,
            level_0_fails: false,
        };
        Core {
            store: opened.store,
            view: ArcSwap::from_pointee(opened.view),
            visible: AtomicU64::new(opened.last_seqno),
            snapshots: SnapshotRegistry::default(),
            manifest: Mutex::new(opened.manifest),
            state: Mutex::new(state),
            spare: Mutex::default(),
            commits: CommitQueue::default(),
            room: Condvar::new(),
            work: Condvar::new(),
            sync_turn: Mutex::new(()),
            failure: OnceLock::new(),
            closed: AtomicBool::new(false),
            cancel: AtomicBool::new(false),
            _lock: opened.lock,
        }
    }

    pub(super) fn dir(&self) -> &PathBuf {
        &self.store.dir
    }

    /// Takes the write lock. A panic under it has made the engine read-only ([`fail_on_unwind`]), so poisoning says
    /// nothing new.
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Core::lock`], unless somebody holds it.
    pub(super) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Waits for `condvar`, giving the write lock away meanwhile.
    pub(super) fn wait<'a>(&self, condvar: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        condvar.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// As [`Core::wait`], for `time` at most.
    pub(super) fn wait_timeout<'a>(
        &self,
        condvar: &Condvar,
        state: MutexGuard<'a, State>,
        time: Duration,
    ) -> MutexGuard<'a, State> {
        condvar.wait_timeout(state, time).unwrap_or_else(PoisonError::into_inner).0
    }

    /// The newest sequence number that readers may see. Pin a view first (rule 16): in the other order a merge could
    /// drop, between the two, the version that this number sees.
    pub(super) fn visible(&self) -> SeqNo {
        // ORDERING(visible): Acquire; pairs with Release in `publish`. Weaker: a reader could see the number and miss
        // the memtable's nodes, or the view, that the write went to.
        self.visible.load(Ordering::Acquire)
    }

    /// Lets readers see everything up to `seqno`. Called under the write lock, in order (rule 12).
    pub(super) fn publish(&self, seqno: SeqNo) {
        // ORDERING(visible): Release; see `visible`.
        self.visible.store(seqno, Ordering::Release);
    }

    /// Fails once the database was closed.
    pub(super) fn check_open(&self) -> Result<()> {
        // Acquire, so that a thread that learnt of the close by other means cannot read past it.
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Fails after the first failure to write or sync.
    pub(super) fn check_usable(&self) -> Result<()> {
        match self.failure.get() {
            Some(cause) => Err(Error::ReadOnly { cause: cause.clone() }),
            None => Ok(()),
        }
    }

    /// Fails unless writes are taken.
    pub(super) fn check_writable(&self, state: &State) -> Result<()> {
        if state.phase != Phase::Open {
            return Err(Error::Closed);
        }
        self.check_usable()
    }

    /// Turns the engine read-only for ever, unless it is already, and wakes whoever waits so that they learn of it.
    pub(super) fn fail(&self, error: &Error) {
        self.remember(error);
        // Waiters look at the failure under the lock before they wait. Taking it here once means that each has either
        // seen the failure or waits already, and so is woken.
        drop(self.lock());
        self.wake_all();
    }

    /// As [`Core::fail`], for the holder of the write lock.
    pub(super) fn fail_locked(&self, _held: &State, error: &Error) {
        self.remember(error);
        self.wake_all();
    }

    fn remember(&self, error: &Error) {
        let cause = match error {
            Error::ReadOnly { cause } => cause.clone(),
            other => other.to_string(),
        };
        if self.failure.set(cause).is_ok() {
            tracing::error!(%error, "the database is read-only from now on");
        }
    }

    pub(super) fn wake_all(&self) {
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Moves the life of the database on; the phase that it was in.
    pub(super) fn enter(&self, phase: Phase) -> Phase {
        let mut state = self.lock();
        let before = state.phase;
        state.phase = before.max(phase);
        self.closed.store(true, Ordering::Release);
        self.cancel.store(state.phase == Phase::Stopped, Ordering::Relaxed);
        drop(state);
        self.wake_all();
        before
    }

    /// Whether another frozen memtable may wait for its flush.
    pub(super) fn queue_has_room(&self) -> bool {
        self.view.load().frozen.len() < self.store.options.immutable_memtables
    }

    /// Whether writers may fill another memtable.
    pub(super) fn has_room(&self, state: &State) -> bool {
        let stop = self.store.options.stop_tables();
        let merges_keep_up = state.level_0_fails || self.view.load().version.runs(0).len() < stop;
        merges_keep_up && self.queue_has_room()
    }

    /// Makes the log durable up to `end` and all earlier logs whole (rule 5, which [`wal::Segment::sync`] keeps).
    pub(super) fn sync_log(&self, log: &wal::Segment, end: u64) -> Result<()> {
        if log.synced() >= end {
            return Ok(());
        }
        let _turn = self.sync_turn.lock().unwrap_or_else(PoisonError::into_inner);
        if log.synced() >= end {
            return Ok(());
        }
        self.sync_whole(log)
    }

    /// Makes the log and all earlier ones durable. A log without frames is as good as synced, and yet the logs before it may
    /// not be: so this does not take the short cut of [`sync_log`](Self::sync_log), which asks for a frame's end. A failure
    /// ends writing, and so does a sync that unwinds: it is not known what it has done, and the next one would not tell (rule 7).
    pub(super) fn sync_whole(&self, log: &wal::Segment) -> Result<()> {
        // After a failed sync of any log nothing is acknowledged as synced, even where a sync would succeed: it would
        // tell of pages that the kernel has given up (rule 7).
        self.check_usable()?;
        fail_on_unwind(self, || log.sync()).inspect_err(|error| self.fail(error))
    }

    /// Records an edit, publishes the view after it, and wakes whoever waits for it. `count` is called once readers can
    /// see the view, and before anybody is woken: so what it counts is never ahead of what can be seen, nor behind for
    /// those who were woken.
    ///
    /// The tables of the edit are durable already; the edit becomes so here; only then readers get the new view, and only
    /// after this returns may the caller unlink what the edit made obsolete (rule 6). In any other order a crash in
    /// between leaves a manifest that names what is gone. The manifest's lock is held over both steps, so that views
    /// follow each other as their edits do.
    ///
    /// A load's edit brings numbers that no writer had: they are published with its view. Any later, and a merge that sees
    /// the load could drop what readers at the old number are still to see (rule 16).
    pub(super) fn install(
        &self,
        edit: VersionEdit,
        outputs: &[OpenTable],
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        self.install_if(|_| Ok(()), edit, outputs, count)
    }

    /// As [`install`](Self::install), if `check` agrees to what all edits before have led to.
    pub(super) fn install_if(
        &self,
        check: impl FnOnce(&Version) -> Result<()>,
        edit: VersionEdit,
        outputs: &[OpenTable],
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        let flushed_before = edit.log_number;
        let loaded = edit.last_seqno;
        let mut manifest = self.manifest.lock().unwrap_or_else(PoisonError::into_inner);
        check(&manifest.state().version)?;
        // An edit that failed may be on disk nevertheless. So no file of either outcome is removed then.
        let version = manifest.append(edit).inspect_err(|error| self.fail(error))?;
        let mut state = self.lock();
        let mut next = self.view.load().with_version(version, manifest.state().work, outputs);
        if let Some(log) = flushed_before {
            next = next.without_memtables_before(log);
            // Later logs need not wait for the sync of what tables hold now.
            while let Some(flushed) = state.frozen_logs.pop_front_if(|segment| segment.number() < log) {
                flushed.release();
            }
        }
        self.view.store(Arc::new(next));
        if let Some(last) = loaded.filter(|last| *last > state.last_seqno) {
            state.last_seqno = last;
            self.publish(last);
        }
        count(&self.store.counters);
        drop(state);
        drop(manifest);
        self.wake_all();
        Ok(())
    }
}

/// Runs `step`, and makes the engine read-only if it unwinds: what the panic left undone is unknown.
pub(super) fn fail_on_unwind<T>(core: &Core, step: impl FnOnce() -> T) -> T {
    struct Unwinding<'a>(&'a Core);
    impl Drop for Unwinding<'_> {
        fn drop(&mut self) {
            self.0.fail(&Error::ReadOnly { cause: "a thread panicked while it wrote".to_owned() });
        }
    }
    let unwinding = Unwinding(core);
    let done = step();
    std::mem::forget(unwinding);
    done
}
