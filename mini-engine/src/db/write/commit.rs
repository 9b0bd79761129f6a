//! The steps of a write in the pipeline, which `mod.rs` describes.

use std::sync::Arc;

use fastskip::{InsertError, Op};

use super::room::{
    enlarge_memtable, is_fast_enough, is_large, is_ready, is_removal, make_room, rotate, slow_down, wait_for,
    want_log_ahead,
};
use crate::db::core::{Core, RecentWrites, State, View};
use crate::error::{Error, Result};
use crate::memtables::{memory_for, range_tombstone};
use crate::types::{Durability, SeqNo, WriteBatch, check_seqno};
use crate::wal::{self, Claim, Payload};

/// The factor that is applied to the memory of a batch when its estimate was too low.
const SECOND_TRY_FACTOR: usize = 4;

/// The behaviour of a write that would have to wait for other threads, and its condition, if any.
#[derive(Clone, Copy)]
pub(crate) enum WriteMode<'a> {
    /// The write waits.
    Wait,
    /// The write is not begun.
    NoWait,
    /// The write waits, and is done if this closure returns true when every earlier write is visible and no later one has begun. The closure runs
    /// with the write lock held: it may read but not write.
    If(&'a dyn Fn(&mut State) -> Result<bool>),
}

struct Commit<'a> {
    batch: &'a WriteBatch,
    ops: &'a [Op<'a>],
    /// The contents of the batch's frame.
    payload: Payload<'a>,
    durability: Durability,
    mode: WriteMode<'a>,
    /// The estimated memory of the batch in a memtable, in bytes.
    memory: usize,
}

/// Logs and applies `batch`, whose operations are `ops`, if `mode` allows it. Returns the sequence number of its last operation.
#[inline(never)]
pub(super) fn commit(
    core: &Core,
    batch: &WriteBatch,
    ops: &[Op<'_>],
    durability: Durability,
    mode: WriteMode<'_>,
) -> Result<Option<SeqNo>> {
    // Compressed before the lock is taken: this takes more time than all steps under the lock.
    let compressed = core.store.options.log_compression.then(|| wal::compress(batch.payload())).flatten();
    let payload = compressed.as_deref().map_or(Payload::Raw(batch.payload()), Payload::Compressed);
    let memory = memory_for(batch.len(), batch.ranges(), batch.payload().len());
    run(core, Commit { batch, ops, payload, durability, mode, memory })
}

#[inline]
fn run(core: &Core, mut commit: Commit<'_>) -> Result<Option<SeqNo>> {
    let bytes = commit.batch.payload().len();
    core.check_not_forked()?;
    let mut state = core.lock_for_write();
    // A write is charged to the write controller once.
    let mut is_admitted = !matches!(commit.mode, WriteMode::NoWait);
    let may_wait = is_admitted;
    if may_wait {
        state = slow_down(core, state, bytes);
    }
    let mut is_second_try = false;
    // The error because of which the log was closed.
    let mut no_space = None;
    loop {
        let obstacle = match is_ready(core, &state, commit.memory) {
            true => None,
            false => make_room(core, &mut state, commit.batch, commit.memory)?,
        };
        match obstacle {
            None if is_admitted || is_fast_enough(core, &mut state, bytes) => is_admitted = true,
            Some(obstacle) if may_wait => {
                state = wait_for(obstacle, core, state, commit.memory)?;
                continue;
            }
            // The next log is created with the space of the reserve, and the write must wait for that log.
            Some(_) if is_removal(commit.batch, commit.memory) => return Ok(None),
            _ => return no_space.map_or(Ok(None), Err),
        }
        if is_large(core, commit.memory) {
            enlarge_memtable(core, &mut state, commit.memory)?;
        }
        // Checked after every wait for room, because other threads had the lock meanwhile.
        core.keyspaces.check_batch(commit.batch)?;
        if let WriteMode::If(holds) = commit.mode {
            core.wait_visible(state.last_seqno)?;
            if !holds(&mut state)? {
                return Ok(None);
            }
        }
        let view = state.view.clone();
        let reservation = match view.active.table.reserve(commit.ops) {
            Ok(reservation) => reservation,
            Err(InsertError::Full) if !is_second_try => {
                // The estimate was too low: the batch gets a fresh memtable for itself, with a multiple of the estimate.
                is_second_try = true;
                commit.memory = commit.memory.saturating_mul(SECOND_TRY_FACTOR).max(core.store.options.memtable_bytes);
                // The next wait for room for this batch must bring another memtable.
                state.active.is_full = true;
                continue;
            }
            Err(error) => return Err(refused_by_memtable(core, &state, bytes, error)),
        };
        let assigned = match assign(core, &mut state, &commit) {
            Ok(assigned) => assigned,
            // Dropping the reservation returns its memory. The next log may still have space.
            Err(error) if state.logs.active.is_closed() && no_space.is_none() => {
                no_space = Some(error);
                continue;
            }
            Err(error) => return Err(error),
        };
        drop(state);
        view.log.fill(&assigned.claim, commit.payload);
        reservation.apply(assigned.first_seqno);
        if commit.batch.ranges() | commit.batch.expiring() > 0 {
            note_ranges_and_expiries(core, &view, commit.batch, assigned.first_seqno);
        }
        core.publication.complete(assigned.ticket, assigned.last_seqno);
        core.wait_visible(assigned.last_seqno)?;
        if commit.durability == Durability::Synced {
            sync(core, view, assigned.claim.end())?;
        }
        if is_large(core, commit.memory) {
            freeze_after_large(core);
        }
        return Ok(Some(assigned.last_seqno));
    }
}

/// The error of a write that the memtable rejected.
#[cold]
fn refused_by_memtable(core: &Core, state: &State, bytes: usize, error: InsertError) -> Error {
    match error {
        InsertError::Full => Error::Full(format!("a batch of {bytes} bytes does not fit into any memtable")),
        InsertError::TooLarge => Error::InvalidArgument(error.to_string()),
        // Only the holder of the write lock freezes a memtable, and then installs a fresh one.
        _ => {
            let error = Error::ReadOnly { cause: format!("the active memtable refused a write: {error}") };
            core.fail_locked(state, &error);
            error
        }
    }
}

/// Adds the range tombstones and expiries of the batch to the memtable, before the entries become visible.
#[inline(never)]
fn note_ranges_and_expiries(core: &Core, view: &View, batch: &WriteBatch, first_seqno: SeqNo) {
    if batch.expiring() > 0 {
        view.active.note_expiring();
        core.clock.begin();
    }
    let ops = batch.iter().zip(first_seqno..);
    view.active.add_ranges(ops.filter_map(|(op, seqno)| range_tombstone(op, seqno)));
}

/// The sequence numbers, the places in the log and the ticket of a write, assigned under the lock.
struct Assigned {
    claim: Claim,
    ticket: u64,
    first_seqno: SeqNo,
    last_seqno: SeqNo,
}

/// Step 3. After it has succeeded, nothing can fail.
fn assign(core: &Core, state: &mut State, commit: &Commit<'_>) -> Result<Assigned> {
    let count = commit.batch.count();
    let (first_seqno, last_seqno) = (state.last_seqno + 1, state.last_seqno.saturating_add(u64::from(count)));
    check_seqno(last_seqno)?;
    let ticket = state.tickets.next;
    if ticket >= state.tickets.with_slots {
        state.tickets.with_slots = core.publication.tickets_with_slots();
        if ticket >= state.tickets.with_slots {
            core.wait_visible(state.last_seqno)?;
        }
    }
    let claim = state.logs.active.claim((first_seqno, count), commit.payload);
    // Nothing is applied yet, but part of the frame may be on disk (rule 7).
    let claim = claim.inspect_err(|error| {
        if !state.logs.active.is_closed() && !matches!(error, Error::InvalidArgument(_)) {
            core.fail_locked(state, error);
        }
    })?;
    if core.dead.is_used() {
        core.dead.cut(commit.ops);
    }
    if let Some(recent) = &mut state.recent {
        record(core, recent, commit.batch, first_seqno);
    }
    state.last_seqno = last_seqno;
    state.tickets.next += 1;
    // A batch larger than half a memtable has the log and the memtable to itself: they count as full from now on.
    state.active.is_full |= is_large(core, commit.memory);
    state.active.estimate += commit.memory;
    want_log_ahead(core, state);
    let counters = &core.store.counters.write_line;
    counters.writes.add(u64::from(count));
    counters.user_bytes.add(commit.batch.user_bytes());
    Ok(Assigned { claim, ticket, first_seqno, last_seqno })
}

/// Adds a batch to the record of recent writes, for transactions.
#[inline(never)]
fn record(core: &Core, recent: &mut RecentWrites, batch: &WriteBatch, first_seqno: SeqNo) {
    // A transaction that begins later registers a number that includes all visible writes.
    if !core.recording.is_needed() {
        recent.drop_upto(core.visible());
    } else if recent.begins_chunk() {
        recent.drop_upto(core.snapshots.oldest_seqno().unwrap_or_else(|| core.visible()));
    }
    recent.add(batch, first_seqno);
}

/// Makes the log of `view` durable up to `end`.
#[inline(never)]
fn sync(core: &Core, view: Arc<View>, end: u64) -> Result<()> {
    let log = Arc::clone(&view.log);
    // The view is not held during the sync, which takes long.
    drop(view);
    log.complete(end);
    core.sync_log(&log, end)
}

/// Freezes the memtable of a large batch at once, if the queue has room and the next log exists. Otherwise the next write freezes it, so that this
/// write need not wait.
#[cold]
fn freeze_after_large(core: &Core) {
    let mut state = core.lock();
    // Another write may have frozen the memtable.
    if state.active.is_full
        && core.check_writable(&state).is_ok()
        && core.has_room()
        && let Err(error) = rotate(core, &mut state)
    {
        // The batch is written already. The next write detects the failure and returns it.
        tracing::warn!(%error, "could not freeze the memtable of a large batch");
    }
}
