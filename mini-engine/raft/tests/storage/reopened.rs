//! Stores that are opened for each call, and closed or dropped after it.

use std::fmt::Debug;
use std::io::Result;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::Stream;
use mini_engine::fs::FileSystem;
use openraft::storage::{EntryResponder, IOFlushed, LogState, RaftLogStorage, RaftStateMachine};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{OptionalSend, RaftLogReader, RaftSnapshotBuilder};
use openraft_mini_engine::{Checkpoint, Logs};

use crate::support::{AnEntry, Log, LogId, Machine, TypeConfig, Vote, open_log, open_machine};

/// A log that is opened for each call, as is its reader.
#[derive(Clone)]
pub(crate) struct ReopenedLog {
    fs: Arc<dyn FileSystem>,
    calls: Arc<AtomicU64>,
}

impl ReopenedLog {
    pub(crate) fn new(fs: &Arc<dyn FileSystem>) -> Self {
        Self { fs: Arc::clone(fs), calls: Arc::default() }
    }

    fn open(&self) -> (Logs, Log) {
        open_log(&self.fs)
    }

    /// Closes the log, or leaves it as a killed process does.
    fn end<T>(&self, (logs, log): (Logs, Log), result: Result<T>) -> Result<T> {
        drop(log);
        if self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) {
            logs.close()?;
        }
        result
    }
}

impl RaftLogReader<TypeConfig> for ReopenedLog {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<AnEntry>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let mut open = self.open();
        let result = open.1.get_log_reader().await.try_get_log_entries(range).await;
        self.end(open, result)
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>> {
        let mut open = self.open();
        let result = open.1.get_log_reader().await.read_vote().await;
        self.end(open, result)
    }
}

impl RaftLogStorage<TypeConfig> for ReopenedLog {
    type LogReader = ReopenedLog;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>> {
        let mut open = self.open();
        let result = open.1.get_log_state().await;
        self.end(open, result)
    }

    async fn get_log_reader(&mut self) -> ReopenedLog {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<()> {
        let mut open = self.open();
        let result = open.1.save_vote(vote).await;
        self.end(open, result)
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<()> {
        let mut open = self.open();
        let result = open.1.save_committed(committed).await;
        self.end(open, result)
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>> {
        let mut open = self.open();
        let result = open.1.read_committed().await;
        self.end(open, result)
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> Result<()>
    where
        I: IntoIterator<Item = AnEntry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let mut open = self.open();
        let result = open.1.append(entries, callback).await;
        self.end(open, result)
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<()> {
        let mut open = self.open();
        let result = open.1.truncate_after(last).await;
        self.end(open, result)
    }

    async fn purge(&mut self, last: LogId) -> Result<()> {
        let mut open = self.open();
        let result = open.1.purge(last).await;
        self.end(open, result)
    }
}

/// A state machine that is opened for each call, as is its snapshot builder.
#[derive(Clone)]
pub(crate) struct ReopenedMachine {
    fs: Arc<dyn FileSystem>,
}

impl ReopenedMachine {
    pub(crate) fn new(fs: &Arc<dyn FileSystem>) -> Self {
        Self { fs: Arc::clone(fs) }
    }

    fn open(&self) -> Machine {
        open_machine(&self.fs, "/node/machine")
    }
}

impl RaftSnapshotBuilder<TypeConfig> for ReopenedMachine {
    type SnapshotData = Checkpoint;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<TypeConfig, Checkpoint>> {
        self.open().get_snapshot_builder().await.build_snapshot().await
    }
}

impl RaftStateMachine<TypeConfig> for ReopenedMachine {
    type SnapshotData = Checkpoint;
    type SnapshotBuilder = ReopenedMachine;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembershipOf<TypeConfig>)> {
        self.open().applied_state().await
    }

    async fn apply<S>(&mut self, entries: S) -> Result<()>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        self.open().apply(entries).await
    }

    async fn get_snapshot_builder(&mut self) -> ReopenedMachine {
        self.clone()
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMetaOf<TypeConfig>, snapshot: Checkpoint) -> Result<()> {
        self.open().install_snapshot(meta, snapshot).await
    }

    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<TypeConfig, Checkpoint>>> {
        self.open().get_current_snapshot().await
    }
}
