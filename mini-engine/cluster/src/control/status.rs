//! [`Status`]: the state of a whole cluster, as its nodes describe it.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use super::client::{ControlClient, refused};
use crate::clock::{ClockOffset, ahead_of_most};
use crate::error::{Error, Result};
use crate::identity::Identity;
use crate::places::Places;
use crate::slots::slots_of;
use crate::types::Member;
use crate::wire::control::{Description, GroupDescription};

/// The state of a cluster, as its nodes describe it.
#[derive(Clone, Debug)]
pub struct Status {
    /// The number of the cluster.
    pub cluster: u64,
    /// The number of groups.
    pub groups: u32,
    /// The nodes, by their numbers.
    pub nodes: Vec<NodeStatus>,
    /// The places of the groups, as far as any of the nodes has them.
    pub places: Places,
    /// The node that was queried first.
    pub(super) address: String,
}

/// The state of one node of a cluster.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// The node's number.
    pub node: u64,
    /// The node's addresses.
    pub member: Member,
    /// The node's description of itself, or the reason why there is none.
    pub description: std::result::Result<Description, String>,
    /// The offset of the node's clock from the clock of the machine that requested the status, if the node has answered.
    pub clock: Option<ClockOffset>,
}

impl ControlClient {
    /// The state of the cluster to which the node at `address` belongs. Every node is queried.
    ///
    /// # Errors
    /// Returns an error if that node cannot be reached, or belongs to no cluster.
    pub async fn status(&self, address: &str) -> Result<Status> {
        let (cluster, Description { member: own, mut places, .. }) = self.cluster(address).await?;
        let mut nodes = BTreeMap::from([(cluster.node, self.status_of((cluster.cluster, cluster.node), own).await)]);
        loop {
            // A node may know more members than the one that was queried first.
            let others = places.members().into_iter().filter(|(node, _)| !nodes.contains_key(node));
            let asked = join_all(others.map(|(node, member)| self.status_of((cluster.cluster, node), member))).await;
            if asked.is_empty() {
                break;
            }
            nodes.extend(asked.into_iter().map(|status| (status.node, status)));
            for description in nodes.values().flat_map(|status| &status.description) {
                description.places.0.iter().for_each(|(group, place)| places.learn(*group, place));
            }
        }
        let members = places.members();
        nodes.retain(|node, _| *node == cluster.node || members.contains_key(node));
        let nodes = nodes.into_values().collect();
        Ok(Status { cluster: cluster.cluster, groups: cluster.groups, nodes, places, address: address.to_owned() })
    }

    /// The status of this node of this cluster. Another node at its address, or one that has lost its directory, is not taken for it.
    async fn status_of(&self, (cluster, node): (u64, u64), member: Member) -> NodeStatus {
        let described = self.describe_as(&member.cluster, Some((cluster, node))).await;
        let (description, clock) = match described {
            Ok((description, clock)) => (Ok(description), Some(clock)),
            Err(error) => (Err(error.to_string()), None),
        };
        NodeStatus { node, member, description, clock }
    }
}

impl Status {
    pub(super) fn refused(&self, reason: impl Into<String>) -> Error {
        refused(&self.address, reason)
    }

    pub(super) fn identity(&self, node: u64) -> Identity {
        Identity { cluster: self.cluster, node, groups: self.groups }
    }

    /// The member with this number or address.
    pub(super) fn named(&self, node: &str) -> Result<&NodeStatus> {
        let is_named = |status: &&NodeStatus| {
            let NodeStatus { node: number, member, .. } = status;
            number.to_string() == node || member.cluster == node || member.clients == node
        };
        let found = self.nodes.iter().find(is_named).filter(|found| !self.groups_of(found.node).is_empty());
        found.ok_or_else(|| self.refused(format!("expected the number or an address of a member, found {node}")))
    }

    /// The groups with these numbers; without numbers, those that are meant.
    pub(super) fn chosen(&self, groups: Option<&[u32]>, is_meant: impl Fn(&u32) -> bool) -> Result<BTreeSet<u32>> {
        let meant = || (0..self.groups).filter(is_meant).collect();
        let chosen: BTreeSet<u32> = groups.map_or_else(meant, |groups| groups.iter().copied().collect());
        match chosen.range(self.groups..).next().copied() {
            Some(group) => Err(self.refused(format!("expected groups below {}, found {group}", self.groups))),
            None => Ok(chosen),
        }
    }

    /// The leader of a group, if some node reports that it leads the group.
    pub fn leader(&self, group: u32) -> Option<u64> {
        let leads = |node: &&NodeStatus| {
            let group = node.description.as_ref().ok()?.groups.get(&group)?;
            (group.leader? == node.node).then_some(group.term)
        };
        // A node that was cut off may still consider itself the leader, so the highest term counts.
        let leaders = self.nodes.iter().filter_map(|node| Some((leads(&node)?, node.node)));
        leaders.max().map(|(_, node)| node)
    }

    /// The state of a group, as this node describes it.
    pub fn group(&self, node: u64, group: u32) -> Option<&GroupDescription> {
        let found = self.nodes.iter().find(|status| status.node == node)?;
        found.description.as_ref().ok()?.groups.get(&group)
    }

    /// Whether most voters of a group have answered. If not, the group serves no requests.
    pub fn has_majority(&self, group: u32) -> bool {
        let place = self.places.get(group);
        let (there, away): (Vec<_>, Vec<_>) =
            self.nodes.iter().filter(|status| place.votes(status.node)).partition(|status| status.description.is_ok());
        there.len() > away.len()
    }

    /// The first and the last slot of a group.
    pub fn slots(&self, group: u32) -> (u16, u16) {
        let slots = slots_of(group, self.groups);
        (slots.start, slots.end - 1)
    }

    /// The milliseconds by which a node's clock is ahead of most clocks, of which that of the requesting machine is one; 0 if it is off by less than a
    /// second.
    pub fn clock_ahead(&self, node: &NodeStatus) -> i64 {
        let Some(own) = node.clock else { return 0 };
        let others = self.nodes.iter().filter(|other| other.node != node.node).filter_map(|other| other.clock);
        ahead_of_most(others.chain([ClockOffset::default()]).map(|other| other.relative_to(own)))
    }

    /// The number of entries by which a node is behind the leader of a group.
    pub fn lag(&self, node: u64, group: u32) -> Option<u64> {
        let leader = self.group(self.leader(group)?, group)?;
        Some(leader.last.saturating_sub(self.group(node, group)?.applied))
    }

    /// The groups of which a node is a member, whether it holds them already or is still receiving them.
    pub fn groups_of(&self, node: u64) -> Vec<u32> {
        self.places.of_member(node).map(|(group, _)| group).collect()
    }

    /// Whether a node votes in every group of which it is a member.
    pub fn votes(&self, node: u64) -> bool {
        self.groups_of(node).into_iter().all(|group| self.places.get(group).votes(node))
    }
}
