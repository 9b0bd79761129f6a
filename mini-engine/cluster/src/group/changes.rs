//! What commands ask of a group: changes of its members, another leader, a check.

use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::time::Duration;

use mini_engine_server::replicated::{Proposal, Write};
use openraft::errors::{ClientWriteError, RaftError};
use openraft::raft::ClientWriteResponse;
use openraft::{ChangeMembers, Precondition, RaftMetrics, ServerState};
use tokio::time::{sleep, timeout};

use super::handle::Group;
use crate::places::Membership;
use crate::types::{Member, Position, TypeConfig};
use crate::wire::control::{ControlReply, GroupRequest};

/// The maximum time for which a leader waits for the next leader, or to hear from it.
const HAND_OVER: Duration = Duration::from_secs(1);
/// A new leader has heard a majority after this time.
const HEAR_MAJORITY: Duration = Duration::from_secs(2);
const PAUSE: Duration = Duration::from_millis(50);
/// A node gets a vote, or may become the leader, once it is at most this many entries behind: it catches up on these while new ones are written.
pub(crate) const LEVEL: u64 = 1000;
/// A change that is not committed after this time is reported as failed; it may still be committed later.
const DEADLINE: Duration = Duration::from_secs(10);

impl Group {
    pub(crate) async fn answer(&self, request: GroupRequest) -> Result<ControlReply> {
        match request {
            GroupRequest::Initialize(members) => {
                self.raft.initialize(members).await.map(|()| ControlReply::Done(None)).map_err(Error::other)
            }
            GroupRequest::AddLearner(node, member) => self.add_learner(node, member).await,
            GroupRequest::Promote(node) => self.change(ChangeMembers::AddVoterIds([node].into()), None).await,
            GroupRequest::Remove(node, since) => self.remove(node, since).await,
            GroupRequest::HandOver(node) => self.move_leader(node).await,
            GroupRequest::Check => {
                let proposal = Proposal { at: self.clock.millis(), writes: vec![Write::check()] };
                reply(timeout(DEADLINE, self.raft.client_write(proposal)).await?)
            }
            GroupRequest::Checked(index) => Ok(ControlReply::Checked(self.checked(index))),
        }
    }

    async fn add_learner(&self, node: u64, member: Member) -> Result<ControlReply> {
        let told = self.change(ChangeMembers::AddNodes([(node, member.clone())].into()), None).await?;
        match (&told, self.describe().membership.members.remove(&node)) {
            (ControlReply::Done(_), Some(known)) if known != member => {
                Err(Error::other(format!("node {node} is at {} already", known.cluster)))
            }
            _ => Ok(told),
        }
    }

    async fn remove(&self, node: u64, since: Option<Position>) -> Result<ControlReply> {
        let Membership { members, voters, .. } = self.describe().membership;
        let is_voter = voters.contains(&node);
        if is_voter && voters.len() == 1 {
            return Err(Error::other(format!("node {node} is the last one of group {}", self.number)));
        }
        if !members.contains_key(&node) && self.leads().is_ok() {
            return Ok(ControlReply::Done(None));
        }
        let nodes = BTreeSet::from([node]);
        let change = if is_voter { ChangeMembers::RemoveVoters(nodes) } else { ChangeMembers::RemoveNodes(nodes) };
        self.change(change, since).await
    }

    /// As the leader, hands over to another voter. That leads then, unless it has lost the election, or this node has not heard from it yet.
    async fn move_leader(&self, node: u64) -> Result<ControlReply> {
        let group = self.number;
        if self.leads().is_err() {
            return Ok(ControlReply::NotLeader);
        }
        if !self.describe().membership.voters.contains(&node) {
            return Err(Error::other(format!("node {node} has no vote in group {group}")));
        }
        if node == *self.raft.node_id() {
            return Ok(ControlReply::Done(None));
        }
        let behind = |metrics: &RaftMetrics<TypeConfig>| {
            let matched = metrics.replication.as_ref()?.get(&node)?.as_ref()?.index;
            Some(metrics.last_log_index.unwrap_or(0).saturating_sub(matched))
        };
        // A new leader hears from the others within moments.
        let has_heard = |metrics: &RaftMetrics<TypeConfig>| behind(metrics).is_some();
        let heard = self.raft.wait(Some(HAND_OVER)).metrics(has_heard, "a voter has answered").await;
        match heard.ok().as_ref().and_then(behind) {
            None => Err(Error::other(format!("node {node} does not answer the leader of group {group}"))),
            Some(behind) if behind > LEVEL => {
                Err(Error::other(format!("node {node} is {behind} log entries of group {group} behind the leader")))
            }
            Some(_) => {
                self.hand_over_to(node).await;
                Ok(ControlReply::Done(None))
            }
        }
    }

    /// If this node leads, makes another one the leader, if possible not one in `lacking`, so that the others need not wait for an election timeout.
    pub(crate) async fn hand_over(&self, lacking: &BTreeSet<u64>) {
        if let Some(next) = self.fit_leader(lacking).or_else(|| self.next_leader(|_, _| true)) {
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

    /// For a leader: the best next leader that was heard lately, has room, and lacks few entries.
    pub(crate) fn fit_leader(&self, lacking: &BTreeSet<u64>) -> Option<u64> {
        let followers = self.followers();
        self.next_leader(|node, behind| followers.contains(node) && !lacking.contains(node) && behind <= LEVEL)
    }

    /// For a leader: the voter that has received the largest part of the log, among those that suit by their numbers and the entries that they lack.
    fn next_leader(&self, suits: impl Fn(&u64, u64) -> bool) -> Option<u64> {
        let (own, now) = (*self.raft.node_id(), self.describe());
        let is_voter = |node: &u64| *node != own && now.membership.voters.contains(node);
        let behind = |matched: &u64| now.last.saturating_sub(*matched);
        let others = now.matched.iter().filter(|(node, matched)| is_voter(node) && suits(node, behind(matched)));
        others.max_by_key(|(_, matched)| **matched).map(|(node, _)| *node)
    }

    /// Changes the members; with `since`, only if the entry at this position has set the newest ones.
    async fn change(&self, change: ChangeMembers<u64, Member>, since: Option<Position>) -> Result<ControlReply> {
        self.check_majority().await?;
        let is_since = since.map(|at| Precondition::LastMembershipLogId { last_membership_log_id: Some(at.log_id()) });
        let changed = timeout(DEADLINE, self.raft.change_membership_if(change, false, is_since)).await;
        let uncertain =
            format!("no majority has confirmed the change within {DEADLINE:?}: it may take place later or not");
        reply(changed.map_err(|_| Error::other(uncertain))?)
    }

    /// Fails if this node leads, but does not hear a majority: then no change can be committed.
    async fn check_majority(&self) -> Result<()> {
        let is_heard = async {
            while self.leads().is_ok() && !self.is_served() {
                sleep(PAUSE).await
            }
        };
        let checked = timeout(HEAR_MAJORITY, is_heard).await;
        let number = self.number;
        let reason = format!("the leader of group {number} does not hear a majority of its voters: start these first");
        checked.map_err(|_| Error::other(reason))
    }
}

/// The reply to a request for the leader, of which openraft has this result.
fn reply(
    written: std::result::Result<ClientWriteResponse<TypeConfig>, RaftError<TypeConfig, ClientWriteError<TypeConfig>>>,
) -> Result<ControlReply> {
    match written {
        Ok(written) => Ok(ControlReply::Done(Some(Position::of(&written.log_id)))),
        Err(error) if error.forward_to_leader().is_some() => Ok(ControlReply::NotLeader),
        Err(error) => Err(Error::other(error)),
    }
}
