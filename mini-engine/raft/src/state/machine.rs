//! [`StateMachine`]: applies entries, and makes and installs snapshots.

use std::fmt;
use std::io::Result;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;

use futures_util::{Stream, StreamExt};
use mini_engine::fs::{FileSystem, StdFs};
use mini_engine::{Options, WriteBatch};
use openraft::entry::RaftEntry;
use openraft::storage::{ApplyResponder, EntryResponder, RaftStateMachine};
use openraft::type_config::alias::{LogIdOf, SnapshotMetaOf, SnapshotOf, StoredMembershipOf};
use openraft::{OptionalSend, RaftSnapshotBuilder, RaftTypeConfig};

use super::apply::Apply;
use super::checkpoint::Checkpoint;
use super::handle::State;
use super::record::Applied;
use crate::contradiction::{contradiction, follows, shown};
use crate::write::{blocking, write};

/// The most bytes of writes of consecutive entries in one batch: a larger batch saves no more time.
const APPLIED_TOGETHER: usize = 256 << 10;

/// A state machine whose state is a [`mini_engine`] database, which `A` changes.
///
/// The writes of an entry, its log id and a change of the membership are one batch. So after any crash the database holds the effects of the first
/// entries up to some log id, each once, and that log id. A batch survives a killed process as soon as it was applied. A power cut may lose the last
/// batches; openraft then applies their entries again, from the log. The log still has them: it is only purged up to a snapshot, and each snapshot
/// makes the database durable.
pub struct StateMachine<C: RaftTypeConfig, A> {
    state: State,
    app: A,
    applied: Applied<C>,
}

impl<C: RaftTypeConfig, A: Apply<C>> StateMachine<C, A> {
    /// Opens the state machine in directory `path`, or creates an empty one, with the default options of a database.
    ///
    /// # Errors
    /// The errors of [`mini_engine::Builder::open`]: damage, and a database that is open already, in any process. Also errors when leftovers of an
    /// earlier process are removed.
    pub fn open(path: impl AsRef<Path>, app: A) -> Result<Self> {
        Self::open_with(path, app, Options::default(), Arc::new(StdFs))
    }

    /// Like [`StateMachine::open`], with other options, and on another file system.
    pub fn open_with(path: impl AsRef<Path>, app: A, options: Options, fs: Arc<dyn FileSystem>) -> Result<Self> {
        let state = State::open(&std::path::absolute(path)?, options, fs)?;
        let applied = Applied::of(&state.db())?;
        Ok(Self { state, app, applied })
    }

    /// The handle to read the state, and to receive snapshots. Take the handle before the state machine is given to a node.
    pub fn state(&self) -> State {
        self.state.clone()
    }
}

impl<C: RaftTypeConfig, A> fmt::Debug for StateMachine<C, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("StateMachine");
        shown.field("state", &self.state).field("applied", &self.applied).finish_non_exhaustive()
    }
}

/// Entries whose writes are in one batch that is not yet written to the database.
struct Group<C: RaftTypeConfig> {
    batch: WriteBatch,
    applied: Applied<C>,
    /// The waiting clients, and their responses.
    responses: Vec<(ApplyResponder<C>, C::R)>,
}

impl<C: RaftTypeConfig> Group<C> {
    fn new(applied: Applied<C>) -> Self {
        Self { batch: WriteBatch::new(), applied, responses: Vec::new() }
    }
}

impl<C: RaftTypeConfig, A: Apply<C>> StateMachine<C, A> {
    /// Writes a group's batch, and then answers the clients, so that a client with an answer can read its own write.
    async fn write(&mut self, group: Group<C>) -> Result<()> {
        let Group { mut batch, applied, responses } = group;
        applied.add_to(&mut batch)?;
        write::<C>(&self.state.db(), batch).await?;
        self.applied = applied;
        for (responder, response) in responses {
            responder.send(response);
        }
        Ok(())
    }

    /// Adds an entry to a group.
    fn add(&mut self, group: &mut Group<C>, (entry, responder): EntryResponder<C>) -> Result<()> {
        let log_id = entry.log_id();
        if let Some(last) = &group.applied.last
            && !(follows(&log_id, last) && log_id != *last)
        {
            return Err(contradiction("the entry", log_id, "applied", last));
        }
        if let Some(membership) = entry.get_membership() {
            group.applied.membership = StoredMembershipOf::<C>::new(Some(log_id.clone()), membership);
        }
        let response = self.app.apply(entry, &self.state.db(), &mut group.batch)?;
        group.applied.last = Some(log_id);
        group.responses.extend(responder.map(|responder| (responder, response)));
        Ok(())
    }
}

impl<C: RaftTypeConfig, A: Apply<C>> RaftStateMachine<C> for StateMachine<C, A> {
    type SnapshotData = Checkpoint;
    type SnapshotBuilder = SnapshotBuilder<C>;

    async fn applied_state(&mut self) -> Result<(Option<LogIdOf<C>>, StoredMembershipOf<C>)> {
        Ok((self.applied.last.clone(), self.applied.membership.clone()))
    }

    async fn apply<S>(&mut self, mut entries: S) -> Result<()>
    where
        S: Stream<Item = Result<EntryResponder<C>>> + Unpin + OptionalSend,
    {
        let mut group = Group::new(self.applied.clone());
        while let Some(item) = entries.next().await {
            let item = item?;
            let is_first = group.applied.last == self.applied.last;
            if !is_first && (group.batch.encoded_len() >= APPLIED_TOGETHER || self.app.reads(&item.0)) {
                self.write(group).await?;
                group = Group::new(self.applied.clone());
            }
            self.add(&mut group, item)?;
        }
        match group.applied.last == self.applied.last {
            true => Ok(()),
            false => self.write(group).await,
        }
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder<C> {
        SnapshotBuilder { state: self.state.clone(), of: PhantomData }
    }

    /// # Errors
    /// [`InvalidInput`](std::io::ErrorKind::InvalidInput) if the snapshot does not have this metadata, and [`InvalidData`](std::io::ErrorKind::InvalidData) if
    /// it lacks entries that were applied here; then nothing has changed.
    async fn install_snapshot(&mut self, meta: &SnapshotMetaOf<C>, snapshot: Checkpoint) -> Result<()> {
        if let Some(last) = &self.applied.last
            && !meta.last_log_id.as_ref().is_some_and(|new| follows(new, last))
        {
            return Err(contradiction("the snapshot up to", shown(&meta.last_log_id), "applied", last));
        }
        let (state, meta) = (self.state.clone(), meta.clone());
        blocking::<C, _, _>(move || state.install::<C>(&meta, snapshot)).await?;
        self.applied = Applied::of(&self.state.db())?;
        Ok(())
    }

    /// Makes a new snapshot, because none is kept.
    async fn get_current_snapshot(&mut self) -> Result<Option<SnapshotOf<C, Checkpoint>>> {
        match self.applied.last {
            None => Ok(None),
            Some(_) => self.get_snapshot_builder().await.build_snapshot().await.map(Some),
        }
    }
}

/// Makes a snapshot, while entries are applied.
#[derive(Clone, Debug)]
pub struct SnapshotBuilder<C> {
    state: State,
    of: PhantomData<fn() -> C>,
}

impl<C: RaftTypeConfig> RaftSnapshotBuilder<C> for SnapshotBuilder<C> {
    type SnapshotData = Checkpoint;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<C, Checkpoint>> {
        let state = self.state.clone();
        blocking::<C, _, _>(move || state.snapshot::<C>()).await
    }
}
