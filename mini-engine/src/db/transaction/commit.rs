//! The commit of a transaction: writes a batch if nothing has changed what was read.
//!
//! The reads saw the database at one sequence number. Every write has a number, and readers see writes in this order. So if no version between that
//! number and the batch's own first number belongs to a key or a range that was read, the reads would give the same results directly before the
//! batch: the transaction takes effect as a whole at its own number. Transactions, and all other writes, are serial in the order of their numbers.
//!
//! The expiry of an entry is a change without a number. So the clock is asked under the lock too: what was there when it was read must still be there.
//! What had expired stays absent, unless it is written, because the clock never goes back.
//!
//! The batch gets its numbers under the write lock, and only there is it known which writes come before it. Most of the check is done before the lock
//! is taken, up to the number that is visible then. Under the lock, only later versions are looked for: in memory, if no flush has come between. If
//! one has, and a table would have to be read, the lock is given back and the check done again without it. After [`ROUNDS`] times a table is read
//! under the lock, so that every commit comes to an end.

use super::reads::Reads;
use crate::db::core::{Core, EntryBounds, View};
use crate::db::write::{write, write_if};
use crate::error::{Error, Result};
use crate::types::{Durability, SeqNo, WriteBatch};

/// The number of times that a check without the lock may come too late.
const ROUNDS: usize = 3;

/// Writes `batch`, which is not empty, if what was read at `read_at`, a registered number, has not changed since. Returns the number of its last
/// operation.
///
/// # Errors
/// [`Error::Conflict`](crate::Error::Conflict): nothing was written. The errors of a write, and of reading tables.
pub(crate) fn commit(core: &Core, batch: &WriteBatch, read: (&Reads, SeqNo), durability: Durability) -> Result<SeqNo> {
    if read.0.is_empty() {
        return write(core, batch, durability);
    }
    write_if_unchanged(core, batch, read, durability).inspect_err(|error| {
        if matches!(error, Error::Conflict { .. }) {
            core.store.counters.conflicts.add(1);
        }
    })
}

/// Checks, without the write lock, that nothing of what was read at `read_at` has changed after `since`. Returns the number up to which that is so.
pub(super) fn check_now(core: &Core, (reads, read_at): (&Reads, SeqNo), since: SeqNo) -> Result<SeqNo> {
    // In this order (`read/newer.rs`).
    let visible = core.visible();
    if visible > since {
        reads.check(&core.view.load(), read_at, since)?;
    }
    Ok(visible.max(since))
}

fn write_if_unchanged(
    core: &Core,
    batch: &WriteBatch,
    (reads, read_at): (&Reads, SeqNo),
    durability: Durability,
) -> Result<SeqNo> {
    // Nothing has changed up to this number.
    let mut checked = read_at;
    let mut rounds = ROUNDS;
    loop {
        let is_last = rounds == 0;
        if !is_last {
            checked = check_now(core, (reads, read_at), checked)?;
        }
        let is_unchanged = |_: &mut EntryBounds| {
            let view = core.view.load();
            if !is_last && has_table_since(&view, checked) {
                return Ok(false);
            }
            // All earlier writes are visible here.
            if core.visible() > checked {
                reads.check(&view, read_at, checked)?;
            }
            // After what may take time.
            check_time(core, (reads, read_at))?;
            Ok(true)
        };
        if let Some(seqno) = write_if(core, batch, durability, &is_unchanged)? {
            return Ok(seqno);
        }
        rounds -= 1;
    }
}

/// Checks that no entry that was read at `read_at` has expired.
pub(super) fn check_time(core: &Core, (reads, read_at): (&Reads, SeqNo)) -> Result<()> {
    reads.check_time(read_at, || core.clock.now())
}

fn has_table_since(view: &View, since: SeqNo) -> bool {
    view.runs_since(since).flat_map(|run| run.tables()).any(|table| table.max_seqno() > since)
}
