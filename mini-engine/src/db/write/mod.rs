//! A write: turns a batch into a frame in the log and entries in the memtable.
//!
//! A write has these steps (`commit.rs`; Pebble's commit pipeline is the model):
//!
//! Under the write lock, one writer after the other:
//! 1. Make room (`room.rs`): slow down if compactions fall behind, rotate a full memtable, and wait while too many memtables are frozen, or until the
//!    reserve is large enough (`core/reserve.rs`). The writer holds no reservation meanwhile, only its batch. An open reservation would keep the
//!    memtable from being frozen, and the writer could wait for ever for that memtable's flush.
//! 2. Reserve space in the memtable. Everything about the memtable that can fail does so here, before anything is logged. Otherwise a write that was
//!    rejected for lack of memory would reappear at replay.
//! 3. Assign sequence numbers, a place in the log and a ticket. If the log is not mapped, the frame is written now. After a failure nothing is
//!    visible. Part of the frame may be on disk, so the engine becomes read-only (rule 7); a reopen shows whether the batch is there, as a whole. If
//!    only space is lacking, the log is cut after the last assigned place, durably, and closed (`wal/writer.rs`, W4). The write then tries the next
//!    log once, and fails if that has no space either: then the batch is in no log, and later writes try again.
//!
//! Without the lock, concurrently with other writers, and without any step that can fail:
//! 4. Copy the frame to its place in the log, and apply the reservation to the memtable.
//! 5. Complete the ticket, and wait until it is published (`core/publication.rs`). Numbers become visible in order, and none before its entries and
//!    its frame are complete (rule 12). A rotation waits, with the lock held, for the writers between steps 3 and 5; so these must not take the lock.
//!    A panic in these steps makes the engine read-only, and ends such waits.
//!
//! A conditional write ([`WriteMode::If`]) checks its condition between 1 and 2, once all earlier writes are visible. No other write gets a number
//! between the check and the write, so the write applies to the state that the condition has read. Commits of transactions are conditional writes.
//!
//! A synced write then waits for the sync of the log. Other threads may see the write before it is durable: if visibility waited for syncs, one
//! synced write would stall all others. A sync covers every frame that was complete when it began, so waiting writers share one sync.

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

/// Writes `batch`. Returns the sequence number of its last operation; `None` if `mode` does not allow the write; then nothing was written.
pub(crate) fn write(
    core: &Core,
    batch: &WriteBatch,
    durability: Durability,
    mode: WriteMode<'_>,
) -> Result<Option<SeqNo>> {
    if batch.is_empty() {
        return persist(core, durability).map(|()| Some(core.visible()));
    }
    // Allocates nothing if no entries expire.
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
    /// Each thread reuses the memory of this batch for its writes of one operation. The batch may still contain the operation of an earlier write.
    static BATCH_OF_ONE: RefCell<WriteBatch> = const { RefCell::new(WriteBatch::new()) };
}

/// The maximum size, in bytes, of such a batch whose memory its thread keeps.
const MAX_KEPT: usize = 16 << 10;

/// Sets `key` of `keyspace` to `value`, or removes it: like [`write()`] with a batch of that one operation, but usually without allocating a batch.
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
            // The key is in the default keyspace, where no entry expires by default.
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
        // The thread is ending and has dropped the batch, or the batch is in use.
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

/// Gives all writes so far the requested durability. Buffered writes have reached the operating system when they return.
pub(crate) fn persist(core: &Core, durability: Durability) -> Result<()> {
    core.check_not_forked()?;
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
        // Catches a thread's batch that keeps the operation of a rejected write, or of one that panicked: the thread's next write, perhaps to another
        // database, would contain that operation too.
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
        // Catches a panic if the thread's batch is in use.
        let dir = tempfile::tempdir().expect("a directory");
        let db = Db::open(dir.path()).expect("a database");
        BATCH_OF_ONE.with_borrow_mut(|_| db.insert("a", "1")).expect("a write");
        assert!(db.contains_key("a").expect("a read"));
    }
}
