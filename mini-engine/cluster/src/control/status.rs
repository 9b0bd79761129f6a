//! [`Status`]: a whole cluster, as its nodes see it.

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
    pub description: Result<Description, String>,
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
            let group = node.description.as_ref().ok()?.groups.get(group as usize)?;
            (group.leader? == node.node).then_some(group.term)
        };
        // A node that was cut off may still think that it leads.
        let leaders = self.nodes.iter().filter_map(|node| Some((leads(&node)?, node.node)));
        leaders.max().map(|(_, node)| node)
    }

    /// A group as one of its nodes sees it.
    pub fn group(&self, node: u64, group: u32) -> Option<&GroupDescription> {
        let found = self.nodes.iter().find(|status| status.node == node)?;
        found.description.as_ref().ok()?.groups.get(group as usize)
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

    /// Whether a node votes in every group, as its leader knows.
    pub fn votes(&self, node: u64) -> bool {
        let votes = |group| Some(self.group(self.leader(group)?, group)?.voters.contains(&node));
        (0..self.groups).all(|group| votes(group).unwrap_or(true))
    }
}
