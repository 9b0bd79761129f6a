//! [`Places`]: the places of the cluster's groups, as far as this node has learnt them; it holds only some of the groups.
//!
//! The information consists of facts that stay true: a committed log entry set these members; this node led in that term. So the newer of two facts
//! is used, whichever node reported it; no fact is withdrawn. The facts only lead clients and commands to a node; that node has better information.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::types::{Member, Position};

/// The place of a group.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The newest members that are known.
    pub membership: Option<Membership>,
    /// The newest leader that is known: its term and its number.
    pub leader: Option<(u64, u64)>,
}

/// The members of a group, as set by a committed entry of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// The position of that entry.
    pub since: Position,
    /// All members, by their numbers.
    pub members: BTreeMap<u64, Member>,
    /// The members that vote.
    pub voters: BTreeSet<u64>,
}

impl Place {
    /// Takes over the newer facts of another `Place`.
    pub(crate) fn learn(&mut self, other: &Place) {
        let since = |place: &Place| place.membership.as_ref().map(|membership| membership.since);
        if since(other) > since(self) {
            self.membership.clone_from(&other.membership);
        }
        self.leader = self.leader.max(other.leader);
    }

    /// The leader, if it is a member.
    pub fn leader(&self) -> Option<(u64, &Member)> {
        let (_, leader) = self.leader?;
        Some((leader, self.membership.as_ref()?.members.get(&leader)?))
    }

    /// The members, by their numbers.
    pub fn members(&self) -> impl Iterator<Item = (u64, &Member)> {
        self.membership.iter().flat_map(|membership| &membership.members).map(|(node, member)| (*node, member))
    }

    /// Whether a node votes.
    pub fn votes(&self, node: u64) -> bool {
        self.membership.as_ref().is_some_and(|membership| membership.voters.contains(&node))
    }
}

/// The places of groups, by the groups' numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Places(pub BTreeMap<u32, Place>);

impl Places {
    pub(crate) fn learn(&mut self, group: u32, place: &Place) {
        self.0.entry(group).or_default().learn(place);
    }

    /// The known place of a group.
    pub fn get(&self, group: u32) -> Place {
        self.0.get(&group).cloned().unwrap_or_default()
    }

    /// The members of any group, by their numbers.
    pub fn members(&self) -> BTreeMap<u64, Member> {
        self.0.values().flat_map(Place::members).map(|(node, member)| (node, member.clone())).collect()
    }

    /// The groups of which a node is a member.
    pub(crate) fn of_member(&self, node: u64) -> impl Iterator<Item = (u32, &Membership)> {
        let memberships = self.0.iter().filter_map(|(group, place)| Some((*group, place.membership.as_ref()?)));
        memberships.filter(move |(_, membership)| membership.members.contains_key(&node))
    }

    /// Whether the members of all groups are known; `groups` is the number of groups.
    pub(crate) fn is_complete(&self, groups: u32) -> bool {
        (0..groups).all(|group| self.0.get(&group).is_some_and(|place| place.membership.is_some()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(index: u64, nodes: &[u64], leader: (u64, u64)) -> Place {
        let member = |node: &u64| (*node, Member { cluster: format!("h:{node}"), clients: format!("c:{node}") });
        let membership = Membership {
            since: Position { term: 1, leader: 1, index },
            members: nodes.iter().map(member).collect(),
            voters: nodes.iter().copied().collect(),
        };
        Place { membership: Some(membership), leader: Some(leader) }
    }

    #[test]
    fn what_is_newer_counts_whoever_says_it_and_in_whatever_order() {
        // Catches a group that is searched for ever at its old place, because the outdated report of one node is used last.
        let (old, new, elected) = (place(1, &[1, 2], (5, 2)), place(9, &[2, 3], (1, 1)), place(1, &[1, 2], (7, 3)));
        for order in [[&old, &new, &elected], [&elected, &new, &old], [&new, &old, &elected]] {
            let mut places = Places::default();
            assert!(!places.is_complete(1));
            for place in order {
                places.learn(0, place);
            }
            assert_eq!(places.get(0).leader().map(|(leader, _)| leader), Some(3));
            assert!(places.members().into_keys().eq([2, 3]) && places.is_complete(1) && !places.is_complete(2));
        }
        // Clients cannot be sent to a leader that was removed.
        let mut left = old;
        left.learn(&place(9, &[3, 4], (5, 2)));
        assert_eq!(left.leader(), None);
    }
}
