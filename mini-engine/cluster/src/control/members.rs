//! Adds a node to groups, and removes a node from groups. The two commands together move a group to another machine.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::client::{ControlClient, LEADER_DEADLINE, PAUSE, refused};
use super::status::{NodeStatus, Status};
use crate::error::Result;
use crate::group::LEVEL;
use crate::identity::{Identity, Joined, draw};
use crate::places::{Membership, Places};
use crate::types::Position;
use crate::wire::control::ControlRequest;

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
        let groups = match groups {
            Some(groups) => check_groups(to, &status, groups)?,
            None => all_groups(to, &status)?,
        };
        let node = match new.identity {
            Some(identity) if identity.cluster != status.cluster => {
                let reason = format!("it is a node of cluster {:016x} already", identity.cluster);
                return Err(refused(address, reason));
            }
            Some(identity) => identity.node,
            None => new_number()?,
        };
        for group in groups.iter().copied().filter(|group| of_member(&status.places, node).all(|(of, _)| of != *group))
        {
            self.wait_until_left(address, group).await?;
        }
        let identity = identity(&status, node);
        let others: BTreeSet<String> = status.places.members().into_values().map(|member| member.cluster).collect();
        let join = async |joined: Joined| {
            self.tell(address, None, ControlRequest::Become { identity, joined, others: others.clone() }).await
        };
        join(groups.iter().map(|group| (*group, None)).collect()).await?;
        let mut added = Vec::new();
        for group in groups {
            let ask = ControlRequest::AddLearner { group, node, member: new.member.clone() };
            let position = self.change(to, group, ask).await?;
            join(Joined::from([(group, Some(position))])).await?;
            added.push((group, position.index));
        }
        for (group, since) in added {
            self.wait_until_level(to, group, node, since, &mut progress).await?;
            self.tell_leader(to, group, ControlRequest::Promote { group, node }).await?;
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
        let groups = match groups {
            Some(groups) => check_groups(from, &status, groups)?,
            None => (0..status.groups).collect(),
        };
        let found = named(from, &status, node)?;
        let node = found.node;
        let leaves = || of_member(&status.places, node).filter(|(group, _)| groups.contains(group));
        for (group, membership) in leaves().filter(|(_, membership)| membership.voters.contains(&node)) {
            check_rest(&status, group, membership, node, force).map_err(|reason| refused(from, reason))?;
        }
        if let Ok(description) = &found.description {
            // A node whose addition was interrupted has no record of its membership, and would keep the group.
            let here = leaves().filter(|(group, _)| description.groups.contains_key(group));
            let joined = here.map(|(group, membership)| (group, Some(membership.since))).collect();
            let identity = identity(&status, node);
            let ask = ControlRequest::Become { identity, joined, others: BTreeSet::new() };
            // The node may have left the group meanwhile.
            self.tell(&found.member.cluster, Some((status.cluster, node)), ask).await.ok();
        }
        for group in groups.iter().copied() {
            self.tell_leader(from, group, ControlRequest::Remove { group, node, since }).await?;
        }
        let is_member = of_member(&status.places, node).any(|(group, _)| !groups.contains(&group));
        Ok(Removed { node, is_member })
    }

    /// Waits until a node that is no member of a group has removed what it had of it, but not for ever: if it has not, it keeps that.
    async fn wait_until_left(&self, address: &str, group: u32) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < LEADER_DEADLINE
            && self.describe(address).await?.groups.get(&group).is_some_and(|found| found.last > 0)
        {
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Waits until a node has stored the entry `since`, which added it, and lacks few others. Before that entry, a node that comes back may not vote.
    async fn wait_until_level(
        &self,
        address: &str,
        group: u32,
        node: u64,
        since: u64,
        progress: &mut impl FnMut(u32, u64),
    ) -> Result<()> {
        let begun = Instant::now();
        while begun.elapsed() < LEVEL_DEADLINE {
            let found = self.describe_by_leader(address, group).await?;
            // Only the leader has this information. The leader has it only after the node's first reply.
            if let Some((found, matched)) = found.and_then(|group| Some((group.last, *group.matched.get(&node)?))) {
                let behind = found.saturating_sub(matched);
                progress(group, behind);
                if matched >= since && behind <= LEVEL {
                    return Ok(());
                }
            }
            sleep(PAUSE).await;
        }
        Err(refused(address, format!("node {node} is not level in {LEVEL_DEADLINE:?}")))
    }
}

/// A number that no node has or had: a random one of 2^40, greater than the numbers that `init` assigns. The successor of the greatest known number
/// would be unsafe: a removed node may have had it, or another command may be assigning it now.
fn new_number() -> Result<u64> {
    Ok(1 << 40 | draw()? >> 24)
}

fn identity(status: &Status, node: u64) -> Identity {
    Identity { cluster: status.cluster, node, groups: status.groups }
}

/// The member with this number or address.
pub(super) fn named<'a>(address: &str, status: &'a Status, node: &str) -> Result<&'a NodeStatus> {
    let is_named = |status: &&NodeStatus| {
        let NodeStatus { node: number, member, .. } = status;
        number.to_string() == node || member.cluster == node || member.clients == node
    };
    let found = status.nodes.iter().find(is_named).filter(|found| !status.groups_of(found.node).is_empty());
    found.ok_or_else(|| refused(address, format!("expected the number or an address of a member, found {node}")))
}

/// The groups of which this node is a member.
fn of_member(places: &Places, node: u64) -> impl Iterator<Item = (u32, &Membership)> {
    let memberships = places.0.iter().filter_map(|(group, place)| Some((*group, place.membership.as_ref()?)));
    memberships.filter(move |(_, membership)| membership.members.contains_key(&node))
}

pub(super) fn check_groups(address: &str, status: &Status, groups: &[u32]) -> Result<BTreeSet<u32>> {
    match groups.iter().find(|group| **group >= status.groups) {
        None => Ok(groups.iter().copied().collect()),
        Some(group) => Err(refused(address, format!("expected groups below {}, found {group}", status.groups))),
    }
}

/// All groups of the cluster; an error unless every node is a member of each.
fn all_groups(address: &str, status: &Status) -> Result<BTreeSet<u32>> {
    let groups: BTreeSet<u32> = (0..status.groups).collect();
    let have_all = status.nodes.iter().all(|node| status.groups_of(node.node).len() == groups.len());
    match have_all {
        true => Ok(groups),
        false => Err(refused(address, "expected --groups, since not every node of this cluster holds all of them")),
    }
}

/// Checks that a group still has a majority without one of its voters.
fn check_rest(
    status: &Status,
    group: u32,
    membership: &Membership,
    node: u64,
    force: bool,
) -> std::result::Result<(), String> {
    let rest: Vec<u64> = membership.voters.iter().copied().filter(|voter| *voter != node).collect();
    if rest.is_empty() {
        return Err(format!("node {node} is the last one of group {group}: add another one to it first"));
    }
    let living = rest.iter().filter(|voter| status.group(**voter, group).is_some()).count();
    match force || living > rest.len() / 2 {
        true => Ok(()),
        false => Err(format!(
            "of the {} voters that group {group} would have without node {node}, {living} answer, which is no majority: start the others first, or \
             give --force",
            rest.len()
        )),
    }
}
