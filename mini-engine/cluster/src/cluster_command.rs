//! CLUSTER: the map of slots and nodes, from which clients learn which node serves a slot.
//!
//! A node of this cluster may lead one group and follow in another. Redis Cluster has masters with replicas. Here the leader of a group is shown as
//! the master of the group's slots, and all other members as its replicas. CLUSTER NODES lists each node once: as a master if it leads any group, and
//! otherwise as a replica in the first of its groups. Groups that are not on this node are described by the reports of other nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::atomic::Ordering;

use mini_engine_server::replicated::{Reply, Request, SLOTS, Standing, slot_of};

use crate::local::Groups;
use crate::places::Place;
use crate::slots::slots_of;
use crate::types::Member;

/// The name of a node: 40 digits, as in Redis.
fn name(groups: &Groups, node: u64) -> String {
    format!("{:024x}{node:016x}", groups.identity.cluster)
}

/// Host and port of an address.
fn host_and_port(address: &str) -> (&str, u16) {
    let (host, port) = address.rsplit_once(':').unwrap_or((address, "0"));
    (host.trim_matches(['[', ']']), port.parse().unwrap_or(0))
}

struct Part {
    slots: Range<u16>,
    place: Place,
    /// The last applied entry, if the group is on this node.
    applied: u64,
    /// Whether a leader serves the group, as far as this node can tell.
    is_served: bool,
}

impl Part {
    fn leader(&self) -> Option<u64> {
        self.place.leader().map(|(leader, _)| leader)
    }

    fn term(&self) -> u64 {
        self.place.leader.map_or(0, |(term, _)| term)
    }

    /// The first and the last slot.
    fn bounds(&self) -> [u16; 2] {
        [self.slots.start, self.slots.end - 1]
    }

    /// First the leader, then the other voters. A node that is being added is left out: it has no data to read yet.
    fn members(&self) -> impl Iterator<Item = (u64, &Member)> {
        let leader = self.place.leader();
        let is_other = move |node: &u64| self.place.votes(*node) && Some(*node) != leader.map(|(leader, _)| leader);
        leader.into_iter().chain(self.place.members().filter(move |(node, _)| is_other(node)))
    }
}

fn parts(groups: &Groups) -> Vec<Part> {
    let places = groups.places();
    let of_group = |number: u32| {
        let (group, place) = (groups.get(number), places.get(number));
        let applied = group.as_ref().map_or(0, |group| group.applied());
        let group = group.filter(|group| group.votes());
        let is_served = place.leader().is_some() && group.is_none_or(|group| group.is_served());
        Part { slots: slots_of(number, groups.identity.groups), place, applied, is_served }
    };
    (0..groups.identity.groups).map(of_group).collect()
}

/// The place of this node among the others, for INFO. In a cluster of several groups a node is a master if it leads any of them, and otherwise follows
/// the leader of its first group, as in CLUSTER NODES.
pub(crate) fn standing(groups: &Groups) -> Standing {
    let (led, first) = (groups.led(), groups.here().values().next().cloned());
    let followers: BTreeSet<u64> = led.iter().flat_map(|group| group.followers()).collect();
    let leader = first.as_ref().and_then(|group| group.place().leader().map(|(_, leader)| leader.clients.clone()));
    let leader = leader.map(|address| {
        let (host, port) = host_and_port(&address);
        (host.to_owned(), port)
    });
    Standing {
        followers: (!led.is_empty()).then_some(followers.len()),
        leader,
        is_leader_heard: first.is_some_and(|group| group.is_served()),
        clock_ahead: groups.clock_ahead.load(Ordering::Relaxed),
        lacks_room: groups.lacks_room() || groups.here().values().any(|group| group.refuses_growth()),
    }
}

/// The reply to the command CLUSTER.
pub(crate) fn reply(groups: &Groups, request: &Request) -> Reply {
    let words: Vec<&[u8]> = request.parts().skip(1).collect();
    let Some((subcommand, rest)) = words.split_first() else {
        return Reply::Error("ERR wrong number of arguments for 'cluster' command".into());
    };
    match (subcommand.to_ascii_uppercase().as_slice(), rest) {
        (b"SLOTS", []) => slots(groups),
        (b"SHARDS", []) => shards(groups),
        (b"NODES", []) => Reply::Text(nodes(groups)),
        (b"INFO", []) => Reply::Text(info(groups)),
        (b"MYID", []) => Reply::text(name(groups, groups.identity.node)),
        (b"KEYSLOT", [key]) => Reply::Integer(i64::from(slot_of(key))),
        _ => {
            let shown = String::from_utf8_lossy(subcommand).escape_debug().take(64).collect::<String>();
            Reply::Error(format!(
                "ERR CLUSTER {shown} is not there: SLOTS, SHARDS, NODES, INFO, MYID and KEYSLOT key are; `mini-engine cluster` changes a cluster"
            ))
        }
    }
}

fn integer(number: u16) -> Reply {
    Reply::Integer(number.into())
}

/// For each group that has a leader: its slots and its members, the leader first.
fn slots(groups: &Groups) -> Reply {
    let node = |(node, member): (u64, &Member)| {
        let (host, port) = host_and_port(&member.clients);
        Reply::Array(vec![Reply::text(host), integer(port), Reply::text(name(groups, node)), Reply::Array(Vec::new())])
    };
    let parts = parts(groups);
    let led = parts.iter().filter(|part| part.leader().is_some());
    let row = |part: &Part| part.bounds().map(integer).into_iter().chain(part.members().map(node)).collect();
    Reply::Array(led.map(|part| Reply::Array(row(part))).collect())
}

fn shards(groups: &Groups) -> Reply {
    let pair = |name: &str, value| (Reply::text(name), value);
    let shard = |part: &Part| {
        let leader = part.leader();
        let node = |(node, member): (u64, &Member)| {
            let (host, port) = host_and_port(&member.clients);
            let role = if Some(node) == leader { "master" } else { "replica" };
            Reply::Map(vec![
                pair("id", Reply::text(name(groups, node))),
                pair("port", integer(port)),
                pair("ip", Reply::text(host)),
                pair("endpoint", Reply::text(host)),
                pair("role", Reply::text(role)),
                pair("replication-offset", Reply::Integer(part.applied as i64)),
                pair("health", Reply::text("online")),
            ])
        };
        Reply::Map(vec![
            pair("slots", Reply::Array(part.bounds().map(integer).into())),
            pair("nodes", Reply::Array(part.members().map(node).collect())),
        ])
    };
    Reply::Array(parts(groups).iter().map(shard).collect())
}

/// One line for each node: name, addresses, flags, master, two times, epoch, state of the link, slots.
fn nodes(groups: &Groups) -> String {
    let parts = parts(groups);
    let members: BTreeMap<u64, &Member> = parts.iter().flat_map(Part::members).collect();
    let mut text = String::new();
    for (node, member) in members {
        let led = || parts.iter().filter(|part| part.leader() == Some(node));
        let myself = if node == groups.identity.node { "myself," } else { "" };
        let followed = parts.iter().filter(|part| part.place.votes(node));
        let master = followed.filter_map(Part::leader).next();
        let (role, master) = match (led().next(), master) {
            (None, Some(master)) => ("slave", name(groups, master)),
            _ => ("master", "-".into()),
        };
        let epoch = led().map(Part::term).max().unwrap_or(0);
        let (_, cluster_port) = host_and_port(&member.cluster);
        let name = name(groups, node);
        write!(text, "{name} {}@{cluster_port} {myself}{role} {master} 0 0 {epoch} connected", member.clients).ok();
        for [first, last] in led().map(Part::bounds) {
            write!(text, " {first}-{last}").ok();
        }
        text.push('\n');
    }
    text
}

fn info(groups: &Groups) -> String {
    let parts = parts(groups);
    let ok: usize = parts.iter().filter(|part| part.is_served).map(|part| part.slots.len()).sum();
    let leaders: BTreeSet<u64> = parts.iter().filter_map(Part::leader).collect();
    let known = parts.iter().flat_map(|part| part.place.members()).map(|(node, _)| node).collect::<BTreeSet<_>>().len();
    let epoch = parts.iter().map(Part::term).max().unwrap_or(0);
    let all = usize::from(SLOTS);
    let state = if ok == all { "ok" } else { "fail" };
    format!(
        "cluster_enabled:1\r\ncluster_state:{state}\r\ncluster_slots_assigned:{all}\r\ncluster_slots_ok:{ok}\r\n\
         cluster_slots_pfail:0\r\ncluster_slots_fail:{}\r\ncluster_known_nodes:{known}\r\ncluster_size:{}\r\n\
         cluster_current_epoch:{epoch}\r\ncluster_my_epoch:{epoch}\r\n",
        all - ok,
        leaders.len()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_cut_at_its_last_colon() {
        // Catches an IPv6 host that is cut in the middle or keeps its brackets, so that clients could not connect.
        let cases =
            [("127.0.0.1:7001", ("127.0.0.1", 7001)), ("[::1]:7001", ("::1", 7001)), ("a.example:1", ("a.example", 1))];
        for (address, expected) in cases {
            assert_eq!(host_and_port(address), expected);
        }
    }
}
