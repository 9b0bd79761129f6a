//! The commit of a transaction: writes a batch if nothing that was read has changed.
//!
//! The reads saw the database at one sequence number. Every write has a number, and readers see writes in the order of these numbers. So if no
//! version between that number and the batch's first number belongs to a key or a range that was read, the reads would give the same results directly
//! before the batch: the transaction takes effect as a whole at this number. All transactions and writes are serial in the order of their numbers.
//!
//! The expiry of an entry is a change without a sequence number. So the clock is read under the lock too: an entry that existed when it was read must
//! still exist. An entry that had expired stays absent, unless it is written, because the clock never goes back.
//!
//! The batch gets its numbers under the write lock, and only under it the writes that precede the batch are known. Most of the check is done before
//! the lock is taken; under it, only the writes that came later are examined.
//!
//! The record of the newest writes (`core/recent_writes.rs`) lists these writes. If the record does not reach back to the transaction's beginning,
//! the view is searched without the lock, and the record covers the time since that search began. A small number of keys is always looked up in the
//! view: that costs no more. If the rest of the check exceeds some writes or some keys in memory, the lock is released and the check continues
//! without it. After [`ROUNDS`] such rounds everything is done under the lock, so that every commit ends.

use super::reads::Reads;
use crate::db::core::{Core, NewerWrites, State, View};
use crate::db::write::{WriteMode, write};
use crate::error::{Error, Result};
use crate::types::{Durability, SeqNo, WriteBatch};

/// The number of rounds of checks without the lock, after which the rest is checked under the lock.
const ROUNDS: usize = 3;
/// The number of newer writes that are examined with the write lock held.
const MOST_UNDER_LOCK: usize = 1024;

/// Writes `batch`, which is not empty, if nothing that was read at the registered number `read_at` has changed since. Returns the sequence number of
/// its last operation.
///
/// # Errors
/// [`Error::Conflict`](crate::Error::Conflict): nothing was written. The errors of a write, and of reading tables.
pub(super) fn commit(core: &Core, batch: &WriteBatch, read: (&Reads, SeqNo), durability: Durability) -> Result<SeqNo> {
    write_if_unchanged(core, batch, read, durability).inspect_err(|error| {
        if matches!(error, Error::Conflict { .. }) {
            core.store.counters.conflicts.add(1);
        }
    })
}

/// Checks, without the write lock, that nothing that was read at `read_at` has changed after `since`. Returns the number up to which this holds.
pub(super) fn validate(core: &Core, (reads, read_at): (&Reads, SeqNo), since: SeqNo) -> Result<SeqNo> {
    // Loaded before the view (`read/newer.rs`).
    let visible = core.visible();
    if visible <= since {
        return Ok(since);
    }
    if reads.prefer_record() {
        let state = core.lock();
        if let Some(newer) = newer_writes(&state, since) {
            let last_seqno = state.last_seqno;
            drop(state);
            // These include writes that are not visible yet: all of them precede the commit.
            reads.validate_in_record(core, &newer, read_at)?;
            return Ok(last_seqno);
        }
    }
    reads.validate_in_view(core, read_at, since)?;
    Ok(visible)
}

fn newer_writes(state: &State, since: SeqNo) -> Option<NewerWrites> {
    state.recent.as_ref().and_then(|recent| recent.newer_than(since))
}

/// The same check with the lock held and all writes visible. Returns false if it would take too long under the lock, unless `must` is set.
fn validate_locked(
    core: &Core,
    state: &State,
    (reads, read_at): (&Reads, SeqNo),
    since: SeqNo,
    must: bool,
) -> Result<bool> {
    if state.last_seqno <= since {
        return Ok(true);
    }
    let by_record = reads.prefer_record();
    if let Some(newer) = newer_writes(state, since).filter(|_| by_record) {
        let is_much = newer.len() > MOST_UNDER_LOCK;
        if must || !is_much {
            reads.validate_in_record(core, &newer, read_at)?;
        }
        return Ok(must || !is_much);
    }
    if !must && (by_record || has_table_since(&core.view.get(), since)) {
        return Ok(false);
    }
    reads.validate_in_view(core, read_at, since)?;
    Ok(true)
}

fn write_if_unchanged(
    core: &Core,
    batch: &WriteBatch,
    (reads, read_at): (&Reads, SeqNo),
    durability: Durability,
) -> Result<SeqNo> {
    // Nothing that was read has changed up to this number.
    let mut checked = read_at;
    let mut rounds = ROUNDS;
    loop {
        let is_last = rounds == 0;
        if !is_last && !reads.is_empty() {
            checked = validate(core, (reads, read_at), checked)?;
        }
        let is_unchanged = |state: &mut State| {
            if !validate_locked(core, state, (reads, read_at), checked, is_last)? {
                return Ok(false);
            }
            // The clock is checked after the steps that may take time.
            validate_expiries(core, (reads, read_at))?;
            Ok(true)
        };
        let mode = if reads.is_empty() { WriteMode::Wait } else { WriteMode::If(&is_unchanged) };
        if let Some(seqno) = write(core, batch, durability, mode)? {
            return Ok(seqno);
        }
        rounds -= 1;
    }
}

/// Checks that no entry that was read at `read_at` has expired.
pub(super) fn validate_expiries(core: &Core, (reads, read_at): (&Reads, SeqNo)) -> Result<()> {
    reads.validate_expiries(read_at, || core.clock.now())
}

fn has_table_since(view: &View, since: SeqNo) -> bool {
    view.runs_since(since).flat_map(|run| run.tables()).any(|table| table.max_seqno() > since)
}
