//! A write: from a batch to a frame in the log and entries in the memtable.
//!
//! These steps run under the write lock, once for all batches of a group (`commit.rs`):
//! 1. Make room (`room.rs`): slow down where merges fall behind, rotate a full memtable, wait while too many memtables are frozen.
//!    The writer holds nothing but its own batch meanwhile. With an open reservation it would keep the memtable from being
//!    frozen, and could wait for ever for that memtable's flush.
//! 2. Reserve space in the memtable. Everything that can fail there fails here, before anything is logged. Otherwise a write that
//!    was refused for want of memory would come back at replay.
//! 3. Append one frame for each batch to the memtable's log. A failure leaves nothing visible, since nothing is applied yet. Part
//!    of the frame may be on disk, so the engine turns read-only (rule 7); a reopen tells whether the batch is there, as a whole.
//!    Where only space is missing, the part is cut off durably and the log closed (`wal/writer.rs`, W4). The write goes on with
//!    the next log once, and fails if that has no space either: then the batch is not in any log, and later writes try again.
//! 4. Apply the reservation, which cannot fail, and publish the sequence number. Both happen under one lock, so numbers become
//!    visible in order, and none before its entries and its frame are complete (rule 12).
//!
//! A synced write then waits for the log's sync, without the lock. Others may see the write before it is durable: if visibility
//! waited for syncs, one synced write would stall all others.

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
