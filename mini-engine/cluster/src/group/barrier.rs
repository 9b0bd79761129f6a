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

use std::sync::Weak;
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{LinearizerOption, RaftNetworkFactory};
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::handle::{Group, Waiting};
use super::refused::Refused;
use crate::network::{Peer, Peers};
use crate::types::Member;

/// The maximum time for which an expired key may still be visible if nothing is written.
const TICK_MILLIS: u64 = 50;
/// A leader that has no confirmation from a majority after this time refuses the reads.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
/// The maximum time of a whole barrier: committed entries may still have to be applied. A read waits for two at most: the one under way, and its own.
const DEADLINE: Duration = Duration::from_millis(2500);

pub(super) struct Barrier {
    /// A weak handle, so that the queue ends with the group.
    group: Weak<Group>,
    peers: Peers,
    /// The leader that was asked last.
    leader: Option<(u64, Member, Peer)>,
}

impl Barrier {
    pub(super) fn new(group: Weak<Group>, peers: Peers) -> Self {
        Self { group, peers, leader: None }
    }

    /// Runs barriers until the group is dropped.
    pub(super) async fn run(mut self, mut waiting: mpsc::UnboundedReceiver<Waiting>) {
        let mut together = Vec::new();
        while waiting.recv_many(&mut together, usize::MAX).await > 0 {
            let Some(group) = self.group.upgrade() else { return };
            let outcome = timeout(DEADLINE, self.pass(&group)).await;
            let late = |_| Err(Refused::NoMajority("what was committed is not applied yet".into()));
            let outcome = outcome.unwrap_or_else(late);
            for answer in together.drain(..) {
                // The client may have disconnected.
                answer.send(outcome.clone()).ok();
            }
        }
    }

    async fn pass(&mut self, group: &Group) -> Result<(), Refused> {
        match other_leader(group) {
            Some((leader, member)) => self.follow(group, leader, member).await?,
            None => lead(group).await?,
        }
        group.instant.recover(&group.db()).map_err(|error| Refused::NoMajority(error.to_string()))
    }

    async fn follow(&mut self, group: &Group, leader: u64, member: Member) -> Result<(), Refused> {
        let known = self.leader.take().filter(|(node, at, _)| (*node, at) == (leader, &member));
        let peer = match known {
            Some((.., peer)) => peer,
            None => self.peers.new_client(leader, &member).await,
        };
        let (.., peer) = self.leader.insert((leader, member, peer));
        let index = peer.read_index(HEAR_MAJORITY).await;
        let index = index.map_err(|error| Refused::NoMajority(format!("this node asked the leader: {error}")))?;
        let applied = group.raft.wait(None).applied_index_at_least(Some(index), "a read of a follower").await;
        applied.map(drop).map_err(|_| Refused::ended())
    }
}

fn other_leader(group: &Group) -> Option<(u64, Member)> {
    let metrics = group.metrics.borrow_watched();
    let leader = metrics.current_leader.filter(|leader| *leader != metrics.id)?;
    Some((leader, metrics.membership_config.membership().get_node(&leader)?.clone()))
}

async fn lead(group: &Group) -> Result<(), Refused> {
    // Whether something that is still there by the instant may have expired by the leader's time.
    let is_behind = || group.clock.millis() > group.instant.millis() + TICK_MILLIS;
    if !(group.db().has_expiring_entries() && is_behind()) {
        let by_read_index = LinearizerOption::new(Some(Duration::ZERO), true).with_wait_timeout(HEAR_MAJORITY);
        return group.raft.ensure_linearizable(by_read_index).await.map(drop).map_err(Refused::of_read);
    }
    match group.write(Vec::new()).await {
        // A tick changes nothing but the instant, so the client may repeat the read.
        Err(Refused::Uncertain(why)) => Err(Refused::NoMajority(why)),
        ticked => ticked.map(drop),
    }
}
