//! Changes of a group's members.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, Result};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use tokio::time::{sleep, timeout};

use super::handle::Group;
use crate::types::{Member, Position};
use crate::wire::control::ControlReply;

/// A new leader has heard a majority after this time.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// A change that is not committed after this time is reported as failed; it may still be committed later.
const DEADLINE: Duration = Duration::from_secs(10);

impl Group {
    /// Makes these nodes the first members, unless the group already has members.
    pub(crate) async fn initialize(&self, members: BTreeMap<u64, Member>) -> Result<ControlReply> {
        match self.raft.initialize(members).await {
            Ok(()) => Ok(ControlReply::Done),
            Err(error) => Err(Error::other(error)),
        }
    }

    /// Adds a node that receives the log. The node has no vote.
    pub(crate) async fn add_learner(&self, node: u64, member: Member) -> Result<ControlReply> {
        let told = self.change(ChangeMembers::AddNodes(BTreeMap::from([(node, member.clone())])), true).await?;
        let known = self.metrics.borrow_watched().membership_config.membership().get_node(&node).cloned();
        match (&told, known) {
            (ControlReply::Changed(_), Some(known)) if known != member => {
                Err(Error::other(format!("node {node} is at {} already", known.cluster)))
            }
            _ => Ok(told),
        }
    }

    /// Gives a learner (a member without a vote) a vote.
    pub(crate) async fn promote(&self, node: u64) -> Result<ControlReply> {
        self.change(ChangeMembers::AddVoterIds(BTreeSet::from([node])), true).await
    }

    /// Removes a node from the group.
    pub(crate) async fn remove(&self, node: u64) -> Result<ControlReply> {
        let (is_voter, is_member, voters) = {
            let metrics = self.metrics.borrow_watched();
            let membership = metrics.membership_config.membership();
            let voters: BTreeSet<u64> = membership.voter_ids().collect();
            (voters.contains(&node), membership.get_node(&node).is_some(), voters.len())
        };
        if is_voter && voters == 1 {
            return Err(Error::other(format!("node {node} is the last one of group {}", self.number())));
        }
        if !is_member && self.leads().is_ok() {
            return Ok(ControlReply::Done);
        }
        let nodes = BTreeSet::from([node]);
        let change = if is_voter { ChangeMembers::RemoveVoters(nodes) } else { ChangeMembers::RemoveNodes(nodes) };
        self.change(change, false).await
    }

    async fn change(&self, change: ChangeMembers<u64, Member>, keeps_learners: bool) -> Result<ControlReply> {
        self.check_majority().await?;
        let changed = timeout(DEADLINE, self.raft.change_membership(change, keeps_learners)).await;
        let uncertain =
            format!("no majority has confirmed the change within {DEADLINE:?}: it may take place later or not");
        match changed.map_err(|_| Error::other(uncertain))? {
            Ok(changed) => Ok(ControlReply::Changed(Position::of(&changed.log_id))),
            Err(error) => match error.forward_to_leader() {
                Some(forward) => Ok(ControlReply::NotLeader(forward.leader_node.clone())),
                None => Err(Error::other(error)),
            },
        }
    }

    /// Fails if this node leads, but does not hear a majority: then no change can be committed.
    async fn check_majority(&self) -> Result<()> {
        let is_heard = async {
            while self.leads().is_ok() && !self.is_served() {
                sleep(PAUSE).await
            }
        };
        let checked = timeout(HEAR_MAJORITY, is_heard).await;
        let number = self.number();
        let reason = format!("the leader of group {number} does not hear a majority of its voters: start these first");
        checked.map_err(|_| Error::other(reason))
    }
}
