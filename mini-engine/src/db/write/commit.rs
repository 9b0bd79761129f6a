//! Group commit: the writer that holds the write lock also writes the batches of those that wait for it.
//!
//! A writer that finds the lock taken puts its batch into a queue and waits for the lock. The writer that gets the lock takes the
//! queued batches along: one reservation in the memtable, one write to the log, one publication for all of them. The others find
//! their outcome when they get the lock. The more writers wait, the fewer writes there are; a lone writer finds an empty queue.
//! (LevelDB's writer queue, as flat combining: Hendler, Incze, Shavit, Tzafrir 2010.)
//!
//! G1 A batch is taken from the queue and given its outcome within one hold of the lock. So a writer that gets the lock finds its
//!    batch done, or still queued, or never queued, known to itself alone.
//! G2 A group is written as one frame for each batch, in the order of their sequence numbers.

use std::sync::{Arc, MutexGuard};

use fastskip::{InsertError, Op};

use super::room::{charge, is_large, make_room, rotate, slow_down, want_log_ahead};
use crate::db::core::{Core, Logged, Pending, State, View};
use crate::error::{Error, Result};
use crate::memtables::op;
use crate::types::{MAX_SEQNO, SeqNo, WriteBatch};
use crate::wal::{self, Append};

/// How much more memory a batch is given that did not fit where the estimate said it would.
const SECOND_TRY_FACTOR: usize = 4;
/// A group is taken up to this many bytes of memory, so that no writer waits long for others.
const GROUP_BYTES: usize = 1 << 20;

/// Logs and applies `batch`, by this thread or by another one that has the lock first.
pub(super) fn commit(core: &Core, batch: WriteBatch) -> Result<Logged> {
    // Before the lock: it takes more time than all that is done under it.
    let compressed = core.store.options.log_compression.then(|| wal::compress(batch.payload())).flatten();
    let own = Pending::new(batch, compressed);
    let state = core.try_lock().unwrap_or_else(|| {
        core.commits.push(&own);
        core.lock()
    });
    let led = lead(core, state, &own);
    if let Some(outcome) = own.outcome.get() {
        return outcome.clone();
    }
    // Another may have taken it while this waited for room in vain, and be writing it now.
    let _held = core.lock();
    core.commits.withdraw(&own);
    own.outcome.get().cloned().unwrap_or_else(|| Err(led.err().unwrap_or_else(|| no_room(&own))))
}

/// Writes `own` and the waiting batches, unless another writer has written it. Then `own` has an outcome; otherwise there is
/// an error, or no memtable has room for it.
fn lead<'a>(core: &'a Core, mut state: MutexGuard<'a, State>, own: &Arc<Pending>) -> Result<()> {
    if own.outcome.get().is_some() {
        // Its writer has waited for merges on behalf of the whole group.
        return Ok(());
    }
    state = slow_down(core, state, own.batch.payload().len());
    let mut memory = own.memory();
    // Where the estimate was too low for a memtable, a fresh one of a multiple, for this batch alone.
    let larger = memory.saturating_mul(SECOND_TRY_FACTOR).max(core.store.options.memtable_bytes);
    let mut log_was_closed = false;
    while own.outcome.get().is_none() {
        state = make_room(core, state, memory)?;
        // It may have waited, without the lock.
        if own.outcome.get().is_some() {
            return Ok(());
        }
        match write_group(core, &mut state, own)? {
            Written::Yes => return Ok(()),
            Written::NoRoom if memory == larger => return Ok(()),
            Written::NoRoom => memory = larger,
            Written::LogClosed(error) if log_was_closed => return Err(error),
            // The next log may have space of its own.
            Written::LogClosed(_) => log_was_closed = true,
        }
    }
    Ok(())
}

fn no_room(own: &Pending) -> Error {
    Error::Full(format!("a batch of {} bytes does not fit into any memtable", own.batch.payload().len()))
}

#[derive(Debug)]
enum Written {
    Yes,
    /// The memtable has no room for the batch; nothing has happened.
    NoRoom,
    /// The disk has no space for the frames. Nothing has happened, but that the log takes no more.
    LogClosed(Error),
}

/// Writes `own` and as many of the waiting batches as there is room for.
fn write_group(core: &Core, state: &mut State, own: &Arc<Pending>) -> Result<Written> {
    let view = core.view.load_full();
    let mut group = core.commits.take(own, companions(core, &view, own));
    loop {
        let ops: Vec<Op<'_>> = group.iter().flat_map(|pending| pending.batch.iter()).map(op).collect();
        if state.last_seqno.saturating_add(ops.len() as u64) > MAX_SEQNO {
            core.commits.put_back(group.split_off(1));
            return Err(Error::Full(format!("sequence numbers are used up: at most {MAX_SEQNO} are allowed")));
        }
        let refused = match view.active.table.reserve(&ops) {
            Ok(reservation) => {
                let first = state.last_seqno + 1;
                match append(state, &group, first) {
                    Ok(end) => {
                        reservation.apply(first);
                        finish(core, state, &group, (first, end));
                        finish_large(core, state, own);
                        want_log_ahead(core, state);
                        return Ok(Written::Yes);
                    }
                    // The reservation gives its memory back. Each of the others tries for itself.
                    Err(error) if state.log.is_closed() => Some(error),
                    Err(error) => {
                        fail_group(core, state, &group, &error);
                        return Err(error);
                    }
                }
            }
            // Perhaps one of the others is what does not fit: each finds out for itself.
            Err(InsertError::Full | InsertError::TooLarge) if group.len() > 1 => None,
            Err(InsertError::Full) => return Ok(Written::NoRoom),
            Err(error @ InsertError::TooLarge) => return Err(Error::InvalidArgument(error.to_string())),
            Err(error) => {
                // Only the holder of the write lock freezes, and puts a fresh memtable in place when it does.
                let error = Error::ReadOnly { cause: format!("the active memtable refused a write: {error}") };
                fail_group(core, state, &group, &error);
                return Err(error);
            }
        };
        drop(ops);
        core.commits.put_back(group.split_off(1));
        if let Some(error) = refused {
            return Ok(Written::LogClosed(error));
        }
    }
}

/// Decides which batches come along with `own`: those that the memtable has room for and that need no memtable of their own.
fn companions<'a>(core: &'a Core, view: &View, own: &Pending) -> impl FnMut(&Pending) -> bool + use<'a> {
    let free = core.store.options.memtable_bytes.saturating_sub(view.active.table.memory_usage());
    let mut left = free.min(GROUP_BYTES).saturating_sub(own.memory());
    let alone = is_large(core, own.memory());
    move |other| {
        let memory = other.memory();
        let fits = !alone && memory <= left && !is_large(core, memory);
        left = left.saturating_sub(memory);
        fits
    }
}

/// One write for the frames of all. The end of the last.
fn append(state: &mut State, group: &[Arc<Pending>], first: SeqNo) -> Result<u64> {
    let mut next = first;
    let frame = |pending: &'_ Arc<Pending>| {
        let (first_seqno, count) = (next, pending.batch.count());
        next += u64::from(count);
        (first_seqno, count)
    };
    let ranges = group.iter().map(frame);
    let frames = ranges.zip(group).map(|((first_seqno, count), pending)| Append {
        first_seqno,
        count,
        payload: pending.payload(),
    });
    state.log.append_group(&frames.collect::<Vec<_>>())
}

/// Publishes what was applied, from `first` on, and tells everybody.
fn finish(core: &Core, state: &mut State, group: &[Arc<Pending>], (first, end): (SeqNo, u64)) {
    let operations: u64 = group.iter().map(|pending| u64::from(pending.batch.count())).sum();
    // The others have waited for the lock only.
    charge(core, state, group.iter().skip(1).map(|pending| pending.batch.payload().len()).sum());
    state.last_seqno = first + operations - 1;
    core.publish(state.last_seqno);
    let mut seqno = first - 1;
    for pending in group {
        let operations = u64::from(pending.batch.count());
        seqno += operations;
        let log = state.log.segment().clone();
        // Only this thread sets it (G1).
        pending.outcome.get_or_init(|| Ok(Logged { seqno, log, end, operations, user_bytes: pending.user_bytes() }));
    }
}

/// Nothing is applied yet, and part of the frames may be on disk: the engine turns read-only (rule 7), and a reopen tells
/// which batches are there. Every writer of the group gets the error.
fn fail_group(core: &Core, state: &State, group: &[Arc<Pending>], error: &Error) {
    core.fail_locked(state, error);
    for pending in group {
        pending.outcome.get_or_init(|| Err(error.clone()));
    }
}

/// A batch larger than half a memtable has log and memtable for itself: they are full from now on. They are frozen at
/// once if the queue has room and the next log is there; else the next write does it, so that this one need not wait.
fn finish_large(core: &Core, state: &mut State, own: &Pending) {
    if !is_large(core, own.memory()) {
        return;
    }
    state.active_is_full = true;
    if core.has_room()
        && let Err(error) = rotate(core, state)
    {
        // The batch is written. The next write meets the failure and reports it.
        tracing::warn!(%error, "could not freeze the memtable of a large batch");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::db::Db;
    use crate::fs::MemFs;

    #[test]
    fn a_write_that_another_has_done_does_not_wait_for_merges_once_more() {
        // Catches writers that are slowed down a second time, when their write is done.
        let builder = Db::builder("/db").file_system(Arc::new(MemFs::default()));
        let db = builder.l0_trigger(1).l0_slowdown(1).l0_stop(1000).open().unwrap();
        let core = db.core();
        // As a caller that merges a range: workers begin no merge, so that level 0 stays as it is.
        core.lock().ranges_waiting += 1;
        for n in 0..3 {
            db.insert("k", format!("{n}")).unwrap();
            db.flush().unwrap();
        }
        let mut batch = WriteBatch::new();
        batch.insert("k", "last").unwrap();
        let own = Pending::new(batch, None);
        let before = db.metrics().slowdowns;
        lead(core, core.lock(), &own).unwrap();
        assert!(own.outcome.get().is_some_and(Result::is_ok));
        assert_eq!(db.metrics().slowdowns, before + 1);
        lead(core, core.lock(), &own).unwrap();
        assert_eq!((db.metrics().slowdowns, db.snapshot().seqno()), (before + 1, 4));
    }
}
