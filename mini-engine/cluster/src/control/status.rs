//! [`Status`]: a whole cluster, as its nodes see it.

use std::collections::BTreeMap;

use futures_util::future::join_all;

use super::client::ControlClient;
use crate::clock::system_clock;
use crate::error::Result;
use crate::places::Places;
use crate::slots::slots_of;
use crate::types::Member;
use crate::wire::control::{Description, GroupDescription};

/// A cluster as its nodes see it.
#[derive(Clone, Debug)]
pub struct Status {
    /// The number of the cluster.
    pub cluster: u64,
    /// The number of groups.
    pub groups: u32,
    /// Its nodes, by their numbers.
    pub nodes: Vec<NodeStatus>,
    /// Where the groups are, as far as any of the nodes knows.
    pub places: Places,
    /// Milliseconds since 1970, by the clock of the machine that asked.
    pub clock: u64,
}

/// A node of a cluster.
#[derive(Clone, Debug)]
pub struct NodeStatus {
    /// Its number.
    pub node: u64,
    /// Its addresses.
    pub member: Member,
    /// What it says of itself, or why it says nothing.
    pub description: std::result::Result<Description, String>,
}

impl ControlClient {
    /// The cluster of the node at `address`. Every node is asked.
    ///
    /// # Errors
    /// If that node cannot be reached, or belongs to no cluster.
    pub async fn status(&self, address: &str) -> Result<Status> {
        let (cluster, mut places) = self.cluster(address).await?;
        let own = self.describe(address).await?.member;
        let mut nodes = BTreeMap::from([(cluster.node, self.status_of(cluster.node, own).await)]);
        loop {
            // One may know more members than the one that was asked first.
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
    /// How many milliseconds the node's clock is ahead of that of the machine that asked; less than 0 if it is behind.
    pub fn clock_offset(&self, clock: u64) -> Option<i64> {
        let description = self.description.as_ref().ok()?;
        i64::try_from(i128::from(description.clock) - i128::from(clock)).ok()
    }
}

impl Status {
    /// The leader of a group, if a node is one and says so itself.
    pub fn leader(&self, group: u32) -> Option<u64> {
        let leads = |node: &&NodeStatus| {
            let group = node.description.as_ref().ok()?.groups.get(&group)?;
            (group.leader? == node.node).then_some(group.term)
        };
        // A node that was cut off may still think that it leads.
        let leaders = self.nodes.iter().filter_map(|node| Some((leads(&node)?, node.node)));
        leaders.max().map(|(_, node)| node)
    }

    /// A group as one of its nodes sees it.
    pub fn group(&self, node: u64, group: u32) -> Option<&GroupDescription> {
        let found = self.nodes.iter().find(|status| status.node == node)?;
        found.description.as_ref().ok()?.groups.get(&group)
    }

    /// The first and the last slot of a group.
    pub fn slots(&self, group: u32) -> (u16, u16) {
        let slots = slots_of(group, self.groups);
        (slots.start, slots.end - 1)
    }

    /// How many entries a node is behind the leader of a group.
    pub fn lag(&self, node: u64, group: u32) -> Option<u64> {
        let leader = self.group(self.leader(group)?, group)?;
        Some(leader.last.saturating_sub(self.group(node, group)?.applied))
    }

    /// The groups that a node holds, or gets now, as a member.
    pub fn groups_of(&self, node: u64) -> Vec<u32> {
        let members = |group: &u32| self.places.get(*group).members().any(|(member, _)| member == node);
        (0..self.groups).filter(members).collect()
    }

    /// Whether a node votes in every group of which it is a member.
    pub fn votes(&self, node: u64) -> bool {
        self.groups_of(node).into_iter().all(|group| self.places.get(group).votes(node))
    }
}
