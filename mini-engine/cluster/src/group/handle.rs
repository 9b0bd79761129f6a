//! [`Group`]: opens a group, and passes requests to the group's tasks.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use mini_engine::Db;
use mini_engine_server::replicated::{AppliedInstant, Executor, Write};
use openraft::async_runtime::WatchReceiver;
use openraft::entry::RaftEntry;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::type_config::alias::WatchReceiverOf;
use openraft::{Instant as _, LogIdOptionExt, RaftLogReader, RaftMetrics, ServerState};
use openraft_mini_engine::{LogReader, State};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::barrier::{self, Waiting};
use super::config;
use super::pace::Pace;
use super::parts::Parts;
use super::proposals::{self, Submission};
use super::raft::Raft;
use super::refused::Refused;
use crate::application::open_state;
use crate::checks::Checks;
use crate::clock::GroupClock;
use crate::error::{Error, Result, io};
use crate::identity::{Identity, state_of};
use crate::network::{Peers, Snapshot};
use crate::retention::Retention;
use crate::types::{AppendEntriesRequest, AppendEntriesResponse, Member, Position, SnapshotResponse, TypeConfig, Vote};

/// The maximum time of a write or a barrier.
const LIMIT: Duration = Duration::from_secs(5);
/// The maximum time for which a leader waits for the next leader, or to hear from it.
pub(super) const HAND_OVER: Duration = Duration::from_secs(1);

/// A group on this node.
pub(crate) struct Group {
    number: u32,
    pub(super) raft: Raft,
    pub(super) metrics: WatchReceiverOf<TypeConfig, RaftMetrics<TypeConfig>>,
    state: State,
    pub(super) log: LogReader<TypeConfig>,
    pub(crate) retention: Arc<Retention>,
    /// The bytes of the proposals that were applied since they last led to a snapshot.
    pub(super) applied_bytes: Arc<AtomicU64>,
    pub(super) refuses_growth: AtomicBool,
    pub(super) pace: Arc<Mutex<Pace>>,
    /// The time of the last message of a leader.
    heard: Mutex<Option<Instant>>,
    /// The time without a leader after which another one is elected.
    pub(super) election_timeout: Duration,
    /// Whether this node may vote and be elected: not yet, if it has left the group and is coming back. See [`Local`](crate::local::Local).
    may_elect: Arc<AtomicBool>,
    /// Why this node must not continue with the group: a leader contradicts what is committed here, or data cannot be read.
    pub(super) damage: watch::Sender<Option<String>>,
    pub(super) instant: AppliedInstant,
    clock: Arc<GroupClock>,
    pub(super) checks: Checks,
    writes: mpsc::UnboundedSender<Submission>,
    reads: mpsc::UnboundedSender<Waiting>,
    /// Executors of reads that have ended, for reuse. They hold a handle of the database, so they do not outlive the group.
    executors: Mutex<Vec<Executor>>,
}

impl Group {
    /// Opens the group's log and database, and joins the group's Raft protocol. The node may vote when it has applied an entry at or after `before`.
    pub(crate) async fn open(
        parts: &Parts,
        identity: Identity,
        number: u32,
        before: Option<Position>,
    ) -> Result<Group> {
        let dir = state_of(&parts.dir, number);
        let mut log =
            parts.logs.group::<TypeConfig>(number).map_err(io("open", format!("the log of group {number}")))?;
        let checks = Checks::default();
        let (mut machine, instant, applied_bytes) = open_state(&dir, Arc::clone(&parts.files), checks.clone())?;
        let state = machine.state();
        let mut reader = log.get_log_reader().await;
        let has_voted = reader.read_vote().await.map_err(io("read", "the vote"))?.is_some();
        let (applied, _) = machine.applied_state().await.map_err(io("read", dir.display()))?;
        if applied.is_some() && !has_voted {
            return Err(Error::forgotten(parts.dir.join("log")));
        }
        log.settle(applied).map_err(io("use", format!("the log of group {number}")))?;
        // Entries in the log count here, even if a power cut has lost the record that they are committed: else nodes could wait for each other.
        let last = log.get_log_state().await.map_err(io("read", format!("the log of group {number}")))?.last_log_id;
        let before = before.filter(|before| last.is_none_or(|last| Position::of(&last) < *before));
        let Identity { cluster, node, .. } = identity;
        let retention = Arc::<Retention>::default();
        let dialer = Arc::clone(&parts.dialer);
        let peers = Peers { dialer, cluster, group: number, retention: Arc::clone(&retention) };
        let config = config::of(parts.election_timeout, before.is_none())?;
        let raft = Raft::new(node, config, peers.clone(), log, machine).await;
        let raft = raft.map_err(|fatal| Error::Ended { group: number, reason: fatal.to_string() })?;

        let (writes, queue) = mpsc::unbounded_channel();
        let (reads, waiting) = mpsc::unbounded_channel();
        let metrics = raft.metrics();
        let clock = Arc::new(GroupClock::new(Arc::clone(&parts.clock), instant.clone()));
        tokio::spawn(proposals::run(raft.clone(), Arc::clone(&clock), queue));
        let barrier = barrier::Barrier {
            raft: raft.clone(),
            state: state.clone(),
            instant: instant.clone(),
            clock: Arc::clone(&clock),
            writes: writes.downgrade(),
            peers,
            leader: None,
        };
        tokio::spawn(barrier.run(waiting));
        let may_elect = Arc::new(AtomicBool::new(before.is_none()));
        if let Some(before) = before {
            let (raft, may_elect) = (raft.clone(), Arc::clone(&may_elect));
            tokio::spawn(async move {
                let has_it =
                    |metrics: &RaftMetrics<TypeConfig>| metrics.last_applied.as_ref().map(Position::of) >= Some(before);
                if raft.wait(None).metrics(has_it, "its log is back").await.is_ok() {
                    // ORDERING: Relaxed; it publishes nothing: openraft compares logs, and has applied the entry.
                    may_elect.store(true, Ordering::Relaxed);
                    raft.runtime_config().elect(true);
                }
            });
        }
        let (log, damage, executors) = (reader, checks.damage.clone(), Mutex::default());
        let (heard, election_timeout) = (Mutex::default(), config::longest_timeout(parts.election_timeout));
        Ok(Group {
            number,
            raft,
            metrics,
            state,
            log,
            retention,
            applied_bytes,
            refuses_growth: AtomicBool::default(),
            pace: Arc::default(),
            heard,
            election_timeout,
            may_elect,
            damage,
            instant,
            clock,
            checks,
            writes,
            reads,
            executors,
        })
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn clock(&self) -> &GroupClock {
        &self.clock
    }

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

    pub(crate) fn state(&self) -> State {
        self.state.clone()
    }

    /// Calls `run` with an executor; each executor is used by one client at a time.
    pub(crate) fn read<T>(&self, run: impl FnOnce(&mut Executor) -> T) -> T {
        let unused = self.executors().pop();
        let mut executor = unused.unwrap_or_else(|| Executor::new(self.instant.clone()));
        let done = run(&mut executor);
        self.executors().push(executor);
        done
    }

    fn executors(&self) -> MutexGuard<'_, Vec<Executor>> {
        self.executors.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this node has a vote, as far as it has learnt, and may use it. A node that is being added has no vote, and lacks entries that the
    /// others have; so does one that comes back, although it is a voter by the old entries that it receives first.
    pub(crate) fn votes(&self) -> bool {
        self.may_elect() && self.metrics.borrow_watched().state != ServerState::Learner
    }

    /// Whether this node leads. If not, returns the refusal of a request for the leader, which names the leader as far as this node has learnt.
    pub(crate) fn leads(&self) -> std::result::Result<(), Refused> {
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
            let heard = *self.heard.lock().unwrap_or_else(PoisonError::into_inner);
            return metrics.current_leader.is_some() && heard.is_some_and(|at| at.elapsed() < self.election_timeout);
        }
        let acknowledged = metrics.last_quorum_acked.is_some_and(|at| at.elapsed() < self.election_timeout);
        acknowledged || metrics.membership_config.voter_ids().eq([metrics.id])
    }

    /// Proposes writes, in this order and with no others in between, and waits until they are applied. Returns their replies, in the same order.
    pub(crate) async fn write(&self, writes: Vec<Write>) -> std::result::Result<Vec<Vec<u8>>, Refused> {
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
    pub(crate) async fn settle(&self) -> std::result::Result<(), Refused> {
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
    pub(crate) async fn catch_up(&self) -> std::result::Result<(), Refused> {
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
            *self.heard.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            self.retention.hear_leader(first);
        }
        Ok(response)
    }

    /// Notes that the group must end if a leader's message contradicts the log.
    fn check(&self, checked: io::Result<()>) -> io::Result<()> {
        checked.inspect_err(|error| drop(self.damage.send_replace(Some(error.to_string()))))
    }

    /// Replaces the database by a snapshot from the leader.
    pub(crate) async fn install(&self, vote: Vote, snapshot: Snapshot) -> io::Result<SnapshotResponse> {
        self.check(self.log.check(&vote, snapshot.meta.last_log_id))?;
        let response = self.raft.install_full_snapshot(vote, snapshot).await.map_err(io::Error::other)?;
        self.instant.recover(&self.db())?;
        Ok(response)
    }

    /// A snapshot of everything that was acknowledged before the call, or more; the leader, as far as it is known, if this node does not lead.
    pub(crate) async fn snapshot(&self) -> io::Result<std::result::Result<Snapshot, Option<Member>>> {
        match self.settle().await {
            Err(Refused::NotLeader(leader)) => return Ok(Err(leader)),
            Err(Refused::NoMajority(why) | Refused::Uncertain(why)) => return Err(io::Error::other(why)),
            Ok(()) => {}
        }
        let state = self.state();
        spawn_blocking(move || state.snapshot::<TypeConfig>()).await?.map(Ok)
    }

    /// Waits until the group has ended because it can no longer store or apply entries. Returns the reason.
    pub(crate) async fn ended(&self) -> Error {
        // These metrics change seldom, and their sender ends with the group; the others change, and would wake this task, several times for each write.
        let (mut metrics, mut damage) = (self.raft.server_metrics(), self.damage.subscribe());
        let ended = async { while metrics.changed().await.is_ok() {} };
        let reason = tokio::select! {
            damage = damage.wait_for(Option::is_some) => damage.ok().and_then(|damage| damage.clone()),
            () = ended => self.metrics.borrow_watched().running_state.as_ref().err().map(ToString::to_string),
        };
        Error::Ended { group: self.number, reason: reason.unwrap_or_else(|| "its tasks are gone".into()) }
    }

    /// If this node leads, makes another node the leader, so that the others need not wait for an election timeout.
    pub(crate) async fn hand_over(&self) {
        if let Some(next) = self.next_leader() {
            self.hand_over_to(next).await;
        }
    }

    /// As the leader, asks `next`, which must vote, to lead, and waits a moment until this node leads no more.
    ///
    /// From then on openraft accepts no proposals here. If `next` is not elected, another node is, after an election timeout.
    pub(super) async fn hand_over_to(&self, next: u64) {
        self.raft.trigger().transfer_leader(next).await.ok();
        let has_handed_over = |metrics: &RaftMetrics<TypeConfig>| metrics.state != ServerState::Leader;
        self.raft.wait(Some(HAND_OVER)).metrics(has_handed_over, "handed over").await.ok();
    }

    /// Ends the group on this node.
    pub(crate) async fn stop(&self) {
        if let Err(error) = self.raft.shutdown().await {
            tracing::warn!(group = self.number, %error, "a task of a group has failed");
        }
        if let Err(error) = self.db().close() {
            tracing::warn!(group = self.number, %error, "could not flush the database of a group");
        }
        // A compaction ends, and drops its handle.
        let pace = Arc::clone(&self.pace);
        spawn_blocking(move || drop(pace.lock())).await.ok();
    }

    /// For a leader: the voter that has received the largest part of the log.
    fn next_leader(&self) -> Option<u64> {
        let metrics = self.metrics.borrow_watched();
        let voters: Vec<u64> = metrics.membership_config.voter_ids().collect();
        let others = metrics.replication.iter().flatten();
        let others = others.filter(|(node, _)| **node != metrics.id && voters.contains(node));
        others.max_by_key(|(_, matched)| matched.as_ref().map(|last| last.index)).map(|(node, _)| *node)
    }
}
