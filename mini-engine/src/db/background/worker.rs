//! The threads of an open database: one flushes memtables, one creates the logs that rotations need, one removes the files of obsolete tables, the
//! others compact tables.
//!
//! Flushes and compactions wait on a condition variable of the write lock and check for work under that lock, so no wake-up is lost. The threads hold
//! the core and never a handle; they end in the last phase.
//!
//! Failures (rules 7, 8, 9):
//! * No space: the worker tries again at once with the space of the reserve (`core/reserve.rs`). If that fails too, or if file handles are lacking,
//!   it tries again later, with growing backoff. The inputs are untouched, and writers that would have to wait get the error. So all work resumes
//!   without a reopen once there is space.
//! * A flush that fails for another reason makes the engine read-only: there is no other way to store its memtable.
//! * A compaction that fails because of one of its inputs ends, and later compactions avoid that table (`compaction/damage.rs`).
//! * A compaction that fails for another reason is tried again, with growing delays. It stays in progress meanwhile, so no other thread picks it.
//! * A failed sync, in whatever operation, makes the engine read-only.

use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::backoff::{Backoff, FLUSH_MAX_BACKOFF};
use super::compaction::Outcome;
use super::{compaction, flush, log};
use crate::compaction::Work;
use crate::db::core::{Core, Phase, fail_on_unwind};
use crate::error::{Error, Result};
use crate::lock::{wait, wait_timeout};

/// The maximum is long: each attempt reads the inputs again. A compaction that lacks only space, and blocks writers, is retried as often as a flush.
const COMPACTION_MAX_BACKOFF: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct Workers(Vec<JoinHandle<()>>);

impl Workers {
    /// Starts the workers. If one fails to start, the others are stopped.
    pub(crate) fn start(core: &Arc<Core>) -> Result<Workers> {
        let mut workers = Workers(Vec::new());
        let flush = ("mini-engine-flush", flush_loop as fn(&Core));
        let remove =
            ("mini-engine-remove", (|core| core.store.tables.keep_removing(|| core.remove_obsolete())) as fn(&Core));
        // One of the compaction threads is reserved for level 0; otherwise level 0 would wait as long as the longest compactions of deeper levels
        // take. There is always at least one other compaction thread.
        let level_0 = ("mini-engine-compact", (|core| compaction_loop(core, Work::Level0)) as fn(&Core));
        let others = core.store.options.compaction_threads.saturating_sub(1).max(1);
        let any = ("mini-engine-compact", (|core| compaction_loop(core, Work::Any)) as fn(&Core));
        let others = std::iter::repeat_n(any, others);
        let logs = ("mini-engine-log", log::log_loop as fn(&Core));
        for (name, run) in [flush, logs, remove, level_0].into_iter().chain(others) {
            let shared = core.clone();
            let spawned =
                thread::Builder::new().name(name.to_owned()).spawn(move || fail_on_unwind(&shared, || run(&shared)));
            match spawned {
                Ok(handle) => workers.0.push(handle),
                Err(error) => {
                    core.enter_phase(Phase::Stopped);
                    workers.join();
                    return Err(Error::io("start a thread for", core.dir())(error));
                }
            }
        }
        Ok(workers)
    }

    /// Waits for the workers to end. The core must be in [`Phase::Stopped`]; otherwise this would wait for ever.
    pub(crate) fn join(self) {
        for worker in self.0 {
            // A caller's file system may drop the last handle during a call by a worker: then this thread is the worker itself, which ends after that
            // call. Waiting for itself here would never end.
            if worker.thread().id() == thread::current().id() {
                continue;
            }
            if worker.join().is_err() {
                tracing::error!("a worker panicked");
            }
        }
    }
}

fn flush_loop(core: &Core) {
    let mut backoff = Backoff::up_to(FLUSH_MAX_BACKOFF);
    while wait_for_work(core, || !core.view.get().frozen.is_empty()) {
        core.lock().flushing.is_running = true;
        let flushed = core.with_handles(|| core.with_reserve(|| flush::flush_oldest(core)));
        core.lock().flushing.is_running = false;
        match flushed {
            Ok(()) => backoff.reset(),
            Err(error) if error.is_transient() => {
                core.make_way(&error);
                let mut state = core.lock();
                state.flushing.failures += 1;
                if state.flushing.error.is_none() {
                    tracing::warn!(%error, "no space or no file handle for a flush; it is tried again");
                }
                state.flushing.error = Some(error);
                // Callers that have requested this flush, or wait for it, get the error.
                core.room.notify_all();
                drop(backoff.wait(core, state));
            }
            Err(error) => core.fail(&error),
        }
    }
}

fn compaction_loop(core: &Core, work: Work) {
    let mut backoff = Backoff::up_to(COMPACTION_MAX_BACKOFF);
    while let Some(mut job) = wait_for_compaction(core, work) {
        let result = compaction::run_job(core, &mut job);
        if let Err(error) = &result {
            core.make_way(error);
            let is_pressing = job.plan.relieves_level_0() || core.is_tight() || !core.level_0_has_room();
            let is_awaited = error.is_transient() && is_pressing;
            backoff.limit(if is_awaited { FLUSH_MAX_BACKOFF } else { COMPACTION_MAX_BACKOFF });
        }
        let mut state = core.lock();
        if compaction::note_outcome(core, &mut state, &job, result) == Outcome::TryAgainLater {
            core.room.notify_all();
            state = backoff.wait(core, state);
        } else {
            backoff.reset();
        }
        compaction::end_compaction(core, &mut state, &job);
    }
}

/// Waits until a compaction is due, and begins it; `None` if the worker must end.
///
/// If the database was open too briefly for a compaction to begin, the worker still does a share of one that is due (`compaction/piece.rs`).
/// Otherwise each of many short-lived processes would leave one more table.
fn wait_for_compaction(core: &Core, work: Work) -> Option<compaction::CompactionJob> {
    let mut state = core.lock();
    loop {
        let is_stopped = state.phase == Phase::Stopped;
        if (!is_stopped || state.compacting.in_progress.is_unused()) && core.check_usable().is_ok() {
            let job;
            (state, job) = compaction::begin(core, state, work);
            if job.is_some() {
                return job;
            }
        }
        if is_stopped {
            return None;
        }
        if state.phase == Phase::Stopped {
            // A compaction became due after the check, while the plan was made.
            continue;
        }
        if state.compacting.in_progress.damage.retry(Instant::now()) {
            // The compaction may be the work of another thread.
            core.work.notify_all();
            continue;
        }
        let until = state.compacting.in_progress.damage.next_retry();
        state = match until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(time) => wait_timeout(&core.work, state, time),
            None => wait(&core.work, state),
        };
    }
}

/// Waits until `is_needed` is true; returns false if the worker must end. After a failure there is nothing to do, but the thread waits until the
/// shutdown ends it.
fn wait_for_work(core: &Core, is_needed: impl Fn() -> bool) -> bool {
    let mut state = core.lock();
    while state.phase != Phase::Stopped {
        if core.check_usable().is_ok() && is_needed() {
            return true;
        }
        state = wait(&core.work, state);
    }
    false
}
