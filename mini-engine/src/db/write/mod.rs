//! A write: from a batch to a frame in the log and entries in the memtable.
//!
//! A write has these steps (`commit.rs`; Pebble's commit pipeline is the model):
//!
//! Under the write lock, one after the other:
//! 1. Make room (`room.rs`): slow down if compactions fall behind, rotate a full memtable, wait while too many memtables are frozen, or until the
//!    reserve is large enough (`core/reserve.rs`). The writer holds only its own batch meanwhile. With an open reservation it would keep the
//!    memtable from being frozen, and could wait for ever for that memtable's flush.
//! 2. Reserve space in the memtable. Everything that can fail there fails here, before anything is logged. Otherwise a write that was refused for
//!    lack of memory would reappear at replay.
//! 3. Take sequence numbers, a place in the log and a ticket. If the log is not mapped, the frame is written now. A failure leaves nothing visible.
//!    Part of the frame may be on disk, so the engine turns read-only (rule 7); a reopen shows whether the batch is there, as a whole. If only
//!    space is missing, the log is cut behind the last place, durably, and closed (`wal/writer.rs`, W4). The write then tries the next log once,
//!    and fails if that has no space either: in that case the batch is not in any log, and later writes try again.
//!
//! Without the lock, beside other writers, and without anything that can fail:
//! 4. Fill the place in the log, and apply the reservation.
//! 5. Complete the ticket, and wait until it is published (`core/publication.rs`). Numbers become visible in order, and none before its entries and
//!    its frame are complete (rule 12). A rotation waits, with the lock, for the writers between steps 3 and 5; so these must not take the lock. A
//!    panic there makes the engine read-only, and ends these waits.
//!
//! A conditional write ([`WriteMode::If`]) checks its condition between 1 and 2, once all earlier writes are visible. No other write gets a number
//! before its own, so what the condition has read is what the write finds. Commits of transactions are such writes.
//!
//! A synced write then waits for the log's sync. Other threads may see the write before it is durable: if visibility waited for syncs, one synced
//! write would stall all others. A sync covers every frame that was complete when it began, so waiting writers share it.

mod commit;
mod room;

use std::cell::RefCell;

use fastskip::Op;

use self::commit::commit;
use super::core::{Core, fail_on_unwind};
use crate::error::Result;
use crate::memtables::ops;
use crate::types::{BatchOp, Durability, KeyspaceRef, SeqNo, WriteBatch, check_key};

pub(crate) use self::commit::WriteMode;
pub(crate) use self::room::{check_space, freeze_active, rotate, wait_for_reserve, wait_for_room};

/// Writes `batch`. Returns the sequence number of its last operation; `None` if `mode` does not allow the write: then nothing was written.
pub(crate) fn write(
    core: &Core,
    batch: &WriteBatch,
    durability: Durability,
    mode: WriteMode<'_>,
) -> Result<Option<SeqNo>> {
    if batch.is_empty() {
        return persist(core, durability).map(|()| Some(core.visible()));
    }
    // Allocates nothing if there are none.
    let expiring: Vec<&[u8]> = match batch.expiring() {
        0 => Vec::new(),
        _ => batch.iter().filter_map(BatchOp::expiring).collect(),
    };
    let mut ops = ops(batch, &expiring);
    match (batch.len(), ops.next()) {
        (1, Some(op)) => fail_on_unwind(core, || commit(core, batch, &[op], durability, mode)),
        (_, first) => {
            let ops: Vec<Op<'_>> = first.into_iter().chain(ops).collect();
            fail_on_unwind(core, || commit(core, batch, &ops, durability, mode))
        }
    }
}

thread_local! {
    /// The batch of the thread's writes of one operation: they share its memory. It may hold what an earlier one left.
    static BATCH_OF_ONE: RefCell<WriteBatch> = const { RefCell::new(WriteBatch::new()) };
}

/// The largest batch of one operation whose memory its thread keeps, in bytes.
const MAX_KEPT: usize = 16 << 10;

/// Sets `key` of `keyspace` to `value`, or removes it: like [`write()`] with a batch of that, which is not allocated.
pub(crate) fn write_one(
    core: &Core,
    keyspace: &KeyspaceRef,
    key: &[u8],
    value: Option<&[u8]>,
    durability: Durability,
) -> Result<()> {
    check_key(key)?;
    let written = BATCH_OF_ONE.try_with(|kept| {
        let mut batch = kept.try_borrow_mut().ok()?;
        batch.clear();
        let written = match keyspace.prefix.is_plain(key) {
            // It is in the default keyspace, where nothing expires by itself.
            true => write_stored(core, &mut batch, key, value, durability),
            false => write_prefixed(core, &mut batch, keyspace, key, value, durability),
        };
        if batch.payload().len() > MAX_KEPT {
            *batch = WriteBatch::new();
        }
        Some(written)
    });
    match written {
        Ok(Some(written)) => written,
        // The thread is ending and has dropped the batch, or writes with it.
        _ => write_prefixed(core, &mut WriteBatch::new(), keyspace, key, value, durability),
    }
}

/// [`write_one`] for any key, with an empty batch.
#[inline(never)]
fn write_prefixed(
    core: &Core,
    batch: &mut WriteBatch,
    keyspace: &KeyspaceRef,
    key: &[u8],
    value: Option<&[u8]>,
    durability: Durability,
) -> Result<()> {
    batch.note_keyspace(keyspace);
    if let Some((value, at)) = value.and_then(|value| Some((value, core.default_expiry(keyspace)?))) {
        batch.insert_in(keyspace.prefix, key, value, Some(at))?;
        return write(core, batch, durability, WriteMode::Wait).map(drop);
    }
    keyspace.prefix.with_stored(key, |stored| write_stored(core, batch, stored, value, durability))
}

/// [`write_one`] for a stored key.
#[inline(always)]
fn write_stored(
    core: &Core,
    batch: &mut WriteBatch,
    stored: &[u8],
    value: Option<&[u8]>,
    durability: Durability,
) -> Result<()> {
    let op = match value {
        Some(value) => batch.insert_stored(stored, value, None).map(|()| Op::Put { key: stored, value })?,
        None => batch.remove_stored(stored).map(|()| Op::Delete { key: stored })?,
    };
    fail_on_unwind(core, || commit(core, batch, &[op], durability, WriteMode::Wait)).map(drop)
}

/// Gives everything written so far the requested durability. The operating system has buffered writes when they return.
pub(crate) fn persist(core: &Core, durability: Durability) -> Result<()> {
    let state = core.lock();
    core.check_writable(&state)?;
    drop(state);
    match durability {
        Durability::Buffered => Ok(()),
        Durability::Synced => core.sync_logs(),
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::Db;

    #[test]
    fn what_a_write_leaves_behind_is_not_in_the_next_one() {
        // Catches a batch of the thread that keeps the operation of a write that has unwound, or that a refused one left: the next write of the
        // thread, perhaps into another database, would have it too.
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path()).expect("a database");
        let unwound = catch_unwind(AssertUnwindSafe(|| {
            BATCH_OF_ONE.with_borrow_mut(|batch| {
                batch.insert("left", "behind").expect("small");
                panic!("in a write");
            })
        }));
        assert!(unwound.is_err());
        db.insert("a", "1").expect("a write");
        BATCH_OF_ONE.with_borrow_mut(|batch| batch.insert("left", "behind").expect("small"));
        db.keyspace("other").and_then(|other| other.insert("b", "2")).expect("a write");
        let found = ["left", "a"].map(|key| db.contains_key(key).expect("a read"));
        assert_eq!(found, [false, true]);
    }

    #[test]
    fn a_write_inside_of_a_write_has_a_batch_of_its_own() {
        // Catches a panic where the thread's batch is in use.
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path()).expect("a database");
        BATCH_OF_ONE.with_borrow_mut(|_| db.insert("a", "1")).expect("a write");
        assert!(db.contains_key("a").expect("a read"));
    }
}
