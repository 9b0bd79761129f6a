//! Creates a cluster.

use std::collections::{BTreeMap, BTreeSet};

use super::client::{ControlClient, refused};
use crate::error::{Error, Result};
use crate::identity::{Identity, draw};
use crate::places::Membership;
use crate::settings::MAX_GROUPS;
use crate::types::{Member, Position};
use crate::wire::control::{ControlRequest, Description, GroupDescription, GroupRequest};

/// The plan of a new cluster.
struct Plan {
    /// The nodes by their numbers, which begin at 1.
    nodes: BTreeMap<u64, Member>,
    groups: u32,
    /// The number of nodes that hold each group.
    replicas: u32,
}

impl ControlClient {
    /// Creates a cluster of the nodes at these addresses, with `groups` groups. Each group is held by `replicas` consecutive nodes; the first of them
    /// advances by one with each group. Returns the nodes by their numbers.
    ///
    /// # Errors
    /// Returns an error if such a cluster is impossible, or a node cannot be reached or belongs to another cluster.
    pub async fn init(&self, addresses: &[String], groups: u32, replicas: u32) -> Result<BTreeMap<u64, Member>> {
        check_numbers(addresses.len() as u32, groups, replicas)?;
        let mut found = Vec::new();
        for address in addresses {
            found.push(self.describe(address).await?);
        }
        let nodes = (1..).zip(found.iter().map(|node| node.member.clone())).collect();
        let plan = Plan { nodes, groups, replicas };
        let cluster = check_new(addresses, &found, &plan)?.map_or_else(draw, Ok)?;
        let others: BTreeSet<String> = plan.nodes.values().map(|member| member.cluster.clone()).collect();
        for (node, address) in (1..).zip(addresses) {
            let identity = Identity { cluster, node, groups };
            // The nodes are members from the beginning of the log on.
            let joined = plan.groups_of(node).map(|group| (group, Some(Position::default()))).collect();
            self.tell(address, None, ControlRequest::Become { identity, joined, others: others.clone() }).await?;
        }
        for group in 0..groups {
            // The node that gets the request becomes a candidate: so each node leads some of the groups.
            let at = group as usize % addresses.len();
            let description = self.describe(&addresses[at]).await?;
            if description.groups.get(&group).is_some_and(|group| group.membership.members.is_empty()) {
                let (audience, members) = (Some((cluster, at as u64 + 1)), plan.members_of(group));
                let request = ControlRequest::Group(group, GroupRequest::Initialize(members));
                self.tell(&addresses[at], audience, request).await?;
            }
        }
        // Waits until all nodes have a report of every leader; this shows that the addresses are right.
        for (address, group) in addresses.iter().flat_map(|address| (0..groups).map(move |group| (address, group))) {
            let found = self.leader(address, group).await?.membership.members;
            let expected = plan.members_of(group);
            if found != expected {
                let (expected, found) = (expected.len(), found.len());
                let reason = format!("expected {expected} members of group {group}, found {found}, or others");
                return Err(refused(address, reason));
            }
        }
        Ok(plan.nodes)
    }
}

impl Plan {
    fn members_of(&self, group: u32) -> BTreeMap<u64, Member> {
        let in_turn = self.nodes.iter().cycle().skip(group as usize % self.nodes.len());
        in_turn.take(self.replicas as usize).map(|(node, member)| (*node, member.clone())).collect()
    }

    fn groups_of(&self, node: u64) -> impl Iterator<Item = u32> {
        (0..self.groups).filter(move |group| self.members_of(*group).contains_key(&node))
    }
}

/// Checks that there are enough nodes for each group, and a group for each node.
fn check_numbers(nodes: u32, groups: u32, replicas: u32) -> Result<()> {
    if !(1..=MAX_GROUPS).contains(&groups) {
        return Err(Error::setting("groups", format!("1 to {MAX_GROUPS}"), groups));
    }
    if !(1..=nodes).contains(&replicas) {
        return Err(Error::setting("replicas", format!("1 to {nodes}, the number of nodes"), replicas));
    }
    let used = groups - 1 + replicas;
    if used < nodes {
        let expected = format!("at least {}, or more replicas: a node would hold no group", nodes - replicas + 1);
        return Err(Error::setting("groups", expected, groups));
    }
    Ok(())
}

/// The number of the cluster that an earlier, interrupted command has begun to create of these nodes, if there is one. Fails if a node is listed
/// twice or belongs to another cluster, or if this cluster is complete already.
fn check_new(addresses: &[String], found: &[Description], plan: &Plan) -> Result<Option<u64>> {
    let begun = found.iter().find_map(|node| node.identity).map(|identity| identity.cluster);
    let has_members = |group: u32| {
        let mut described = found.iter().filter_map(|node| node.groups.get(&group));
        described.any(|group| !group.membership.members.is_empty())
    };
    let (is_begun, is_made) = ((0..plan.groups).any(has_members), (0..plan.groups).all(has_members));
    for ((at, address), node) in (1..).zip(addresses).zip(found) {
        if found[..at as usize - 1].iter().any(|other| other.member == node.member) {
            return Err(refused(address, "this node was named twice"));
        }
        let Some(identity) = node.identity else {
            if !is_begun {
                continue;
            }
            // Groups get their members only after all nodes have their numbers: so this node had a number before, and lost the record of its votes.
            let reason = "the others are in a cluster already; if it was one of them, remove it there and add it";
            return Err(refused(address, reason));
        };
        let is_of_this_command = (Some(identity.cluster), identity.node, identity.groups) == (begun, at, plan.groups)
            && node.groups.keys().copied().eq(plan.groups_of(at))
            && node.groups.iter().all(|(number, GroupDescription { membership: Membership { members, .. }, .. })| {
                members.is_empty() || *members == plan.members_of(*number)
            });
        if is_made || !is_of_this_command {
            let reason = format!("it is node {} of cluster {:016x} already", identity.node, identity.cluster);
            return Err(refused(address, reason));
        }
    }
    Ok(begun)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_spread_in_turn_and_each_node_has_some() {
        // Catches a group that is twice on one node, a node without a group, and accepted numbers that would lead to such a node.
        for (nodes, groups, replicas) in [(5, 5, 3), (3, 1, 3), (5, 1, 5), (4, 2, 3), (2, 64, 1), (1, 1, 1), (6, 4, 3)]
        {
            check_numbers(nodes, groups, replicas).unwrap();
            let member = |node: u32| Member { cluster: format!("h:{node}"), clients: String::new() };
            let plan = Plan { nodes: (1..).zip((0..nodes).map(member)).collect(), groups, replicas };
            let mut held = 0;
            for node in 1..=u64::from(nodes) {
                assert!(plan.groups_of(node).next().is_some(), "node {node} of {nodes}, {groups} groups, {replicas}");
                held += plan.groups_of(node).count() as u32;
            }
            assert_eq!(held, groups * replicas);
            assert!((0..groups).all(|group| plan.members_of(group).len() == replicas as usize));
        }
        for (nodes, groups, replicas) in [(3, 0, 3), (3, 65, 3), (3, 1, 0), (3, 1, 4), (5, 1, 3), (5, 2, 3)] {
            let error = check_numbers(nodes, groups, replicas).unwrap_err().to_string();
            assert!(error.contains("expected "), "{error}");
        }
    }
}
