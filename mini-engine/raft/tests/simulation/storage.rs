//! The registers as a state machine, and [`PlantedLog`]: the log of this crate, or one with a planted fault.

use std::io::Result;
use std::sync::Arc;

use mini_engine::{Db, WriteBatch};
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::type_config::alias::EntryOf;
use openraft::{EntryPayload, OptionalSend};
use openraft_mini_engine::{Apply, LogReader, LogStore};

use crate::cluster::{LogId, TypeConfig, Vote, World};
use crate::history::register_of;

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Appends are acknowledged before they are synced.
    EarlyAck,
    /// A vote is stored once its candidate is elected.
    LostVote,
    /// Once the databases are open, a disk returns from a sync, and has stored nothing.
    LyingDisk,
    /// A node's directory is replaced by an older copy.
    PutBack,
    /// The same, and nobody compares a leader's message, a truncation or the start with what is committed.
    PutBackUnchecked,
}

impl Plant {
    pub(crate) fn puts_back(self) -> bool {
        matches!(self, Plant::PutBack | Plant::PutBackUnchecked)
    }
}

pub(crate) struct Registers(pub(crate) Arc<World>, pub(crate) u64);

impl Apply<TypeConfig> for Registers {
    fn apply(&mut self, entry: EntryOf<TypeConfig>, _: &Db, batch: &mut WriteBatch) -> Result<()> {
        let write = if let EntryPayload::Normal(value) = entry.payload { Some(value) } else { None };
        if let Some(value) = write {
            let stored = postcard::to_stdvec(&(value, entry.log_id.index)).expect("numbers");
            batch.insert(register_of(value).to_string(), stored)?;
        }
        self.0.history().applied(self.1, entry.log_id, write);
        Ok(())
    }

    fn reads(&self, _: &EntryOf<TypeConfig>) -> bool {
        false
    }
}

/// The value of a register, and the index of its write.
pub(crate) fn stored(db: &Db, register: u64) -> Option<(u64, u64)> {
    postcard::from_bytes(&db.get(register.to_string()).ok()??).ok()
}

pub(crate) struct PlantedLog(pub(crate) LogStore<TypeConfig>, pub(crate) Option<Plant>);

impl RaftLogStorage<TypeConfig> for PlantedLog {
    type LogReader = LogReader<TypeConfig>;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>> {
        self.0.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> LogReader<TypeConfig> {
        self.0.get_log_reader().await
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<()> {
        match self.1 {
            Some(Plant::LostVote) if !vote.is_committed() => Ok(()),
            _ => self.0.save_vote(vote).await,
        }
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<()> {
        match self.1 {
            // A log that does not know what is committed refuses no truncation.
            Some(Plant::PutBackUnchecked) => Ok(()),
            _ => self.0.save_committed(committed).await,
        }
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>> {
        self.0.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<()>
    where
        I: IntoIterator<Item = EntryOf<TypeConfig>, IntoIter: OptionalSend> + OptionalSend,
    {
        if self.1 != Some(Plant::EarlyAck) {
            return self.0.append(entries, callback).await;
        }
        let appended = self.0.append(entries, IOFlushed::noop()).await;
        callback.io_completed(Ok(()));
        appended
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<()> {
        self.0.truncate_after(last).await
    }

    async fn purge(&mut self, last: LogId) -> Result<()> {
        self.0.purge(last).await
    }
}
