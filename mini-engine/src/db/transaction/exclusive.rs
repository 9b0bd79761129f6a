//! Exclusive transactions: one at a time, so that they cannot conflict with each other.
//!
//! They are ordinary transactions that wait for a turn. Their commits are checked like all others, because plain writes and transactions without a
//! turn continue meanwhile. The turn ends before the sync of the commit, so concurrent callers share syncs: the next transaction reads writes that are
//! visible but not durable yet, as every reader does. Its own sync covers them too.

use std::sync::Arc;

use super::{TRIES, Transaction, repeat};
use crate::db::core::Core;
use crate::error::Error;
use crate::types::Durability;

/// Like [`transact`](super::transact), with the turn of exclusive transactions.
pub(crate) fn transact_exclusive<T, E: From<Error>>(
    core: &Arc<Core>,
    durability: Durability,
    mut body: impl FnMut(&Transaction) -> Result<T, E>,
) -> Result<T, E> {
    let turn = core.exclusive.begin()?;
    let mut has_written = false;
    let done = repeat(
        || Transaction::begin(core),
        TRIES,
        Durability::Buffered,
        |transaction| {
            let result = body(transaction);
            has_written = transaction.has_written();
            result
        },
    );
    drop(turn);
    // Not `persist`, which fails if the database was closed since the commit.
    if done.is_ok() && has_written && durability == Durability::Synced {
        core.sync_logs()?;
    }
    done
}
