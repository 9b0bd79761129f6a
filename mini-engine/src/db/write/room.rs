//! Makes room for a write: slows it down, rotates the memtable and its log, or waits for the workers.
//!
//! Every wait releases the write lock, so the caller checks everything again afterwards.

use std::sync::MutexGuard;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::db::core::{Core, MAX_REMOVAL, Phase, REMOVALS, State, View, fail_on_unwind};
use crate::error::{Error, Result};
use crate::lock::{wait, wait_timeout};
use crate::memtables::memory_for;
use crate::metrics::Waits;
use crate::types::{BatchOp, WriteBatch};

/// Freezes the active memtable, unless it is empty, so that it is flushed. Returns a log number: the writes in all earlier logs are then in frozen
/// memtables or tables. Used by callers that wait for the flush. They wait for room on level 0 like writers. Returns the error of a flush or a
/// compaction that lacks space while this waits, or of a log that cannot be created.
pub(crate) fn freeze_active(core: &Core, check: impl Fn(&Core, &State) -> Result<()>) -> Result<u64> {
    core.check_not_forked()?;
    let mut state = core.lock();
    let failures = state.flushing.failures;
    let mut has_waited = false;
    loop {
        // This wait is done first, because it may release the lock. The later checks stay valid as long as the lock is held.
        let stalled;
        (state, stalled) = core.check_not_stalled(state);
        check(core, &state)?;
        core.wait_visible(state.last_seqno)?;
        if state.view.active.table.is_empty() {
            return Ok(state.view.active.log);
        }
        if core.has_room() {
            if rotate(core, &mut state)? {
                return Ok(state.view.active.log);
            }
            state = wait_for_log(core, state)?;
            continue;
        }
        stalled?;
        let flush = state.flushing.error.as_ref().filter(|_| state.flushing.failures != failures);
        if let Some(error) = flush.or_else(|| error_of_compactions(core, &state)) {
            return Err(error.clone());
        }
        if !std::mem::replace(&mut has_waited, true) {
            core.store.counters.stalls.count.add(1);
        }
        state = wait(&core.room, state);
    }
}

/// The error that keeps compactions from taking tables off a full level 0, if any. Failed compactions are tried again, but with growing delays.
fn error_of_compactions<'a>(core: &Core, state: &'a State) -> Option<&'a Error> {
    let is_gone_around = |error: &Error| error.unreadable_file().is_some();
    let is_relieved = state.compacting.in_progress.relieves_level_0()
        || state.compacting.level_0_error.as_ref().is_some_and(is_gone_around);
    if core.level_0_has_room() || is_relieved {
        return None;
    }
    // A compaction of deeper levels may block level 0, and holds its tables until it succeeds.
    let is_in_the_way = |error: &&Error| error.is_transient() && !state.compacting.in_progress.is_at_work();
    state.compacting.level_0_error.as_ref().or(state.compacting.error.as_ref().filter(is_in_the_way))
}

/// Fails if space or file handles are lacking for the flush or the compaction of level 0 that a writer waits for (rule 8). Both are tried again in
/// any case, but the writer gets the error at once instead of waiting until there is space.
pub(crate) fn check_space(core: &Core, state: &State) -> Result<()> {
    let flush = state.flushing.error.as_ref().filter(|_| !core.queue_has_room());
    let error = flush.or_else(|| error_of_compactions(core, state).filter(|error| error.is_transient()));
    match error.filter(|_| !core.store.options.wait_for_space) {
        Some(error) => Err(error.clone()),
        None => Ok(()),
    }
}

pub(super) fn is_large(core: &Core, memory: usize) -> bool {
    memory > core.store.options.memtable_bytes / 2
}

/// Whether a write of `memory` bytes may use the space of the reserve (R4).
pub(super) fn is_removal(batch: &WriteBatch, memory: usize) -> bool {
    let removes = |op| matches!(op, BatchOp::Remove { .. } | BatchOp::RemoveRange { .. });
    memory <= MAX_REMOVAL && batch.iter().all(removes)
}

/// The condition that a write must wait for before it can begin.
pub(super) enum Obstacle {
    /// The end of an ingest.
    Load,
    /// A larger reserve.
    Reserve,
    /// Room for another memtable: a flush, or a compaction of level 0.
    Memtable,
    Log,
}

/// Whether there is room already, as for nearly every write. Reads only these few words.
#[inline(always)]
pub(super) fn is_ready(core: &Core, state: &State, memory: usize) -> bool {
    core.check_writable(state).is_ok()
        && !state.is_ingesting
        && !state.logs.active.is_closed()
        && !state.active.is_full
        && state.active.estimate.saturating_add(memory) <= state.active.ready_upto
        && !is_large(core, memory)
}

/// Step 1, without waiting. If it returns no obstacle, the active memtable and its log have room for the write.
#[cold]
pub(super) fn make_room(core: &Core, state: &mut State, batch: &WriteBatch, memory: usize) -> Result<Option<Obstacle>> {
    if state.active.estimate.saturating_add(memory) > state.active.ready_upto {
        state.active.estimate = memory_usage(core);
    }
    loop {
        core.check_writable(state)?;
        if state.is_ingesting {
            return Ok(Some(Obstacle::Load));
        }
        if !core.is_covered(state, memory) {
            if !is_removal(batch, memory) {
                return Ok(Some(Obstacle::Reserve));
            }
            core.reserve.has_removals.store(true, Ordering::Relaxed);
        }
        if !needs_rotation(core, state, memory)? {
            return Ok(None);
        } else if !core.has_room() {
            return Ok(Some(Obstacle::Memtable));
        } else if !rotate(core, state)? {
            return Ok(Some(Obstacle::Log));
        }
    }
}

/// Waits until a write of `batch` could begin without waiting.
pub(crate) fn wait_for_room(core: &Core, batch: &WriteBatch) -> Result<()> {
    core.check_not_forked()?;
    fail_on_unwind(core, || {
        let mut state = slow_down(core, core.lock_for_write(), 0);
        state.controller.admit_next();
        let memory = memory_for(batch.len(), batch.ranges(), batch.payload().len());
        // After each wait everything is checked again: another writer may have rotated, or filled the new memtable.
        while let Some(obstacle) = make_room(core, &mut state, batch, memory)? {
            state = wait_for(obstacle, core, state, memory)?;
        }
        Ok(())
    })
}

/// Waits until the obstacle may have ended.
#[cold]
pub(super) fn wait_for<'a>(
    obstacle: Obstacle,
    core: &'a Core,
    state: MutexGuard<'a, State>,
    memory: usize,
) -> Result<MutexGuard<'a, State>> {
    match obstacle {
        Obstacle::Load => Ok(wait(&core.room, state)),
        Obstacle::Reserve => {
            let _wait = Wait::begin(&core.store.counters.log_waits);
            wait_for_reserve(core, state, memory)
        }
        Obstacle::Memtable => stall(core, state),
        Obstacle::Log => {
            let _wait = Wait::begin(&core.store.counters.log_waits);
            wait_for_log(core, state)
        }
    }
}

/// Replaces the active memtable, which is empty, with a larger one, for a write of `memory` bytes.
#[cold]
pub(super) fn enlarge_memtable(core: &Core, state: &mut State, memory: usize) -> Result<()> {
    // The active memtable is empty, so no reader misses an entry. The larger memtable belongs to the same log, which is empty too.
    let larger = core.memtables.make(state.view.active.log, memory)?;
    let larger = View { active: larger, ..View::clone(&state.view) };
    core.publish_view(state, larger);
    Ok(())
}

/// Waits until the reserve is large enough for a write of `memory` bytes.
///
/// # Errors
/// Errors: that of a failed attempt to enlarge the reserve that began after the call, unless `wait_for_space` is set; [`Error::Closed`].
pub(crate) fn wait_for_reserve<'a>(
    core: &'a Core,
    mut state: MutexGuard<'a, State>,
    memory: usize,
) -> Result<MutexGuard<'a, State>> {
    let begun = state.cover.attempts.begun();
    while !core.is_covered(&state, memory) {
        core.check_writable(&state)?;
        match state.cover.attempts.failure_after(begun).filter(|_| core.is_tight()) {
            Some(error) if !core.store.options.wait_for_space => return Err(error.clone()),
            // The attempt is repeated from time to time.
            Some(_) => {}
            None => {
                if state.cover.want(memory) {
                    core.work.notify_all();
                }
            }
        }
        state = wait(&core.room, state);
    }
    Ok(state)
}

/// Whether the active memtable takes at least `bytes` of memory. The memtable's counters are read only if the estimates of its writes reach `bytes`,
/// because they are on cache lines that other writers write.
#[inline]
fn has_reached(core: &Core, state: &mut State, bytes: usize) -> bool {
    if state.active.estimate >= bytes {
        state.active.estimate = memory_usage(core);
    }
    state.active.estimate >= bytes
}

#[cold]
fn memory_usage(core: &Core) -> usize {
    core.view.get().active.memory_usage()
}

/// Whether the active memtable has no room for a write of `memory` bytes.
fn is_full(core: &Core, state: &mut State, memory: usize) -> bool {
    let full = core.store.options.memtable_bytes;
    let full = if core.is_tight() { full.min(REMOVALS) } else { full };
    state.active.is_full || has_reached(core, state, full) || is_large(core, memory)
}

fn needs_rotation(core: &Core, state: &mut State, memory: usize) -> Result<bool> {
    // A closed log accepts no more frames, even if its memtable is empty.
    if state.logs.active.is_closed() {
        return Ok(true);
    }
    if !is_full(core, state, memory) {
        return Ok(false);
    }
    // A running write may not be in the memtable yet.
    core.wait_visible(state.last_seqno)?;
    Ok(!state.view.active.table.is_empty())
}

/// Waits for a worker on a condition variable: the writer continues as soon as there is room, or a failure to return. The write has not begun, so it
/// may be tried again.
#[cold]
fn stall<'a>(core: &'a Core, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
    let _wait = Wait::begin(&core.store.counters.stalls);
    tracing::debug!("a write waits for a flush or a compaction");
    loop {
        let stalled;
        // `check_not_stalled` comes first, because it may release the lock. The later checks stay valid as long as the lock is held.
        (state, stalled) = core.check_not_stalled(state);
        core.check_writable(&state)?;
        if core.has_room() {
            return Ok(state);
        }
        stalled?;
        check_space(core, &state)?;
        state = wait(&core.room, state);
    }
}

/// A wait of a writer, which is counted when it begins and timed until it ends.
struct Wait<'a> {
    waits: &'a Waits,
    begun: Instant,
}

impl Wait<'_> {
    fn begin(waits: &Waits) -> Wait<'_> {
        waits.count.add(1);
        Wait { waits, begun: Instant::now() }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        self.waits.nanos.add(u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
    }
}

/// If the next log exists, replaces the log and the memtable and freezes the old ones; returns false otherwise.
///
/// The next log was created, synced and named in the directory before `rotate` gets it, and so before the first write into it, and before any
/// manifest edit can refer to it as the start of replay (rule 4). Nothing here waits for the device.
#[inline(never)]
pub(crate) fn rotate(core: &Core, state: &mut State) -> Result<bool> {
    let Some(number) = state.logs.next.number() else { return Ok(false) };
    // Running writers finish without the lock. After that the memtable is complete, and so are the places in its log.
    core.wait_visible(state.last_seqno)?;
    let memtable = core.memtables.make(number, 0)?;
    let Some(segment) = state.logs.rotate() else { return Ok(false) };
    // No writer is inside the memtable, so this does not wait. A later write to the frozen memtable fails with an error.
    state.view.active.table.freeze();
    let rotated = state.view.rotated(memtable, segment, state.last_seqno);
    core.publish_view(state, rotated);
    state.active.is_full = false;
    state.active.estimate = 0;
    core.reserve.has_removals.store(false, Ordering::Relaxed);
    core.note_cover(state);
    core.work.notify_all();
    Ok(true)
}

/// Requests the next log if the active memtable is half full.
pub(super) fn want_log_ahead(core: &Core, state: &mut State) {
    let half = core.store.options.memtable_bytes / 2;
    if state.logs.next.may_be_wanted_ahead() && has_reached(core, state, half) && state.logs.next.want_ahead() {
        core.work.notify_all();
    }
}

/// Waits for the next log, or until another writer has rotated to it.
///
/// # Errors
/// Errors: that of a failed attempt to create the log that began after the call; the error that has ended writing; [`Error::Closed`].
fn wait_for_log<'a>(core: &'a Core, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
    let (begun, number) = (state.logs.next.attempts.begun(), state.logs.active.segment().number());
    while !state.logs.next.is_ready() && state.logs.active.segment().number() == number {
        if let Some(error) = state.logs.next.attempts.failure_after(begun) {
            return Err(error.clone());
        }
        core.check_usable()?;
        if state.phase == Phase::Stopped {
            return Err(Error::Closed);
        }
        if state.logs.next.want() {
            core.work.notify_all();
        }
        state = wait(&core.room, state);
    }
    Ok(state)
}

/// Waits as long as a write of `bytes` has to, or until compactions have caught up.
#[inline]
pub(super) fn slow_down<'a>(core: &'a Core, state: MutexGuard<'a, State>, bytes: usize) -> MutexGuard<'a, State> {
    match state.level_0_tables < core.store.options.slowdown_tables() {
        true => state,
        false => delay_write(core, state, bytes),
    }
}

#[cold]
fn delay_write<'a>(core: &'a Core, mut state: MutexGuard<'a, State>, bytes: usize) -> MutexGuard<'a, State> {
    let (tables, options) = (state.level_0_tables, &core.store.options);
    let Some(until) = state.controller.delay_until(bytes, tables, options, Instant::now()) else { return state };
    let _wait = Wait::begin(&core.store.counters.slowdowns);
    tracing::trace!(tables, "a write is slowed down");
    while core.check_writable(&state).is_ok() && state.level_0_tables >= options.slowdown_tables() {
        let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else { break };
        state = wait_timeout(&core.room, state, left);
    }
    state
}

/// Like [`slow_down`], for a write that does not wait. Returns whether the write may begin; later writes wait for its debt.
pub(super) fn is_fast_enough(core: &Core, state: &mut State, bytes: usize) -> bool {
    state.controller.admits(bytes, state.level_0_tables, &core.store.options, Instant::now())
}
