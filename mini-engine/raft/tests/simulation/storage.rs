//! The registers as a state machine, and [`PlantedLog`]: the log of this crate, or one with a planted fault.

use std::io::Result;
use std::sync::Arc;

use mini_engine::{Db, Durability, WriteBatch};
use openraft::storage::{IOFlushed, LogState, RaftLogStorage};
use openraft::type_config::alias::EntryOf;
use openraft::{EntryPayload, LogIdOptionExt, OptionalSend};
use openraft_mini_engine::{Apply, LogReader, LogStore, Logs};

use crate::cluster::{LogId, TypeConfig, Vote, World};

/// What is wrong on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Plant {
    /// Appends are acknowledged before they are synced.
    EarlyAck,
    /// A vote is stored once its candidate is elected.
    LostVote,
    /// A disk returns from a sync, and has stored nothing.
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
        let write = if let EntryPayload::Normal(write) = entry.payload { Some(write) } else { None };
        if let Some(write) = &write {
            batch.insert(write.register.to_string(), format!("{} {}", write.value, entry.log_id.index))?;
        }
        self.0.history().applied(self.1, entry.log_id, write);
        Ok(())
    }

    fn reads(&self, _: &EntryOf<TypeConfig>) -> bool {
        false
    }
}

/// The value of a register, and the index of its write.
pub(crate) fn value(db: &Db, register: u64) -> Option<(u64, u64)> {
    let stored = String::from_utf8(db.get(register.to_string()).ok()??.to_vec()).ok()?;
    let (value, index) = stored.split_once(' ')?;
    Some((value.parse().ok()?, index.parse().ok()?))
}

pub(crate) struct PlantedLog {
    pub(crate) logs: Logs,
    /// Always present between calls.
    pub(crate) log: Option<LogStore<TypeConfig>>,
    pub(crate) plant: Option<Plant>,
}

impl PlantedLog {
    fn log(&mut self) -> &mut LogStore<TypeConfig> {
        self.log.as_mut().expect("open")
    }
}

impl RaftLogStorage<TypeConfig> for PlantedLog {
    type LogReader = LogReader<TypeConfig>;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>> {
        self.log().get_log_state().await
    }

    async fn get_log_reader(&mut self) -> LogReader<TypeConfig> {
        self.log().get_log_reader().await
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<()> {
        match self.plant {
            Some(Plant::LostVote) if !vote.is_committed() => Ok(()),
            _ => self.log().save_vote(vote).await,
        }
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<()> {
        self.log().save_committed(committed).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>> {
        self.log().read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<()>
    where
        I: IntoIterator<Item = EntryOf<TypeConfig>, IntoIter: OptionalSend> + OptionalSend,
    {
        if self.plant == Some(Plant::EarlyAck) {
            let appended = self.log().append(entries, IOFlushed::noop()).await;
            callback.io_completed(Ok(()));
            return appended;
        }
        self.log().append(entries, callback).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<()> {
        if self.plant == Some(Plant::PutBackUnchecked) {
            // The group's entries after `last`, and what it knows to be committed: see `src/log/keys.rs`.
            let entry = |index: u64| [&[0, 0, 0, 0, b'e'][..], &index.to_be_bytes()].concat();
            let mut batch = WriteBatch::new();
            batch.remove_range(entry(last.next_index())..=entry(u64::MAX))?;
            batch.remove([0, 0, 0, 0, b'c'])?;
            self.logs.db().write(batch, Durability::Synced)?;
            self.log = None;
            self.log = Some(self.logs.group(0)?);
            return Ok(());
        }
        self.log().truncate_after(last).await
    }

    async fn purge(&mut self, last: LogId) -> Result<()> {
        self.log().purge(last).await
    }
}
