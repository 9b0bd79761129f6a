//! The core of an open database: the state shared by handles, snapshots, iterators and workers.
//!
//! Lock order: the lock of drops (`keyspaces.rs`), `manifest`, the reserve's file, then `state`, then `spare`. The snapshot registry, the names of
//! keyspaces and the locks of a log and of the dead ranges come last. `state` is the write lock. It guards the places in the log, the sequence
//! numbers and the publication of views. No thread waits for the device while holding the write lock, with two exceptions: a write that finds no
//! space cuts the log (`wal/writer.rs`, W4), and the last attempt of a conditional write may read a table to check its condition
//! (`transaction/commit.rs`). Both condition variables belong to it: `work` wakes the workers, `room` wakes all threads that wait for the workers.
//!
//! Failure (rule 7) is final: the first error is kept, and every later write gets `ReadOnly` with it. A database that was opened read-only counts as
//! failed from the start, and has no workers.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, TryLockError};
use std::time::SystemTime;

use super::clock::Clock;
use super::cover::{Cover, Reserve};
use super::dead_ranges::PresentDeadRanges;
use super::directory::DirectoryLock;
use super::exclusive::ExclusiveTurn;
use super::failure::Failure;
use super::keyspaces::Keyspaces;
use super::log_sync::LogSync;
use super::logs::Logs;
use super::next_log::SpareFile;
use super::publication::Publication;
use super::recent_writes::{RecentWrites, Recording};
use super::snapshots::SnapshotRegistry;
use super::view::{CurrentView, View};
use super::write_controller::WriteController;
use crate::compaction::{InProgress, TableStore};
use crate::error::{Error, Result};
use crate::lock::{lock, on_unwind};
use crate::manifest::Manifest;
use crate::memtables::MemtableFactory;
use crate::types::{KeyspaceRef, SeqNo};
use crate::wal;

/// The reason for rejecting writes to a database that was opened read-only.
pub(crate) const OPENED_READ_ONLY: &str = "it was opened read-only";

/// The phase of an open database. It only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Open,
    /// Handles may no longer read or write; workers still flush.
    Closing,
    Stopped,
}

/// The state that the write lock guards.
pub(crate) struct State {
    pub(crate) logs: Logs,
    /// The current view: who has the lock need not pin it.
    pub(crate) view: Arc<View>,
    /// The last sequence number that was assigned. Concurrent writes may have numbers up to it that are not visible yet.
    pub(crate) last_seqno: SeqNo,
    /// The newest writes, for commits of transactions; `None` before the first transaction.
    pub(crate) recent: Option<RecentWrites>,
    pub(crate) tickets: Tickets,
    pub(crate) active: ActiveMemtable,
    pub(crate) cover: Cover,
    /// The number of tables on level 0 of the present view.
    pub(crate) level_0_tables: usize,
    pub(crate) phase: Phase,
    /// Whether an ingest is in progress; then all writers wait.
    pub(crate) is_ingesting: bool,
    pub(crate) flushing: Flushing,
    pub(crate) compacting: Compacting,
    pub(crate) controller: WriteController,
}

/// The tickets of writes (`publication.rs`).
#[derive(Default)]
pub(crate) struct Tickets {
    /// The ticket of the next write.
    pub(crate) next: u64,
    /// Tickets below this one had free slots at the last check.
    pub(crate) with_slots: u64,
}

/// The fill of the active memtable.
#[derive(Default)]
pub(crate) struct ActiveMemtable {
    /// An upper estimate of the memtable's memory in bytes after all started writes.
    pub(crate) estimate: usize,
    /// A write may begin without checks of memory and the reserve if the estimate with it is at most this.
    pub(crate) ready_upto: usize,
    /// Whether the memtable accepts no further write, because it is reserved for one large batch.
    pub(crate) is_full: bool,
}

/// The running flush, and those that failed for lack of space or of file handles.
#[derive(Default)]
pub(crate) struct Flushing {
    /// True from before the table is begun until its log is removed.
    pub(crate) is_running: bool,
    pub(crate) failures: u64,
    /// The error of the last failed flush, until one succeeds.
    pub(crate) error: Option<Error>,
}

/// The running compactions, and those that failed.
#[derive(Default)]
pub(crate) struct Compacting {
    pub(crate) in_progress: InProgress,
    /// The number of callers whose compactions wait for others to end.
    pub(crate) ranges_waiting: usize,
    /// The error of the last compaction, if it failed.
    pub(crate) error: Option<Error>,
    /// The error of the last failed compaction of level 0, until one succeeds.
    pub(crate) level_0_error: Option<Error>,
}

/// The shared state of one open database.
pub(crate) struct Core {
    pub(crate) store: TableStore,
    pub(crate) view: CurrentView,
    /// Makes writes visible to readers in the order of their sequence numbers.
    pub(crate) publication: Publication,
    pub(crate) snapshots: SnapshotRegistry,
    pub(crate) clock: Clock,
    pub(crate) dead: PresentDeadRanges,
    pub(crate) recording: Recording,
    pub(crate) exclusive: ExclusiveTurn,
    pub(crate) memtables: MemtableFactory,
    pub(crate) manifest: Mutex<Manifest>,
    pub(crate) keyspaces: Keyspaces,
    state: Mutex<State>,
    /// The file that the next log will reuse, if there is one. Locked only by `recycle`.
    pub(crate) spare: Mutex<SpareFile>,
    pub(crate) reserve: Reserve,
    /// The number of writers that wait for the write lock.
    waiting_writers: AtomicUsize,
    pub(crate) room: Condvar,
    pub(crate) work: Condvar,
    log_sync: LogSync,
    failure: Failure,
    closed: AtomicBool,
    /// Set to cancel a running flush or compaction.
    pub(crate) cancel: AtomicBool,
    /// The lock on the directory. The last field: when it is dropped, no thread reads the files any more (rule 13).
    _lock: DirectoryLock,
}

impl std::fmt::Debug for Core {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Leaves out the contents, which are the whole database.
        f.debug_struct("Core").field("dir", &self.store.dir).field("visible", &self.visible()).finish_non_exhaustive()
    }
}

/// The result of recovery, from which the core is made.
pub(crate) struct Opened {
    pub(crate) store: TableStore,
    pub(crate) view: View,
    pub(crate) log: wal::Writer,
    /// Earlier logs, whose writes are in the active memtable.
    pub(crate) earlier_logs: Vec<(u64, u64)>,
    pub(crate) last_seqno: SeqNo,
    pub(crate) manifest: Manifest,
    /// The length of the reserve, and the part of its required size that is not for memtables.
    pub(crate) reserve: (u64, u64),
}

impl Opened {
    /// Without earlier logs and without a reserve.
    pub(crate) fn new(
        store: TableStore,
        view: View,
        log: wal::Writer,
        last_seqno: SeqNo,
        manifest: Manifest,
    ) -> Opened {
        Opened { store, view, log, earlier_logs: Vec::new(), last_seqno, manifest, reserve: (0, 0) }
    }
}

impl Core {
    pub(crate) fn new(opened: Opened, lock: DirectoryLock) -> Core {
        let view = Arc::new(opened.view);
        let (reserve, cover) = Reserve::new(opened.reserve.0, opened.reserve.1);
        let state = State {
            logs: Logs::new(opened.log, opened.earlier_logs),
            view: view.clone(),
            last_seqno: opened.last_seqno,
            recent: None,
            tickets: Tickets::default(),
            active: ActiveMemtable { estimate: view.active.memory_usage(), ..ActiveMemtable::default() },
            cover,
            level_0_tables: view.version.runs(0).len(),
            phase: Phase::Open,
            is_ingesting: false,
            flushing: Flushing::default(),
            compacting: Compacting::default(),
            controller: WriteController::default(),
        };
        let (options, keyspaces) = (&opened.store.options, &opened.manifest.state().keyspaces);
        let core = Core {
            memtables: MemtableFactory::new(options.memtable_kind, options.memtable_bytes),
            clock: Clock::new(options.time_source.clone(), opened.manifest.state().clock),
            store: opened.store,
            view: CurrentView::new(view),
            publication: Publication::new(opened.last_seqno),
            snapshots: SnapshotRegistry::default(),
            dead: PresentDeadRanges::default(),
            recording: Recording::default(),
            exclusive: ExclusiveTurn::default(),
            keyspaces: Keyspaces::new(keyspaces),
            manifest: Mutex::new(opened.manifest),
            state: Mutex::new(state),
            spare: Mutex::default(),
            reserve,
            waiting_writers: AtomicUsize::new(0),
            room: Condvar::new(),
            work: Condvar::new(),
            log_sync: LogSync::default(),
            failure: Failure::none(),
            closed: AtomicBool::new(false),
            cancel: AtomicBool::new(false),
            _lock: lock,
        };
        core.note_cover(&mut core.lock());
        core
    }

    /// The expiry of an entry that is inserted into `keyspace` now without an explicit expiry.
    #[inline]
    pub(crate) fn default_expiry(&self, keyspace: &KeyspaceRef) -> Option<SystemTime> {
        keyspace.expire_after().map(|lifetime| self.clock.end_of(lifetime))
    }

    pub(crate) fn dir(&self) -> &PathBuf {
        &self.store.dir
    }

    /// Takes the write lock. A panic of its holder has made the engine read-only ([`fail_on_unwind`]), so poisoning adds no information.
    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Takes the write lock, if no thread has it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, State>> {
        match self.state.try_lock() {
            Ok(state) => Some(state),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Like [`Core::lock`], for a write, which is counted while it waits.
    pub(crate) fn lock_for_write(&self) -> MutexGuard<'_, State> {
        self.try_lock().unwrap_or_else(|| {
            // Relaxed: the count is only for metrics; the lock orders everything else.
            self.waiting_writers.fetch_add(1, Ordering::Relaxed);
            let state = self.lock();
            self.waiting_writers.fetch_sub(1, Ordering::Relaxed);
            state
        })
    }

    pub(crate) fn waiting_writers(&self) -> usize {
        self.waiting_writers.load(Ordering::Relaxed)
    }

    /// The newest sequence number that readers may see. Callers pin a view first (rule 16): in the other order, a compaction in between could drop
    /// the version that is visible at this number.
    pub(crate) fn visible(&self) -> SeqNo {
        self.publication.visible()
    }

    /// Waits until `seqno`, which was assigned, is visible: until all writes up to it are in their logs and memtables. Their threads do not need the
    /// write lock to complete, so the holder of the lock may wait here.
    ///
    /// # Errors
    /// [`Error::ReadOnly`] if one of those threads has failed.
    #[inline]
    pub(crate) fn wait_visible(&self, seqno: SeqNo) -> Result<()> {
        match self.publication.wait(seqno, || self.failure.has_occurred()) {
            true => Ok(()),
            false => self.check_usable(),
        }
    }

    /// Fails once the database was closed.
    pub(crate) fn check_open(&self) -> Result<()> {
        // Acquire, so that a thread that was informed of the close by other means sees it here.
        if self.closed.load(Ordering::Acquire) { Err(Error::Closed) } else { Ok(()) }
    }

    /// Fails after the first failure to write or sync, and in a fork.
    #[inline]
    pub(crate) fn check_usable(&self) -> Result<()> {
        self.failure.check()
    }

    /// Fails in a fork. Comes before a lock of the state: a worker may have held it at the moment of the fork, and then it stays locked here for ever.
    #[inline]
    pub(crate) fn check_not_forked(&self) -> Result<()> {
        if self.is_forked() { self.check_usable() } else { Ok(()) }
    }

    /// Whether this process is a fork of the one that opened the database: it has no workers, and the files are not its own.
    pub(crate) fn is_forked(&self) -> bool {
        self.failure.is_forked()
    }

    /// Rejects every write from the start: the database was opened read-only.
    pub(crate) fn refuse_writes(&self) {
        self.failure.set(&Error::ReadOnly { cause: OPENED_READ_ONLY.to_owned() });
    }

    pub(crate) fn check_writable(&self, state: &State) -> Result<()> {
        if state.phase != Phase::Open {
            return Err(Error::Closed);
        }
        self.check_usable()
    }

    /// Makes the engine read-only for ever, unless it already is, and wakes all waiting threads, so that they notice it.
    pub(crate) fn fail(&self, error: &Error) {
        self.record_failure(error);
        // The holder of the write lock may be waiting for the write of this thread to complete.
        self.publication.wake_all();
        // Waiting threads check for a failure under the lock before they wait. Taking the lock once here ensures that each of them has either seen
        // the failure or already waits, and so is woken.
        drop(self.lock());
        self.wake_all();
    }

    /// Like [`Core::fail`], for the holder of the write lock.
    pub(crate) fn fail_locked(&self, _held: &State, error: &Error) {
        self.record_failure(error);
        self.wake_all();
    }

    fn record_failure(&self, error: &Error) {
        if self.failure.set(error) {
            tracing::error!(%error, "the database is read-only from now on");
        }
    }

    pub(crate) fn wake_all(&self) {
        self.publication.wake_all();
        self.room.notify_all();
        self.work.notify_all();
    }

    /// Moves to the next phase. Returns the previous one.
    pub(crate) fn enter_phase(&self, phase: Phase) -> Phase {
        let mut state = self.lock();
        let before = state.phase;
        state.phase = before.max(phase);
        self.closed.store(true, Ordering::Release);
        let stopped = state.phase == Phase::Stopped;
        self.cancel.store(stopped, Ordering::Relaxed);
        drop(state);
        if stopped {
            self.store.tables.end_removing();
        }
        self.wake_all();
        before
    }

    /// Makes `view` the current one.
    pub(crate) fn publish_view(&self, state: &mut State, view: View) {
        state.view = Arc::new(view);
        self.view.set(state.view.clone());
        self.store.tables.note_retired_view();
    }

    /// Frees the views that no reader uses, and removes the files of obsolete tables that no view has. Returns the number of views in use.
    pub(crate) fn remove_obsolete(&self) -> usize {
        let count = self.view.free_retired();
        self.store.tables.remove_obsolete();
        count
    }

    /// Runs `step`; if it lacks file handles, frees some and runs it again. Must not be called with a lock held.
    pub(crate) fn with_handles<T>(&self, mut step: impl FnMut() -> Result<T>) -> Result<T> {
        step().or_else(|error| match error.is_want_of_handles() {
            true => {
                self.make_way(&error);
                step()
            }
            false => Err(error),
        })
    }

    /// Closes tables, and the logs of views that no reader uses any more, if file handles ran out, so that the next attempt has some.
    pub(crate) fn make_way(&self, error: &Error) {
        if error.is_want_of_handles() {
            self.store.tables.make_way();
            self.remove_obsolete();
        }
    }

    /// Whether the queue of frozen memtables has room for another one.
    pub(crate) fn queue_has_room(&self) -> bool {
        self.view.get().frozen.len() < self.store.options.immutable_memtables
    }

    /// Whether level 0 may get another table. While space is short it always may, because the removals in that table may help compactions.
    pub(crate) fn level_0_has_room(&self) -> bool {
        self.reserve.has_removals.load(Ordering::Relaxed)
            || self.view.get().version.runs(0).len() < self.store.options.stop_tables()
    }

    /// Whether writers may fill another memtable.
    pub(crate) fn has_room(&self) -> bool {
        self.level_0_has_room() && self.queue_has_room()
    }

    /// Makes the log durable up to `end`, and all earlier logs completely (rule 5, which [`wal::Segment::sync`] ensures).
    pub(crate) fn sync_log(&self, log: &wal::Segment, end: u64) -> Result<()> {
        let is_synced = || log.synced() >= end;
        if is_synced() { Ok(()) } else { self.log_sync.in_turn(is_synced, || self.sync_whole(log)) }
    }

    /// Makes everything that was written so far durable, in every phase.
    pub(crate) fn sync_logs(&self) -> Result<()> {
        let state = self.lock();
        let (log, end, last_seqno) = (state.logs.active.segment().clone(), state.logs.active.end(), state.last_seqno);
        drop(state);
        self.wait_visible(last_seqno)?;
        log.complete(end);
        match log.has_frames_before(end) {
            true => self.sync_log(&log, end),
            false => self.sync_whole(&log),
        }
    }

    /// Makes the log and all earlier ones durable. A log without frames needs no sync itself, but earlier logs may need one. So this does not use the
    /// shortcut of [`sync_log`](Self::sync_log), which needs the end of a frame. A failure ends writing, and so does a panic during the sync: its
    /// effect is unknown, and the next sync would not report it (rule 7).
    pub(crate) fn sync_whole(&self, log: &wal::Segment) -> Result<()> {
        // After a failed sync of any log, no write is acknowledged as synced, even if another sync would succeed: that sync would not cover pages
        // that the kernel has dropped (rule 7).
        self.check_usable()?;
        fail_on_unwind(self, || log.sync()).inspect_err(|error| self.fail(error))
    }
}

/// Runs `step`, and makes the engine read-only if it panics: the state after the panic is unknown.
pub(crate) fn fail_on_unwind<T>(core: &Core, step: impl FnOnce() -> T) -> T {
    on_unwind(step, || core.fail(&Error::ReadOnly { cause: "a thread panicked while it wrote".to_owned() }))
}
