//! [`Status`]: the state of a whole cluster, as its nodes describe it.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::client::ControlClient;
use crate::clock::system_clock;
use crate::error::Result;
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
    /// Milliseconds since 1970, by the clock of the machine that requested the status.
    pub clock: u64,
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
}

impl ControlClient {
    /// The state of the cluster to which the node at `address` belongs. Every node is queried.
    ///
    /// # Errors
    /// Returns an error if that node cannot be reached, or belongs to no cluster.
    pub async fn status(&self, address: &str) -> Result<Status> {
        let (cluster, mut places) = self.cluster(address).await?;
        let own = self.describe(address).await?.member;
        let mut nodes = BTreeMap::from([(cluster.node, self.status_of(cluster.node, own).await)]);
        loop {
            // A node may know more members than the one that was queried first.
            let others = places.members().into_iter().filter(|(node, _)| !nodes.contains_key(node));
            let asked = join_all(others.map(|(node, member)| self.status_of(node, member))).await;
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
        Ok(Status { cluster: cluster.cluster, groups: cluster.groups, nodes, places, clock: system_clock()() })
    }

    async fn status_of(&self, node: u64, member: Member) -> NodeStatus {
        let description = self.describe(&member.cluster).await.map_err(|error| error.to_string());
        NodeStatus { node, member, description }
    }
}

impl NodeStatus {
    /// The number of milliseconds by which the node's clock is ahead of the clock of the requesting machine; negative if it is behind.
    pub fn clock_offset(&self, clock: u64) -> Option<i64> {
        let description = self.description.as_ref().ok()?;
        i64::try_from(i128::from(description.clock) - i128::from(clock)).ok()
    }
}

impl Status {
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

    /// The first and the last slot of a group.
    pub fn slots(&self, group: u32) -> (u16, u16) {
        let slots = slots_of(group, self.groups);
        (slots.start, slots.end - 1)
    }

    /// The number of entries by which a node is behind the leader of a group.
    pub fn lag(&self, node: u64, group: u32) -> Option<u64> {
        let leader = self.group(self.leader(group)?, group)?;
        Some(leader.last.saturating_sub(self.group(node, group)?.applied))
    }

    /// The groups of which a node is a member, whether it holds them already or is still receiving them.
    pub fn groups_of(&self, node: u64) -> Vec<u32> {
        let members = |group: &u32| self.places.get(*group).members().any(|(member, _)| member == node);
        (0..self.groups).filter(members).collect()
    }

    /// Whether a node votes in every group of which it is a member.
    pub fn votes(&self, node: u64) -> bool {
        self.groups_of(node).into_iter().all(|group| self.places.get(group).votes(node))
    }
}
