//! [`Group`]: passes requests to openraft and to the group's tasks.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use mini_engine::Db;
use mini_engine_server::replicated::{AppliedInstant, Executor, Write};
use openraft::async_runtime::WatchReceiver;
use openraft::entry::RaftEntry;
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{Instant as _, LogIdOptionExt, RaftMetrics, ServerState};
use openraft_mini_engine::{LogReader, State};
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::proposals::Submission;
use super::refused::Refused;
use crate::application::Raft;
use crate::checks::Checks;
use crate::clock::GroupClock;
use crate::error::Failure;
use crate::lock::lock;
use crate::network::Snapshot;
use crate::retention::Retention;
use crate::types::{AppendEntriesRequest, AppendEntriesResponse, SnapshotResponse, TypeConfig, Vote};

/// The maximum time of a write or a barrier.
const LIMIT: Duration = Duration::from_secs(5);

/// The channel to a read that waits for a barrier.
pub(super) type Waiting = oneshot::Sender<Result<(), Refused>>;

/// A group on this node.
pub(crate) struct Group {
    pub(crate) number: u32,
    pub(super) raft: Raft,
    pub(super) metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>,
    pub(crate) state: State,
    pub(super) log: LogReader<TypeConfig>,
    pub(crate) retention: Arc<Retention>,
    /// The bytes of the proposals that were applied since they last led to a snapshot.
    pub(super) applied_bytes: Arc<AtomicU64>,
    pub(super) refuses_growth: AtomicBool,
    pub(super) is_too_large: AtomicBool,
    /// The entry up to which the group was compacted last because it lacked room, and the time; locked while it is compacted.
    pub(super) compacted: tokio::sync::Mutex<Option<(u64, Instant)>>,
    /// The time of the last message of a leader.
    pub(super) heard: Mutex<Option<Instant>>,
    /// The time without a leader after which another one is elected.
    pub(super) election_timeout: Duration,
    /// Whether this node may vote and be elected: not yet, if it has left the group and is coming back. See [`Local`](crate::local::Local).
    pub(super) may_elect: AtomicBool,
    /// The node must not continue with the group if a leader contradicts what is committed here, data cannot be read, or openraft has ended.
    pub(super) failure: Failure,
    pub(super) instant: AppliedInstant,
    pub(crate) clock: Arc<GroupClock>,
    pub(super) checks: Checks,
    pub(super) writes: mpsc::UnboundedSender<Submission>,
    pub(super) reads: mpsc::UnboundedSender<Waiting>,
}

impl Group {
    /// Whether this node may vote and be elected.
    pub(crate) fn may_elect(&self) -> bool {
        // ORDERING: Relaxed; see the store.
        self.may_elect.load(Ordering::Relaxed)
    }

    pub(crate) fn raft(&self) -> &Raft {
        &self.raft
    }

    /// The current database. A snapshot may replace it: then the old handle returns [`mini_engine::Error::Closed`].
    pub(crate) fn db(&self) -> Db {
        self.state.db()
    }

    /// An executor of reads. It holds a handle of the database.
    pub(crate) fn executor(&self) -> Executor {
        Executor::new(self.instant.clone())
    }

    /// Whether this node has a vote, as far as it has learnt, and may use it. A node that is being added has no vote, and lacks entries that the
    /// others have; so does one that comes back, although it is a voter by the old entries that it receives first.
    pub(crate) fn votes(&self) -> bool {
        self.may_elect() && self.metrics.borrow_watched().state != ServerState::Learner
    }

    /// Whether this node leads. If not, returns the refusal of a request for the leader, which names the leader as far as this node has learnt.
    pub(crate) fn leads(&self) -> Result<(), Refused> {
        let metrics = self.metrics.borrow_watched();
        match metrics.current_leader {
            Some(leader) if leader != metrics.id => {
                Err(Refused::NotLeader(metrics.membership_config.membership().get_node(&leader).cloned()))
            }
            // openraft reports the node that won the vote; it may not lead yet, or not any more.
            Some(_) if metrics.state == ServerState::Leader => Ok(()),
            _ => Err(Refused::NotLeader(None)),
        }
    }

    /// Whether the group serves requests, as far as this node can tell: it leads and has heard a majority, or it has heard the leader, within the time
    /// in which another leader would be elected.
    pub(crate) fn is_served(&self) -> bool {
        let metrics = self.metrics.borrow_watched();
        if metrics.state != ServerState::Leader {
            let heard = *lock(&self.heard);
            return metrics.current_leader.is_some() && heard.is_some_and(|at| at.elapsed() < self.election_timeout);
        }
        let acknowledged = metrics.last_quorum_acked.is_some_and(|at| at.elapsed() < self.election_timeout);
        acknowledged || metrics.membership_config.voter_ids().eq([metrics.id])
    }

    /// Proposes writes, in this order and with no others in between, and waits until they are applied. Returns their replies, in the same order.
    pub(crate) async fn write(&self, writes: Vec<Write>) -> Result<Vec<Vec<u8>>, Refused> {
        let (answer, answered) = oneshot::channel();
        self.writes.send(Submission { writes, answer }).map_err(|_| Refused::ended())?;
        match timeout(LIMIT, answered).await {
            Ok(Ok(written)) => written.map_err(|refused| self.elsewhere(refused)),
            // The write may have been proposed.
            Ok(Err(_)) => Err(Refused::Uncertain("this node is stopping".into())),
            Err(_) => Err(Refused::timed_out(LIMIT.as_secs())),
        }
    }

    /// Waits until this node, as the leader, has applied everything that was acknowledged before the call.
    pub(crate) async fn settle(&self) -> Result<(), Refused> {
        self.leads()?;
        self.catch_up().await
    }

    /// For a node that follows: the index of an entry, up to which the log has everything that was acknowledged before the call. Only the leader has it.
    pub(crate) async fn read_index(&self) -> io::Result<u64> {
        self.settle().await.map_err(|refused| io::Error::other(refused.text(0)))?;
        // Not that of openraft's metrics, which may be behind.
        Ok(self.state.applied::<TypeConfig>()?.index().unwrap_or(0))
    }

    /// Waits until this node, whether it leads or follows, has applied everything that was acknowledged before the call.
    pub(crate) async fn catch_up(&self) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        self.reads.send(answer).map_err(|_| Refused::ended())?;
        match timeout(LIMIT, answered).await {
            Ok(Ok(settled)) => settled.map_err(|refused| self.elsewhere(refused)),
            Ok(Err(_)) => Err(Refused::ended()),
            Err(_) => Err(Refused::NoMajority("what was committed is not applied yet".into())),
        }
    }

    /// Turns a redirection to this node itself into "no leader": a client is not redirected to the node that it has already reached.
    fn elsewhere(&self, refused: Refused) -> Refused {
        let metrics = self.metrics.borrow_watched();
        match &refused {
            Refused::NotLeader(Some(leader)) if metrics.membership_config.get_node(&metrics.id) == Some(leader) => {
                Refused::NotLeader(None)
            }
            _ => refused,
        }
    }

    /// Stores entries of a leader, which keeps its log from entry `first` on.
    pub(crate) async fn append(&self, request: AppendEntriesRequest, first: u64) -> io::Result<AppendEntriesResponse> {
        let log_ids = request.prev_log_id.into_iter().chain(request.entries.iter().map(RaftEntry::log_id));
        self.check(self.log.check(&request.vote, log_ids))?;
        let response = self.raft.append_entries(request).await.map_err(io::Error::other)?;
        if !matches!(response, AppendEntriesResponse::HigherVote(_)) {
            *lock(&self.heard) = Some(Instant::now());
            self.retention.hear_leader(first);
        }
        Ok(response)
    }

    /// Notes that the group must end if a leader's message contradicts the log.
    fn check(&self, checked: io::Result<()>) -> io::Result<()> {
        checked.inspect_err(|error| self.failure.tell(error))
    }

    /// Replaces the database by a snapshot from the leader.
    pub(crate) async fn install(&self, vote: Vote, snapshot: Snapshot) -> io::Result<SnapshotResponse> {
        self.check(self.log.check(&vote, snapshot.meta.last_log_id))?;
        let response = self.raft.install_full_snapshot(vote, snapshot).await.map_err(io::Error::other)?;
        self.instant.recover(&self.db())?;
        Ok(response)
    }

    /// A snapshot of everything that was acknowledged before the call, or more; `None` if this node does not lead.
    pub(crate) async fn snapshot(&self) -> io::Result<Option<Snapshot>> {
        match self.settle().await {
            Err(Refused::NotLeader(_)) => return Ok(None),
            Err(Refused::NoMajority(why) | Refused::Uncertain(why)) => return Err(io::Error::other(why)),
            Ok(()) => {}
        }
        let state = self.state.clone();
        spawn_blocking(move || state.snapshot::<TypeConfig>()).await?.map(Some)
    }

    /// Ends the group on this node.
    pub(crate) async fn stop(&self) {
        self.failure.stop();
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(group = self.number, %error, "a task of a group has failed");
        }
        if let Err(error) = self.db().close() {
            tracing::warn!(group = self.number, %error, "could not flush the database of a group");
        }
        // A compaction ends, and drops its handle.
        drop(self.compacted.lock().await);
    }
}
