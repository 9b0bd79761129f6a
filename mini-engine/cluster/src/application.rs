//! [`Application`]: what an entry of a group's log does to the group's database.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mini_engine::{Db, WriteBatch};
use mini_engine_server::replicated::{AppliedInstant, Executor, Proposal, Replies, Write};
use openraft::EntryPayload;
use openraft::type_config::alias::EntryOf;
use openraft_mini_engine::Apply;

use crate::types::TypeConfig;

/// Carries out the writes of a proposal, as the server of one node would.
pub(crate) struct Application {
    executor: Executor,
    /// Bytes of the proposals that were applied.
    bytes: Arc<AtomicU64>,
}

impl Application {
    pub(crate) fn new(instant: AppliedInstant, bytes: Arc<AtomicU64>) -> Self {
        Self { executor: Executor::new(instant), bytes }
    }

    fn apply_proposal(&mut self, proposal: &Proposal, db: &Db, batch: &mut WriteBatch) -> io::Result<Replies> {
        let bytes: usize = proposal.writes.iter().map(Write::size).sum();
        // ORDERING: Relaxed; the sum decides only when the log is purged.
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        Ok(self.executor.apply(db, proposal, batch)?)
    }
}

impl Apply<TypeConfig> for Application {
    fn apply(&mut self, entry: EntryOf<TypeConfig>, db: &Db, batch: &mut WriteBatch) -> io::Result<Replies> {
        match &entry.payload {
            EntryPayload::Normal(proposal) => self.apply_proposal(proposal, db, batch),
            EntryPayload::Blank | EntryPayload::Membership(_) => Ok(Replies::default()),
        }
    }

    fn reads(&self, entry: &EntryOf<TypeConfig>) -> bool {
        match &entry.payload {
            EntryPayload::Normal(proposal) => Executor::reads(proposal),
            EntryPayload::Blank | EntryPayload::Membership(_) => false,
        }
    }
}
