//! The instant of a group's database: that of the latest proposal that was applied.
//!
//! The stored data must be the same on every node, so entries expire by this instant and not by the clocks of the nodes. The instant is the maximum
//! over all proposals so far: a proposal may contain an earlier one, because its leader had not applied everything or has another clock. It is stored
//! with each proposal, so a killed node continues from the same instant; and in each snapshot, for the node that receives it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use mini_engine::{Db, Error, Result, WriteBatch};

/// The key under which the instant is stored, in the keyspace that clients do not see.
const KEY: &[u8] = b"instant";

/// The latest instant that was applied to the database of a group; it is the clock of that database. A cheap handle: clones share the same instant.
#[derive(Clone, Debug, Default)]
pub struct AppliedInstant(Arc<AtomicU64>);

impl AppliedInstant {
    /// Milliseconds since 1970; 0 before the first proposal.
    pub fn millis(&self) -> u64 {
        // ORDERING(instant): Relaxed; the engine publishes a proposal's writes after the instant was raised, so a reader that sees them sees the
        // instant.
        self.0.load(Ordering::Relaxed)
    }

    /// The instant as a `SystemTime`.
    pub fn system_time(&self) -> SystemTime {
        time(self.millis())
    }

    /// Raises the instant to the stored one. Must be called after the database was opened, or replaced by a snapshot.
    ///
    /// # Errors
    /// Returns errors of reading the database; [`Error::InvalidArgument`] if something else is stored under the key.
    pub fn recover(&self, db: &Db) -> Result<()> {
        self.raise(stored(db)?);
        Ok(())
    }

    /// Raises the instant to `millis`, if that is later.
    pub(super) fn raise(&self, millis: u64) {
        // ORDERING(instant): Relaxed, as in `millis`.
        self.0.fetch_max(millis, Ordering::Relaxed);
    }
}

pub(super) fn time(millis: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_millis(millis)
}

/// Adds the instant of a proposal to its writes.
pub(super) fn store(millis: u64, batch: &mut WriteBatch) -> Result<()> {
    batch.insert(KEY, millis.to_le_bytes())
}

fn stored(db: &Db) -> Result<u64> {
    let Some(bytes) = db.get(KEY)? else { return Ok(0) };
    let bytes: [u8; 8] = (*bytes).try_into().map_err(|_| {
        Error::InvalidArgument(format!("the applied instant has 8 bytes, and {} were found", bytes.len()))
    })?;
    Ok(u64::from_le_bytes(bytes))
}
