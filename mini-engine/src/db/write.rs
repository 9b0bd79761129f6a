//! A write: from a batch to a frame in the log and entries in the memtable.
//!
//! One step under the write lock, in this order, for a group of batches at once where several wait (see `commit`):
//! 1. make room: wait a little where merges fall behind (see `pace`), rotate when the memtable is full, wait while the
//!    queue of frozen ones is. Nothing is held meanwhile
//!    but the caller's own batch: a wait with a reservation open would keep the memtable from being frozen, for ever if
//!    the flush that is waited for is its own.
//! 2. reserve in the memtable: everything that can fail there fails here, before anything is logged. The other way
//!    round a write that was refused for want of memory would come back at replay.
//! 3. append one frame a batch to the log that is bound to this memtable. A failure leaves nothing visible, since nothing is
//!    applied yet; part of the frame may be on disk, so the engine turns read-only (rule 7) and a reopen tells whether
//!    the batch is there, whole or not at all.
//! 4. apply the reservation, which cannot fail; then publish the sequence number. Under one lock, so numbers become
//!    visible in order and none before its entries and its frame are complete (rule 12).
//!
//! Then, without the lock, a synced write waits for the log's sync. Others go on meanwhile, and may see the write
//! before it is durable: visibility does not wait for syncs, or one synced write would stall all others.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use super::commit::commit;
use super::ingest::wait_for_loads;
use super::recycle;
use super::state::{Core, State, fail_on_unwind};
use crate::error::Result;
use crate::memtables::LoggedMemtable;
use crate::options::Options;
use crate::types::{Durability, SeqNo, WriteBatch};

/// Writes `batch`; the sequence number of its last operation.
pub(super) fn write(core: &Core, batch: WriteBatch, durability: Durability) -> Result<SeqNo> {
    if batch.is_empty() {
        persist(core, durability)?;
        return Ok(core.visible());
    }
    let logged = fail_on_unwind(core, || commit(core, batch))?;
    if durability == Durability::Synced {
        core.sync_log(&logged.log, logged.end)?;
    }
    core.store.counters.writes.add(logged.operations);
    core.store.counters.user_bytes.add(logged.user_bytes);
    Ok(logged.seqno)
}

/// Makes everything written so far as durable as asked. Buffered writes are in the system's hands when they return.
pub(super) fn persist(core: &Core, durability: Durability) -> Result<()> {
    let state = core.lock();
    core.check_writable(&state)?;
    let log = state.log.segment().clone();
    drop(state);
    match durability {
        Durability::Buffered => Ok(()),
        Durability::Synced => core.sync_whole(&log),
    }
}

/// Makes the logs durable whatever the phase: the last step of a close whose flush failed.
pub(super) fn sync_logs(core: &Core) -> Result<()> {
    let log = core.lock().log.segment().clone();
    core.sync_whole(&log)
}

/// Freezes the active memtable, unless it is empty, so that it gets flushed. The log before which everything then is in
/// frozen memtables or tables. For callers that wait for the flush; returns the error of a flush that fails for want of
/// space while this waits for room.
pub(super) fn freeze_active(core: &Core, check: impl Fn(&Core, &State) -> Result<()>) -> Result<u64> {
    let mut state = core.lock();
    let failures = state.flush_failures;
    loop {
        check(core, &state)?;
        let view = core.view.load();
        if view.active.table.is_empty() {
            return Ok(view.active.log);
        }
        drop(view);
        if core.queue_has_room() {
            break;
        }
        if let Some(error) = state.flush_error.as_ref().filter(|_| state.flush_failures != failures) {
            return Err(error.clone());
        }
        state = core.wait(&core.room, state);
    }
    rotate(core, &mut state, core.store.options.memtable_bytes)?;
    Ok(core.view.load().active.log)
}

pub(super) fn is_large(core: &Core, memory: usize) -> bool {
    memory > core.store.options.memtable_bytes / 2
}

/// Step 1: on return the active memtable may take a write of `memory` bytes.
pub(super) fn make_room<'a>(
    core: &'a Core,
    mut state: MutexGuard<'a, State>,
    memory: usize,
) -> Result<MutexGuard<'a, State>> {
    core.check_writable(&state)?;
    state = wait_for_loads(core, state)?;
    // After each wait everything is asked again: another writer may have rotated, or have filled the new memtable.
    while needs_rotation(core, &state, memory) {
        if core.has_room(&state) {
            rotate(core, &mut state, core.store.options.memtable_bytes)?;
        } else {
            state = wait_for_loads(core, stall(core, state)?)?;
        }
    }
    let view = core.view.load_full();
    if is_large(core, memory) {
        // It is empty: nobody can have read anything in it. It keeps its log, which is empty too.
        let Options { memtable_kind, memtable_bytes, .. } = core.store.options;
        let larger = LoggedMemtable::new(memtable_kind, view.active.log, memory.max(memtable_bytes))?;
        core.view.store(Arc::new(view.with_active(larger)));
    }
    Ok(state)
}

fn needs_rotation(core: &Core, state: &State, memory: usize) -> bool {
    let view = core.view.load();
    let active = &view.active.table;
    let full = state.active_is_full || active.memory_usage() >= core.store.options.memtable_bytes;
    !active.is_empty() && (full || is_large(core, memory))
}

/// Waits for a worker. By condition variable: the writer goes on as soon as there is room, or a failure to report.
#[cold]
fn stall<'a>(core: &'a Core, mut state: MutexGuard<'a, State>) -> Result<MutexGuard<'a, State>> {
    let since = Instant::now();
    core.store.counters.stalls.add(1);
    tracing::debug!("a write waits for a flush or a merge");
    while core.check_writable(&state).is_ok() && !core.has_room(&state) {
        state = core.wait(&core.room, state);
    }
    core.store.counters.stall_nanos.add(u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX));
    core.check_writable(&state)?;
    Ok(state)
}

/// Begins a new log and memtable and freezes the old ones.
///
/// The new log is created, synced and named in the directory before the first write into it, and before any manifest
/// edit can name it as the start of replay (rule 4). Its creation comes first of all: if it fails, the old pair is as
/// it was. It fails for good then, since what is left of the new log could stand between two logs with writes. Where
/// the file of an older log is to be had, the new log has its space from here on (rule 8); else a full disk shows at an append.
pub(super) fn rotate(core: &Core, state: &mut State, memtable_bytes: usize) -> Result<()> {
    let number = core.store.numbers.allocate()?;
    let memtable = LoggedMemtable::new(core.store.options.memtable_kind, number, memtable_bytes)?;
    let previous = state.log.segment().clone();
    let created = recycle::create_log(core, number, previous.clone());
    state.log = created.inspect_err(|error| core.fail_locked(state, error))?;
    state.frozen_logs.push_back(previous);
    let view = core.view.load_full();
    // Nobody writes but the holder of the lock, so this waits for nobody; it makes a write that went astray an error.
    view.active.table.freeze();
    core.view.store(Arc::new(view.rotated(memtable, state.last_seqno)));
    state.active_is_full = false;
    core.work.notify_all();
    Ok(())
}
