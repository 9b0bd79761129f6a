//! A write: from a batch to a frame in the log and entries in the memtable.
//!
//! One step under the write lock, in this order, for a group of batches at once where several wait (see `commit`):
//! 1. make room: wait a little where merges fall behind (see `WriteController`), rotate when the memtable is full, wait while the
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

mod commit;
mod room;

use self::commit::commit;
use super::core::{Core, fail_on_unwind};
use crate::error::Result;
use crate::types::{Durability, SeqNo, WriteBatch};

pub(crate) use self::room::freeze_active;

/// Writes `batch`; the sequence number of its last operation.
pub(crate) fn write(core: &Core, batch: WriteBatch, durability: Durability) -> Result<SeqNo> {
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
pub(crate) fn persist(core: &Core, durability: Durability) -> Result<()> {
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
pub(crate) fn sync_logs(core: &Core) -> Result<()> {
    let log = core.lock().log.segment().clone();
    core.sync_whole(&log)
}
