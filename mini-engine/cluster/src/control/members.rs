//! Adds a node to groups, removes a node from groups, and makes a node the leader of groups. The commands together move a group to another machine.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::client::{ControlClient, LEADER_DEADLINE, refused, retry_until};
use super::status::{NodeStatus, Status};
use crate::error::{Error, Result};
use crate::group::LEVEL;
use crate::identity::{Joined, draw};
use crate::places::Membership;
use crate::types::Position;
use crate::wire::control::{ControlRequest, GroupRequest};

/// The maximum time until a new node has caught up; it may have to receive a large snapshot first.
const LEVEL_DEADLINE: Duration = Duration::from_secs(24 * 3600);

/// The result of removing a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removed {
    /// The node's number.
    pub node: u64,
    /// Whether the node is still a member of other groups.
    pub is_member: bool,
}

impl ControlClient {
    /// Makes the node at `address` a member of the groups `groups`, in the cluster of the node at `to`. If `groups` is `None`, it joins all groups,
    /// in which every other node must be. Calls `progress` with a group and the number of entries that are still missing. Returns the node's number.
    ///
    /// # Errors
    /// Returns an error if a node cannot be reached, the new node belongs to another cluster, or `groups` is missing although it is needed.
    pub async fn add(
        &self,
        address: &str,
        to: &str,
        groups: Option<&[u32]>,
        mut progress: impl FnMut(u32, u64),
    ) -> Result<u64> {
        let new = self.describe(address).await?;
        if new.lacks_room {
            return Err(refused(address, "its disk is almost full"));
        }
        let status = self.status(to).await?;
        let holds_all = |node: &NodeStatus| status.groups_of(node.node).len() == status.groups as usize;
        if groups.is_none() && !status.nodes.iter().all(holds_all) {
            return Err(status.refused("expected --groups, since not every node of this cluster holds all of them"));
        }
        let groups = status.chosen(groups, |_| true)?;
        let node = match new.identity {
            Some(identity) if identity.cluster != status.cluster => {
                let reason = format!("it is a node of cluster {:016x} already", identity.cluster);
                return Err(refused(address, reason));
            }
            Some(identity) => identity.node,
            None => new_number()?,
        };
        let present = status.groups_of(node);
        for group in groups.iter().filter(|group| !present.contains(group)) {
            self.wait_until_left(address, *group).await?;
        }
        let identity = status.identity(node);
        let others: BTreeSet<String> = status.places.members().into_values().map(|member| member.cluster).collect();
        let join = async |joined: Joined| {
            self.tell(address, None, ControlRequest::Become { identity, joined, others: others.clone() }).await
        };
        join(groups.iter().map(|group| (*group, None)).collect()).await?;
        let mut added = Vec::new();
        for group in groups {
            let position = self.change(to, group, GroupRequest::AddLearner(node, new.member.clone())).await?;
            join(Joined::from([(group, Some(position))])).await?;
            added.push((group, position.index));
        }
        for (group, since) in added {
            self.wait_until_level(address, to, group, (node, since), &mut progress).await?;
            self.tell_leader(to, group, GroupRequest::Promote(node)).await?;
        }
        Ok(node)
    }

    /// Removes a node, given by its number or address, from `groups` in the cluster of the node at `from`; `None` stands for all groups. The removed
    /// node frees the space when it learns of this. With `force`, also if too few of the other voters reply.
    ///
    /// # Errors
    /// Returns an error if the node is not a member or is the last member of a group, or if the remaining voters that can be reached are no majority.
    pub async fn remove(&self, node: &str, from: &str, groups: Option<&[u32]>, force: bool) -> Result<Removed> {
        self.remove_since(node, from, groups, force, None).await
    }

    /// Like [`remove`](Self::remove). With `since`, fails unless the entry at this position has set the group's newest members.
    pub(crate) async fn remove_since(
        &self,
        node: &str,
        from: &str,
        groups: Option<&[u32]>,
        force: bool,
        since: Option<Position>,
    ) -> Result<Removed> {
        let status = self.status(from).await?;
        let (groups, found) = (status.chosen(groups, |_| true)?, status.named(node)?);
        let node = found.node;
        let leaves = || status.places.of_member(node).filter(|(group, _)| groups.contains(group));
        for (group, membership) in leaves().filter(|(_, membership)| membership.voters.contains(&node)) {
            check_rest(&status, group, membership, node, force)?;
        }
        if let Ok(description) = &found.description {
            // A node whose addition was interrupted has no record of its membership, and would keep the group.
            let here = leaves().filter(|(group, _)| description.groups.contains_key(group));
            let joined = here.map(|(group, membership)| (group, Some(membership.since))).collect();
            let ask = ControlRequest::Become { identity: status.identity(node), joined, others: BTreeSet::new() };
            // The node may have left the group meanwhile.
            self.tell(&found.member.cluster, Some((status.cluster, node)), ask).await.ok();
        }
        for group in groups.iter().copied() {
            self.tell_leader(from, group, GroupRequest::Remove(node, since)).await?;
        }
        let is_member = status.groups_of(node).iter().any(|group| !groups.contains(group));
        Ok(Removed { node, is_member })
    }

    /// Makes a node, given by its number or address, the leader of `groups`, in the cluster of the node at `address`; `None` stands for all groups in
    /// which the node votes. Returns the node's number and its groups when it leads them.
    ///
    /// # Errors
    /// Returns an error if the node is not a voter, does not answer, or is far behind the leader; then nothing has changed in this group. Also if another
    /// node is elected.
    pub async fn move_leader(&self, node: &str, address: &str, groups: Option<&[u32]>) -> Result<(u64, Vec<u32>)> {
        let status = self.status(address).await?;
        let NodeStatus { node, description, .. } = status.named(node)?;
        let groups = status.chosen(groups, |group| status.places.get(*group).votes(*node))?;
        if let Err(reason) = description {
            // A leader that hands over to a missing node leaves the group without a leader for a moment.
            return Err(status.refused(format!("node {node} does not answer: {reason}")));
        }
        for group in &groups {
            self.move_leader_of(address, *group, *node).await?;
        }
        Ok((*node, groups.into_iter().collect()))
    }

    async fn move_leader_of(&self, address: &str, group: u32, node: u64) -> Result<()> {
        // Only once: the group accepts no writes until the next election is over.
        self.tell_leader(address, group, GroupRequest::HandOver(node)).await?;
        let mut leader = None;
        let elected = retry_until(LEADER_DEADLINE, async || {
            leader = self.describe_by_leader(address, group).await?.and_then(|found| found.leader);
            Ok((leader == Some(node)).then_some(()))
        });
        elected.await?.ok_or_else(|| {
            let leader = leader.map_or_else(|| "no node".into(), |leader| format!("node {leader}"));
            refused(
                address,
                format!("node {node} was not elected in {LEADER_DEADLINE:?}: {leader} leads group {group}"),
            )
        })
    }

    /// Waits until a node that is no member of a group has removed what it had of it, but not for ever: if it has not, it keeps that.
    async fn wait_until_left(&self, address: &str, group: u32) -> Result<()> {
        let is_gone = async || {
            let described = self.describe(address).await?;
            Ok(described.groups.get(&group).is_none_or(|found| found.last == 0).then_some(()))
        };
        retry_until(LEADER_DEADLINE, is_gone).await.map(drop)
    }

    /// Waits until the node at `address` lacks few entries, and has applied the entry `since`, which added it: before that, a node that comes back may
    /// not vote.
    async fn wait_until_level(
        &self,
        address: &str,
        to: &str,
        group: u32,
        (node, since): (u64, u64),
        progress: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let mut silent = None;
        let is_level = retry_until(LEVEL_DEADLINE, async || {
            // Only the leader has this information. The leader has it only after the node's first reply.
            let found = self.describe_by_leader(to, group).await?;
            let behind = found.and_then(|found| Some(found.last.saturating_sub(*found.matched.get(&node)?)));
            if behind.inspect(|behind| progress(group, *behind)).is_none_or(|behind| behind > LEVEL) {
                silent = None;
                return Ok(None);
            }
            // A node that does not answer for a moment may still catch up.
            let own = match self.describe(address).await {
                Ok(mut own) => own.groups.remove(&group),
                Err(error @ Error::Io { .. })
                    if silent.get_or_insert_with(Instant::now).elapsed() > LEADER_DEADLINE =>
                {
                    return Err(error);
                }
                Err(Error::Io { .. }) => return Ok(None),
                Err(error) => return Err(error),
            };
            silent = None;
            Ok(own.filter(|own| own.applied >= since).map(drop))
        });
        let late = || refused(to, format!("node {node} is not level in {LEVEL_DEADLINE:?}"));
        is_level.await?.ok_or_else(late)
    }
}

/// A number that no node has or had: a random one of 2^40, greater than the numbers that `init` assigns. The successor of the greatest known number
/// would be unsafe: a removed node may have had it, or another command may be assigning it now.
fn new_number() -> Result<u64> {
    Ok(1 << 40 | draw()? >> 24)
}

/// Checks that a group still has a majority without one of its voters.
fn check_rest(status: &Status, group: u32, membership: &Membership, node: u64, force: bool) -> Result<()> {
    let rest: Vec<u64> = membership.voters.iter().copied().filter(|voter| *voter != node).collect();
    let living = rest.iter().filter(|voter| status.group(**voter, group).is_some()).count();
    if rest.is_empty() {
        return Err(
            status.refused(format!("node {node} is the last one of group {group}: add another one to it first"))
        );
    }
    if force || living > rest.len() / 2 {
        return Ok(());
    }
    Err(status.refused(format!(
        "of the {} voters that group {group} would have without node {node}, {living} answer, which is no majority: start the others first, or give \
         --force",
        rest.len()
    )))
}
