//! [`Application`]: applies the entries of a group's log to the group's database.

use std::io;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mini_engine::fs::FileSystem;
use mini_engine::{Db, Options, TimeSource, WriteBatch};
use mini_engine_server::replicated::{AppliedInstant, Executor, Proposal, Replies, Write};
use openraft::EntryPayload;
use openraft::type_config::alias::EntryOf;
use openraft_mini_engine::{Apply, StateMachine};
use tokio::task::block_in_place;

use crate::checks::Checks;
use crate::error::{self, Result};
use crate::types::{Position, TypeConfig};

/// A proposal with at most this many writes and bytes takes no longer to carry out than handing the thread's other tasks to another thread.
const FEW_WRITES: usize = 16;
const FEW_BYTES: usize = 64 << 10;

/// Carries out the writes of a proposal, in the same way as the server of one node.
pub(crate) struct Application {
    executor: Executor,
    /// The bytes of the proposals that were applied.
    bytes: Arc<AtomicU64>,
    checks: Checks,
}

impl Application {
    pub(crate) fn new(instant: AppliedInstant, bytes: Arc<AtomicU64>, checks: Checks) -> Self {
        Self { executor: Executor::new(instant), bytes, checks }
    }

    fn apply_proposal(
        &mut self,
        at: Position,
        proposal: &Proposal,
        db: &Db,
        batch: &mut WriteBatch,
    ) -> io::Result<Replies> {
        let bytes: usize = proposal.writes.iter().map(Write::size).sum();
        // ORDERING: Relaxed; the sum only decides when the log is purged.
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
        let mut apply = || self.executor.apply(db, at.term, proposal, batch);
        // Many reads may wait for the disk; meanwhile another thread runs this thread's other tasks, heartbeats among them.
        let takes_long = (proposal.writes.len() > FEW_WRITES || bytes > FEW_BYTES) && Executor::reads(proposal);
        let replies = if takes_long { block_in_place(apply) } else { apply() };
        if proposal.writes.iter().any(Write::is_check) {
            // The database has the writes of all earlier entries and none of this one, and its time is the instant of this entry.
            self.checks.begin(at.index, db)?;
        }
        Ok(replies?)
    }
}

/// openraft with this project's storage and application.
pub(crate) type Raft = openraft::Raft<TypeConfig, StateMachine<TypeConfig, Application>>;

/// Opens the state of a group, or creates it, in directory `dir`. Returns with it the group's time, and the number of bytes that were applied.
pub(crate) fn open_state(
    dir: &Path,
    files: Arc<dyn FileSystem>,
    checks: Checks,
) -> Result<(StateMachine<TypeConfig, Application>, AppliedInstant, Arc<AtomicU64>)> {
    let (instant, applied_bytes) = (AppliedInstant::default(), Arc::default());
    let time = instant.clone();
    let options = Options::default().time_source(TimeSource::new(move || time.system_time()));
    let application = Application::new(instant.clone(), Arc::clone(&applied_bytes), checks);
    let machine =
        StateMachine::open_with(dir, application, options, files).map_err(error::io("open", dir.display()))?;
    instant.recover(&machine.state().db())?;
    Ok((machine, instant, applied_bytes))
}

impl Apply<TypeConfig> for Application {
    fn apply(&mut self, entry: EntryOf<TypeConfig>, db: &Db, batch: &mut WriteBatch) -> io::Result<Replies> {
        let Some(proposal) = proposal_of(&entry) else { return Ok(Replies::default()) };
        self.apply_proposal(Position::of(&entry.log_id), proposal, db, batch)
    }

    fn reads(&self, entry: &EntryOf<TypeConfig>) -> bool {
        proposal_of(entry).is_some_and(Executor::reads)
    }
}

fn proposal_of(entry: &EntryOf<TypeConfig>) -> Option<&Proposal> {
    if let EntryPayload::Normal(proposal) = &entry.payload { Some(proposal) } else { None }
}
