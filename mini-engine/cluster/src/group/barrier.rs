//! The barrier before reads: after it, the database of this node shows everything that was acknowledged before the barrier began.
//!
//! On the leader it is a read index: the leader notes the committed index, confirms with a majority that it still leads, and waits until that index is
//! applied. openraft also has leases, which would save the message. But they need clocks of equal speed on all machines, and machines that are never
//! suspended.
//!
//! A follower asks the leader for an index that the leader has applied after its own barrier, and waits until it has applied that index itself. If it
//! does not know the leader, gets no reply or stays behind, it refuses the reads.
//!
//! Reads that arrive while a barrier is under way share the next one.
//!
//! Keys expire by the instant of the last applied proposal, and reads do not advance it. So if the instant is behind the leader's time and something
//! in the database may expire, the read first proposes an empty proposal, a tick. When the tick is applied, it also serves as the barrier. In any case
//! the read sees the instant that is stored with the last entry: so a key that has expired for one read is gone for later ones, on all nodes.

use std::sync::Arc;
use std::time::Duration;

use mini_engine_server::replicated::AppliedInstant;
use openraft::async_runtime::WatchReceiver;
use openraft::{LinearizerOption, RaftNetworkFactory};
use openraft_mini_engine::State;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::proposals::Submission;
use super::raft::Raft;
use super::refused::Refused;
use crate::clock::GroupClock;
use crate::network::{Peer, Peers};
use crate::types::Member;

/// The maximum time for which an expired key may still be visible if nothing is written.
const TICK_MILLIS: u64 = 50;
/// A leader that has no confirmation from a majority after this time refuses the reads.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
/// The maximum time of a whole barrier: committed entries may still have to be applied. A read waits for two at most: the one under way, and its own.
const DEADLINE: Duration = Duration::from_millis(2500);

/// The channel to a read that waits for a barrier.
pub(super) type Waiting = oneshot::Sender<Result<(), Refused>>;

pub(super) struct Barrier {
    pub(super) raft: Raft,
    pub(super) state: State,
    pub(super) instant: AppliedInstant,
    pub(super) clock: Arc<GroupClock>,
    /// A weak handle, so that the queue ends with the group.
    pub(super) writes: mpsc::WeakUnboundedSender<Submission>,
    pub(super) peers: Peers,
    /// The leader that was asked last.
    pub(super) leader: Option<(u64, Member, Peer)>,
}

impl Barrier {
    /// Runs barriers until the sender of `waiting` is dropped.
    pub(super) async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        let mut together = Vec::new();
        while waiting.recv_many(&mut together, usize::MAX).await > 0 {
            let outcome = timeout(DEADLINE, self.pass())
                .await
                .unwrap_or_else(|_| Err(Refused::NoMajority("what was committed is not applied yet".into())));
            for answer in together.drain(..) {
                // The client may have disconnected.
                answer.send(outcome.clone()).ok();
            }
        }
    }

    async fn pass(&mut self) -> Result<(), Refused> {
        match self.other_leader() {
            Some((leader, member)) => self.follow(leader, member).await?,
            None => self.lead().await?,
        }
        self.instant.recover(&self.state.db()).map_err(|error| Refused::NoMajority(error.to_string()))
    }

    /// The leader, if it is another node.
    fn other_leader(&self) -> Option<(u64, Member)> {
        let metrics = self.raft.metrics();
        let metrics = metrics.borrow_watched();
        let leader = metrics.current_leader.filter(|leader| *leader != metrics.id)?;
        Some((leader, metrics.membership_config.membership().get_node(&leader)?.clone()))
    }

    async fn follow(&mut self, leader: u64, member: Member) -> Result<(), Refused> {
        let known = self.leader.take().filter(|(node, at, _)| (*node, at) == (leader, &member));
        let peer = match known {
            Some((.., peer)) => peer,
            None => self.peers.new_client(leader, &member).await,
        };
        let (.., peer) = self.leader.insert((leader, member, peer));
        let index = peer.read_index(HEAR_MAJORITY).await;
        let index = index.map_err(|error| Refused::NoMajority(format!("this node asked the leader: {error}")))?;
        let applied = self.raft.wait(None).applied_index_at_least(Some(index), "a read of a follower").await;
        applied.map(drop).map_err(|_| Refused::ended())
    }

    async fn lead(&self) -> Result<(), Refused> {
        if self.is_behind() {
            return self.tick().await;
        }
        let by_read_index = LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(HEAR_MAJORITY);
        self.raft.ensure_linearizable(by_read_index).await.map(drop).map_err(Refused::of_read)
    }

    /// Whether something that is still there by the instant may have expired by the leader's time.
    fn is_behind(&self) -> bool {
        self.state.db().has_expiring_entries() && self.clock.millis() > self.instant.millis() + TICK_MILLIS
    }

    async fn tick(&self) -> Result<(), Refused> {
        let (answer, answered) = oneshot::channel();
        let queue = self.writes.upgrade().ok_or_else(Refused::ended)?;
        queue.send(Submission { writes: Vec::new(), answer }).map_err(|_| Refused::ended())?;
        drop(queue);
        match answered.await {
            Ok(Ok(_)) => Ok(()),
            // A tick changes nothing but the instant, so the client may repeat the read.
            Ok(Err(Refused::Uncertain(why))) => Err(Refused::NoMajority(why)),
            Ok(Err(refused)) => Err(refused),
            Err(_) => Err(Refused::ended()),
        }
    }
}
