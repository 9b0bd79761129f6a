//! Changes of a group's members.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, Result};
use std::time::Duration;

use openraft::ChangeMembers;
use openraft::async_runtime::WatchReceiver;
use tokio::time::timeout;

use super::handle::Group;
use super::refused::Refused;
use crate::types::{Member, Position};
use crate::wire::control::ControlReply;

/// A node gets a vote, or may become the leader, once it is at most this many entries behind: it catches up on these while new ones are written.
pub(crate) const LEVEL: u64 = 1000;
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

    /// As the leader, hands over to another voter. That leads then, unless it has lost the election, or this node has not heard from it yet.
    pub(crate) async fn move_leader(&self, node: u64) -> Result<ControlReply> {
        if let Err(Refused::NotLeader(leader)) = self.leads() {
            return Ok(ControlReply::NotLeader(leader));
        }
        let (is_own, is_voter, behind) = {
            let metrics = self.metrics.borrow_watched();
            let is_voter = metrics.membership_config.voter_ids().any(|voter| voter == node);
            let matched = metrics.replication.iter().flatten().find(|(other, _)| **other == node);
            let matched = matched.and_then(|(_, matched)| Some(matched.as_ref()?.index));
            let behind = matched.map(|matched| metrics.last_log_index.unwrap_or(0).saturating_sub(matched));
            (node == metrics.id, is_voter, behind)
        };
        match behind {
            _ if !is_voter => return Err(Error::other(format!("node {node} has no vote in group {}", self.number()))),
            _ if is_own => {}
            Some(behind) if behind > LEVEL => {
                let group = self.number();
                let reason = format!("node {node} is {behind} log entries of group {group} behind the leader");
                return Err(Error::other(reason));
            }
            Some(_) => self.hand_over_to(node).await,
            None => {}
        }
        Ok(ControlReply::Done)
    }

    /// As the only voter, stores the present addresses of this node, which `recover` cannot know. Other voters could not reach a leader at a new address.
    pub(crate) async fn store_addresses(&self, own: &Member) -> Result<()> {
        let node = {
            let metrics = self.metrics.borrow_watched();
            let membership = metrics.membership_config.membership();
            let is_only = membership.voter_ids().eq([metrics.id]);
            Some(metrics.id).filter(|node| is_only && membership.get_node(node) != Some(own))
        };
        match node.filter(|_| self.leads().is_ok()) {
            Some(node) => {
                let nodes = BTreeMap::from([(node, own.clone())]);
                self.change(ChangeMembers::SetNodes(nodes), true).await.map(drop)
            }
            None => Ok(()),
        }
    }

    async fn change(&self, change: ChangeMembers<u64, Member>, keeps_learners: bool) -> Result<ControlReply> {
        match timeout(DEADLINE, self.raft.change_membership(change, keeps_learners)).await? {
            Ok(changed) => Ok(ControlReply::Changed(Position::of(&changed.log_id))),
            Err(error) => match error.forward_to_leader() {
                Some(forward) => Ok(ControlReply::NotLeader(forward.leader_node.clone())),
                None => Err(Error::other(error)),
            },
        }
    }
}
