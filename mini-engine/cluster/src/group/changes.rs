//! Changes of a group's members.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Error, Result};
use std::time::Duration;

use mini_engine_server::replicated::{Proposal, Write};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::{ClientWriteError, RaftError};
use openraft::raft::ClientWriteResponse;
use openraft::{ChangeMembers, Precondition, RaftMetrics};
use tokio::time::{sleep, timeout};

use super::handle::{Group, HAND_OVER};
use super::refused::Refused;
use crate::types::{Member, Position, TypeConfig};
use crate::wire::control::ControlReply;

/// A new leader has heard a majority after this time.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
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
        let told = self.change(ChangeMembers::AddNodes(BTreeMap::from([(node, member.clone())])), true, None).await?;
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
        self.change(ChangeMembers::AddVoterIds(BTreeSet::from([node])), true, None).await
    }

    /// Removes a node from the group; with `since`, only if the entry at this position has set the newest members.
    pub(crate) async fn remove(&self, node: u64, since: Option<Position>) -> Result<ControlReply> {
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
        self.change(change, false, since).await
    }

    /// As the leader, hands over to another voter. That leads then, unless it has lost the election, or this node has not heard from it yet.
    pub(crate) async fn move_leader(&self, node: u64) -> Result<ControlReply> {
        if let Err(Refused::NotLeader(leader)) = self.leads() {
            return Ok(ControlReply::NotLeader(leader));
        }
        let is_voter = self.metrics.borrow_watched().membership_config.voter_ids().any(|voter| voter == node);
        if !is_voter {
            return Err(Error::other(format!("node {node} has no vote in group {}", self.number())));
        }
        let behind = |metrics: &RaftMetrics<TypeConfig>| {
            let mut others = metrics.replication.iter().flatten();
            let matched =
                others.find(|(other, _)| **other == node).and_then(|(_, matched)| Some(matched.as_ref()?.index));
            let matched = if node == metrics.id { metrics.last_log_index } else { matched };
            matched.map(|matched| metrics.last_log_index.unwrap_or(0).saturating_sub(matched))
        };
        // A new leader hears from the others within moments.
        let has_heard = |metrics: &RaftMetrics<TypeConfig>| behind(metrics).is_some();
        let heard = self.raft.wait(Some(HAND_OVER)).metrics(has_heard, "a voter has answered").await;
        match heard.ok().and_then(|metrics| Some((metrics.id, behind(&metrics)?))) {
            None => Err(Error::other(format!("node {node} does not answer the leader of group {}", self.number()))),
            Some((own, _)) if own == node => Ok(ControlReply::Done),
            Some((_, behind)) if behind > LEVEL => {
                let group = self.number();
                Err(Error::other(format!("node {node} is {behind} log entries of group {group} behind the leader")))
            }
            Some(_) => {
                self.hand_over_to(node).await;
                Ok(ControlReply::Done)
            }
        }
    }

    async fn change(
        &self,
        change: ChangeMembers<u64, Member>,
        keeps_learners: bool,
        since: Option<Position>,
    ) -> Result<ControlReply> {
        self.check_majority().await?;
        let is_since = since.map(|at| Precondition::LastMembershipLogId { last_membership_log_id: Some(at.log_id()) });
        let changed = timeout(DEADLINE, self.raft.change_membership_if(change, keeps_learners, is_since)).await;
        let uncertain =
            format!("no majority has confirmed the change within {DEADLINE:?}: it may take place later or not");
        reply(changed.map_err(|_| Error::other(uncertain))?)
    }

    /// As the leader, adds an entry to the log at which all replicas hash their contents.
    pub(crate) async fn begin_check(&self) -> Result<ControlReply> {
        let proposal = Proposal { at: self.clock().millis(), writes: vec![Write::check()] };
        reply(timeout(DEADLINE, self.raft.client_write(proposal)).await?)
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

/// The reply to a request for the leader, of which openraft has this result.
fn reply(
    written: std::result::Result<ClientWriteResponse<TypeConfig>, RaftError<TypeConfig, ClientWriteError<TypeConfig>>>,
) -> Result<ControlReply> {
    match written {
        Ok(written) => Ok(ControlReply::Changed(Position::of(&written.log_id))),
        Err(error) => match error.forward_to_leader() {
            Some(forward) => Ok(ControlReply::NotLeader(forward.leader_node.clone())),
            None => Err(Error::other(error)),
        },
    }
}
