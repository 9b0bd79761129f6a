//! Evens out the groups and leaders of a cluster, after a node was added or restarted.
//!
//! Groups move first, each from one node to another, so a group has as many members as before. Then leaders move to other voters of their groups. A
//! step is made only if the one node holds, or leads, at least two groups more than the other. It lowers the sum of the squares of these numbers, so
//! the steps end. Before each one, the status of all nodes is read and the next step is chosen anew: nothing moves beside a fault, or from an
//! outdated place. The status is read again before a node is removed, which fails if the members have changed since: so two commands do not both
//! remove one.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::iter::from_fn;

use super::client::ControlClient;
use super::status::Status;
use crate::error::Result;
use crate::places::Membership;

/// A group's members, which all vote, and its leader.
#[derive(Clone, Debug)]
struct Held {
    members: BTreeSet<u64>,
    leader: u64,
}

/// `to` gets the group of `from`, and leads it if `from` does; without `from`, `to` is a member and gets the lead.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Move {
    group: u32,
    from: Option<u64>,
    to: u64,
}

impl Display for Move {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { group, from, to } = self;
        match from {
            Some(from) => write!(f, "move group {group} from node {from} to node {to}"),
            None => write!(f, "let node {to} lead group {group}"),
        }
    }
}

impl ControlClient {
    /// Moves groups and leaders of the cluster of the node at `address` until no single move makes the numbers of groups that nodes hold, and lead,
    /// more even. Passes each move to `begins` before it is made, and calls `progress` like [`add`](Self::add). With `is_plan`, moves nothing.
    ///
    /// If it is interrupted, a group may be on both nodes of the move: then remove one of them from the group.
    ///
    /// # Errors
    /// Returns an error at the first move that fails, if more moves than first planned are necessary, and before a move if a node does not answer, a
    /// group has no leader, or its members are being changed.
    pub async fn rebalance(
        &self,
        address: &str,
        is_plan: bool,
        mut begins: impl FnMut(String),
        mut progress: impl FnMut(u32, u64),
    ) -> Result<()> {
        let mut planned = None;
        for done in 0.. {
            let status = self.status(address).await?;
            let groups = table(&status)?;
            let steps: Vec<Move> = plan(groups.clone()).collect();
            if is_plan {
                steps.iter().for_each(|step| begins(step.to_string()));
                break;
            }
            let Some(step) = steps.first() else { break };
            if done == *planned.get_or_insert(steps.len()) {
                let why = format!("not even after the {done} planned moves: what else moves groups or leaders?");
                return Err(status.refused(why));
            }
            begins(step.to_string());
            let made = self.carry_out(*step, &status, &groups, &mut progress).await;
            made.map_err(|error| status.refused(format!("could not {step}, after {done} moves: {error}")))?;
        }
        Ok(())
    }

    async fn carry_out(
        &self,
        step: Move,
        status: &Status,
        groups: &[Held],
        progress: impl FnMut(u32, u64),
    ) -> Result<()> {
        let Move { group: number, from, to } = step;
        let (address, group, name) = (&status.address, Some(&[number][..]), to.to_string());
        let Some(from) = from else { return self.move_leader(&name, address, group).await.map(drop) };
        let finish = async {
            self.add(&status.named(&name)?.member.cluster, address, group, progress).await?;
            let status = self.status(address).await?;
            let Held { members, leader } = &table(&status)?[number as usize];
            let mut expected = groups[number as usize].members.clone();
            expected.insert(to);
            if *members != expected {
                return Err(status.refused(format!("expected the members {expected:?}, found {members:?}")));
            }
            if *leader == from {
                self.move_leader(&name, address, group).await?;
            }
            let since = status.places.get(number).membership.map(|membership| membership.since);
            self.remove_since(&from.to_string(), address, group, false, since).await
        };
        let ways = format!(
            "undo it by `cluster remove {to} --groups {number}`, or complete it by `cluster add` and `cluster remove {from} --groups {number}`"
        );
        finish.await.map(drop).map_err(|error| status.refused(format!("{error}; {ways}")))
    }
}

/// The members and leaders of all groups; an error beside a fault or a change of members.
fn table(status: &Status) -> Result<Vec<Held>> {
    let refuse = |why: String| status.refused(format!("{why}: nothing moves beside a fault"));
    for node in &status.nodes {
        let found = node.description.as_ref();
        let found = found.map_err(|why| refuse(format!("node {} does not answer ({why})", node.node)))?;
        if found.lacks_room {
            return Err(refuse(format!("the disk of node {} is almost full", node.node)));
        }
    }
    let held = |group| {
        let leader = status.leader(group).and_then(|leader| Some((leader, status.group(leader, group)?)));
        let (leader, newest) = leader.ok_or_else(|| refuse(format!("group {group} has no leader")))?;
        let Membership { members, voters, .. } = &newest.membership;
        if let Some(node) = members.keys().find(|node| !voters.contains(node)) {
            let ways = format!("repeat `cluster add` of it, or undo it by `cluster remove {node} --groups {group}`");
            return Err(refuse(format!("node {node} has no vote in group {group} ({ways})")));
        }
        // Newer members may wait in the leader's log.
        if status.places.get(group).membership.as_ref() != Some(&newest.membership) {
            return Err(refuse(format!("the members of group {group} are being changed")));
        }
        Ok(Held { members: voters.clone(), leader })
    };
    (0..status.groups).map(held).collect()
}

/// The moves, in their order, for groups in the order of their numbers.
fn plan(mut groups: Vec<Held>) -> impl Iterator<Item = Move> {
    from_fn(move || {
        let is_member = |held: &Held, node| held.members.contains(&node);
        let group = widest(&groups, is_member, |held, from, to| is_member(held, from) && !is_member(held, to));
        let leader = || widest(&groups, |held, node| held.leader == node, |held, _, to| is_member(held, to));
        let step = group.or_else(|| leader().map(|step| Move { from: None, ..step }))?;
        step.apply(&mut groups);
        Some(step)
    })
}

/// The move of a group that `suits`, from a node that counts to a node for which two groups fewer count, or even less.
fn widest(
    groups: &[Held],
    counts: impl Fn(&Held, u64) -> bool,
    suits: impl Fn(&Held, u64, u64) -> bool,
) -> Option<Move> {
    let nodes: BTreeSet<u64> = groups.iter().flat_map(|held| held.members.iter().copied()).collect();
    let load = |node| (node, groups.iter().filter(|held| counts(held, node)).count());
    let loads: BTreeMap<u64, usize> = nodes.into_iter().map(load).collect();
    let pairs = loads.iter().flat_map(|from| loads.iter().map(move |to| (from, to)));
    let pairs = pairs.filter(|((_, most), (_, least))| **most >= **least + 2);
    let steps = pairs.flat_map(|((from, most), (to, least))| {
        let suiting = (0..).zip(groups).filter(|(_, held)| counts(held, *from) && suits(held, *from, *to));
        // Rather a group that `from` does not lead: its leader stays.
        let best = suiting.max_by_key(|(group, held)| (held.leader != *from, Reverse(*group)))?;
        Some((most - least, best.1.leader != *from, Move { group: best.0, from: Some(*from), to: *to }))
    });
    steps.max_by_key(|(difference, stays, _)| (*difference, *stays)).map(|(.., step)| step)
}

impl Move {
    fn apply(self, groups: &mut [Held]) {
        let Held { members, leader } = &mut groups[self.group as usize];
        if self.from.is_none_or(|from| from == *leader) {
            *leader = self.to;
        }
        members.retain(|member| Some(*member) != self.from);
        members.insert(self.to);
    }
}

#[cfg(test)]
mod tests {
    use proof::Random;

    use super::*;

    #[test]
    fn a_plan_ends_when_groups_are_even_and_no_move_of_a_leader_helps() {
        // Catches a plan without an end, a group with more or fewer members than before, a leader without a vote, and moves to and fro.
        for seed in 0..3000 {
            let mut random = Random(seed);
            let nodes = 1 + random.below(6);
            let held = |_| {
                let (leader, others) = (random.below(nodes), random.below(nodes));
                Held { leader, members: (0..others).map(|_| random.below(nodes)).chain([leader]).collect() }
            };
            let mut groups: Vec<Held> = (0..seed % 9).map(held).collect();
            let sizes: Vec<usize> = groups.iter().map(|held| held.members.len()).collect();
            for step in plan(groups.clone()) {
                let members = &groups[step.group as usize].members;
                assert!(step.from.is_none_or(|from| members.contains(&from) && !members.contains(&step.to)));
                step.apply(&mut groups);
            }
            let all: BTreeSet<u64> = groups.iter().flat_map(|held| held.members.clone()).collect();
            let held = |node: &u64| groups.iter().filter(|held| held.members.contains(node)).count();
            let led = |node: &u64| groups.iter().filter(|held| held.leader == *node).count();
            assert!(all.iter().all(|a| all.iter().all(|b| held(a) <= held(b) + 1)), "seed {seed}: {groups:?}");
            for (Held { members, leader }, size) in groups.iter().zip(sizes) {
                assert!(members.len() == size && members.contains(leader), "seed {seed}");
                assert!(members.iter().all(|voter| led(leader) <= led(voter) + 1), "seed {seed}: {groups:?}");
            }
            assert_eq!(plan(groups).next(), None, "seed {seed}");
        }
    }
}
