//! openraft's own suite, over stores that stay open and over stores that are opened for each call, and closed or dropped after it.

use std::fmt::Debug;
use std::io;
use std::ops::RangeBounds;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::Stream;
use openraft::storage::{EntryResponder, IOFlushed, LogState, RaftLogStorage, RaftStateMachine};
use openraft::testing::log::{StoreBuilder, Suite};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{OptionalSend, RaftLogReader, RaftSnapshotBuilder, StorageError};
use openraft_mini_engine::{Checkpoint, Logs};
use proof::disk::MemFs;

use crate::snapshots::DIR;
use crate::support::{AnEntry, Log, LogId, Machine, TypeConfig, Vote, open_log, open_machine};

/// The suite sleeps seven seconds for purges; with a paused clock, the sleep ends when no other task can run.
fn run_at_once(suite: impl Future<Output = Result<(), StorageError<TypeConfig>>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(suite).unwrap();
}

#[test]
fn the_suite_of_openraft_passes() {
    // Catches the mistakes of stores that openraft's authors test for.
    run_at_once(Suite::test_all(Open));
}

#[test]
fn the_suite_of_openraft_passes_on_stores_that_are_reopened_before_each_call() {
    // Catches state that is only in memory: a last log id, a first index, a membership.
    run_at_once(Suite::test_all(Reopened::default()));
}

struct Open;

impl StoreBuilder<TypeConfig, Log, Machine> for Open {
    async fn build(&self) -> Result<((), Log, Machine), StorageError<TypeConfig>> {
        let fs = MemFs::default();
        Ok(((), open_log(&fs).1, open_machine(&fs, DIR)))
    }
}

/// A log and a state machine that are opened for each call.
#[derive(Clone, Default)]
struct Reopened {
    fs: MemFs,
    calls: Arc<AtomicU64>,
}

impl StoreBuilder<TypeConfig, Reopened, Reopened> for Reopened {
    async fn build(&self) -> Result<((), Reopened, Reopened), StorageError<TypeConfig>> {
        let new = Reopened::default();
        Ok(((), new.clone(), new))
    }
}

impl Reopened {
    /// The log. Its database is closed after every second call, and left as a killed process does after the others.
    fn log(&self) -> (Log, Option<ClosedAtEnd>) {
        let (logs, log) = open_log(&self.fs);
        let is_closed = self.calls.fetch_add(1, Ordering::Relaxed).is_multiple_of(2);
        (log, if is_closed { Some(ClosedAtEnd(logs)) } else { None })
    }

    fn machine(&self) -> Machine {
        open_machine(&self.fs, DIR)
    }
}

struct ClosedAtEnd(Logs);

impl Drop for ClosedAtEnd {
    fn drop(&mut self) {
        self.0.clone().close().unwrap();
    }
}

impl RaftLogReader<TypeConfig> for Reopened {
    async fn try_get_log_entries<R>(&mut self, range: R) -> io::Result<Vec<AnEntry>>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        self.log().0.get_log_reader().await.try_get_log_entries(range).await
    }

    async fn read_vote(&mut self) -> io::Result<Option<Vote>> {
        self.log().0.get_log_reader().await.read_vote().await
    }
}

impl RaftLogStorage<TypeConfig> for Reopened {
    type LogReader = Reopened;

    async fn get_log_state(&mut self) -> io::Result<LogState<TypeConfig>> {
        self.log().0.get_log_state().await
    }

    async fn get_log_reader(&mut self) -> Reopened {
        self.clone()
    }

    async fn save_vote(&mut self, vote: &Vote) -> io::Result<()> {
        self.log().0.save_vote(vote).await
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> io::Result<()> {
        self.log().0.save_committed(committed).await
    }

    async fn read_committed(&mut self) -> io::Result<Option<LogId>> {
        self.log().0.read_committed().await
    }

    async fn append<I>(&mut self, entries: I, callback: IOFlushed<TypeConfig>) -> io::Result<()>
    where
        I: IntoIterator<Item = AnEntry, IntoIter: OptionalSend> + OptionalSend,
    {
        self.log().0.append(entries, callback).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> io::Result<()> {
        self.log().0.truncate_after(last).await
    }

    async fn purge(&mut self, last: LogId) -> io::Result<()> {
        self.log().0.purge(last).await
    }
}

impl RaftSnapshotBuilder<TypeConfig> for Reopened {
    type SnapshotData = Checkpoint;

    async fn build_snapshot(&mut self) -> io::Result<SnapshotOf<TypeConfig, Checkpoint>> {
        self.machine().get_snapshot_builder().await.build_snapshot().await
    }
}

impl RaftStateMachine<TypeConfig> for Reopened {
    type SnapshotData = Checkpoint;
    type SnapshotBuilder = Reopened;

    async fn applied_state(&mut self) -> io::Result<(Option<LogId>, StoredMembershipOf<TypeConfig>)> {
        self.machine().applied_state().await
    }

    async fn apply<S>(&mut self, entries: S) -> io::Result<()>
    where
        S: Stream<Item = io::Result<EntryResponder<TypeConfig>>> + Unpin + OptionalSend,
    {
        self.machine().apply(entries).await
    }

    async fn get_snapshot_builder(&mut self) -> Reopened {
        self.clone()
    }

    async fn install_snapshot(&mut self, meta: &SnapshotMetaOf<TypeConfig>, snapshot: Checkpoint) -> io::Result<()> {
        self.machine().install_snapshot(meta, snapshot).await
    }

    async fn get_current_snapshot(&mut self) -> io::Result<Option<SnapshotOf<TypeConfig, Checkpoint>>> {
        self.machine().get_current_snapshot().await
    }
}
