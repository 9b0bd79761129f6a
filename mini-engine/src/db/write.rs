//! A write: from a batch to a frame in the log and entries in the memtable.
//!
//! One step under the write lock, in this order:
//! 1. make room: rotate when the memtable is full, wait while the queue of frozen ones is. Nothing is held meanwhile
//!    but the caller's own batch: a wait with a reservation open would keep the memtable from being frozen, for ever if
//!    the flush that is waited for is its own.
//! 2. reserve in the memtable: everything that can fail there fails here, before anything is logged. The other way
//!    round a write that was refused for want of memory would come back at replay.
//! 3. append one frame to the log that is bound to this memtable. A failure leaves nothing visible, since nothing is
//!    applied yet; part of the frame may be on disk, so the engine turns read-only (rule 7) and a reopen tells whether
//!    the batch is there, whole or not at all.
//! 4. apply the reservation, which cannot fail; then publish the sequence number. Under one lock, so numbers become
//!    visible in order and none before its entries and its frame are complete (rule 12).
//!
//! Then, without the lock, a synced write waits for the log's sync. Others go on meanwhile, and may see the write
//! before it is durable: visibility does not wait for syncs, or one synced write would stall all others.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use fastskip::{InsertError, Op};

use super::state::{Core, State, fail_on_unwind};
use super::view::View;
use crate::error::{Error, Result};
use crate::memtables::{LoggedMemtable, memory_for, op};
use crate::types::{Durability, MAX_SEQNO, SeqNo, WriteBatch};
use crate::wal;

/// How much more memory a batch is given that did not fit where the estimate said it would.
const SECOND_TRY_FACTOR: usize = 4;

/// Where a write ends: all that is needed to make it durable later.
struct Logged {
    seqno: SeqNo,
    log: Arc<wal::Segment>,
    end: u64,
    /// Bytes of keys and values.
    user_bytes: u64,
}

/// Writes `batch`; the sequence number of its last operation.
pub(super) fn write(core: &Core, batch: &WriteBatch, durability: Durability) -> Result<SeqNo> {
    if batch.is_empty() {
        persist(core, durability)?;
        return Ok(core.visible());
    }
    let logged = fail_on_unwind(core, || commit(core, batch))?;
    if durability == Durability::Synced {
        core.sync_log(&logged.log, logged.end)?;
    }
    core.store.counters.writes.add(u64::from(batch.count()));
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
        Durability::Synced => sync_whole(core, &log),
    }
}

/// Makes the logs durable whatever the phase: the last step of a close whose flush failed.
pub(super) fn sync_logs(core: &Core) -> Result<()> {
    let log = core.lock().log.segment().clone();
    sync_whole(core, &log)
}

/// A log without frames is as good as synced, and yet the logs before it may not be: so this does not take the short
/// cut of [`Core::sync_log`], which asks for a frame's end.
fn sync_whole(core: &Core, log: &wal::Segment) -> Result<()> {
    core.check_usable()?;
    log.sync().inspect_err(|error| core.fail(error))
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

fn commit(core: &Core, batch: &WriteBatch) -> Result<Logged> {
    let ops: Vec<Op<'_>> = batch.iter().map(op).collect();
    let memory = memory_for(ops.len(), batch.payload().len());
    let mut state = make_room(core, core.lock(), memory)?;
    if let Some(logged) = log_and_apply(core, &mut state, batch, &ops)? {
        return Ok(logged);
    }
    // The estimate was too low for this memtable. A fresh one of a multiple, for this batch alone.
    let memory = memory.saturating_mul(SECOND_TRY_FACTOR).max(core.store.options.memtable_bytes);
    let mut state = make_room(core, state, memory)?;
    let full =
        || Error::Full(format!("a batch of {} bytes does not fit into a memtable of {memory}", batch.payload().len()));
    log_and_apply(core, &mut state, batch, &ops)?.ok_or_else(full)
}

/// Steps 2 to 4. `None` if the memtable has no room; nothing has happened then.
fn log_and_apply(core: &Core, state: &mut State, batch: &WriteBatch, ops: &[Op<'_>]) -> Result<Option<Logged>> {
    let first = state.last_seqno + 1;
    let last = state.last_seqno.saturating_add(ops.len() as u64);
    if last > MAX_SEQNO {
        return Err(Error::Full(format!("sequence numbers are used up: at most {MAX_SEQNO} are allowed")));
    }
    let view = core.view.load_full();
    let reservation = match view.active.table.reserve(ops) {
        Ok(reservation) => reservation,
        Err(InsertError::Full) => return Ok(None),
        Err(error @ InsertError::TooLarge) => return Err(Error::InvalidArgument(error.to_string())),
        Err(error) => {
            // Only the holder of the write lock freezes, and puts a fresh memtable in place when it does.
            let error = Error::ReadOnly { cause: format!("the active memtable refused a write: {error}") };
            core.fail_locked(state, &error);
            return Err(error);
        }
    };
    let appended = state.log.append(first, batch.count(), batch.payload());
    let end = appended.inspect_err(|error| core.fail_locked(state, error))?;
    reservation.apply(first);
    state.last_seqno = last;
    core.publish(last);
    let log = state.log.segment().clone();
    finish_large(core, state, &view, ops, batch);
    Ok(Some(Logged { seqno: last, log, end, user_bytes: ops.iter().map(op_bytes).sum() }))
}

/// A batch larger than half a memtable has log and memtable for itself: they are full from now on. They are frozen at
/// once if the queue has room; else the next write does it, so that this one need not wait for a flush.
fn finish_large(core: &Core, state: &mut State, view: &View, ops: &[Op<'_>], batch: &WriteBatch) {
    let memtable_bytes = core.store.options.memtable_bytes;
    if !is_large(core, memory_for(ops.len(), batch.payload().len())) {
        return;
    }
    state.active_is_full = true;
    if core.has_room(state)
        && let Err(error) = rotate(core, state, memtable_bytes)
    {
        // The batch is written. The next write meets the failure and reports it.
        tracing::warn!(log = view.active.log, %error, "could not freeze the memtable of a large batch");
    }
}

fn is_large(core: &Core, memory: usize) -> bool {
    memory > core.store.options.memtable_bytes / 2
}

/// Step 1: on return the active memtable may take a write of `memory` bytes.
fn make_room<'a>(core: &'a Core, mut state: MutexGuard<'a, State>, memory: usize) -> Result<MutexGuard<'a, State>> {
    core.check_writable(&state)?;
    // After each wait everything is asked again: another writer may have rotated, or have filled the new memtable.
    while needs_rotation(core, &state, memory) {
        if core.has_room(&state) {
            rotate(core, &mut state, core.store.options.memtable_bytes)?;
        } else {
            state = stall(core, state)?;
        }
    }
    let view = core.view.load_full();
    if is_large(core, memory) {
        // It is empty: nobody can have read anything in it. It keeps its log, which is empty too.
        let larger = LoggedMemtable::new(view.active.log, memory.max(core.store.options.memtable_bytes))?;
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
/// it was. It fails for good then, since what is left of the new log could stand between two logs with writes.
pub(super) fn rotate(core: &Core, state: &mut State, memtable_bytes: usize) -> Result<()> {
    let number = core.store.numbers.allocate()?;
    let memtable = LoggedMemtable::new(number, memtable_bytes)?;
    let previous = state.log.segment().clone();
    let counters = core.store.counters.clone();
    let created = wal::Writer::create(&*core.store.fs, &core.store.dir, number, Some(previous.clone()), counters);
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

fn op_bytes(op: &Op<'_>) -> u64 {
    match op {
        Op::Put { key, value } => key.len() as u64 + value.len() as u64,
        Op::Delete { key } => key.len() as u64,
    }
}
