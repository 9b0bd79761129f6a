//! The steps of a new user: start three nodes, make a cluster, kill the leader, add a fourth node, remove a node.

use std::process::{Command, Stdio};

use super::client::{Connection, Reply};
use super::nodes::Cluster;
use super::wait_for;
use crate::support::{PATIENCE, check_says, run_with, skipped};

/// A node that is not among these.
fn other_than(nodes: &[usize]) -> usize {
    (0..).find(|node| !nodes.contains(node)).expect("a node")
}

/// Waits until a read at this node, even if it is a follower, returns this value.
fn wait_for_value(cluster: &Cluster, node: usize, key: &str, expected: &Reply) {
    let mut reader = Connection::reading(cluster.nodes[node].address).expect("a node that answers");
    wait_for("a follower has the value", || reader.call(&["GET", key]).expect("a reply") == *expected);
}

/// The number of a node in the cluster, which is the end of its name; it differs from the node's index here.
pub(super) fn id_of(cluster: &Cluster, node: usize) -> u64 {
    let mut connection = Connection::open(cluster.nodes[node].address, PATIENCE).expect("connect");
    let Reply::Value(Some(name)) = connection.call(&["CLUSTER", "MYID"]).expect("a reply") else { panic!("no name") };
    assert_eq!(name.len(), 40, "{name}");
    u64::from_str_radix(&name[24..], 16).expect("a number")
}

#[test]
fn a_new_user_kills_the_leader_goes_on_adds_a_fourth_node_and_removes_one() {
    // Catches a step of the README that does not work, and a status that does not show it.
    let mut cluster = Cluster::started(3);
    let mut early = Connection::open(cluster.nodes[0].address, PATIENCE).expect("connect");
    let refused = early.call(&["SET", "milk", "1 litre"]).expect("a reply");
    assert!(matches!(&refused, Reply::Error(said) if said.starts_with("CLUSTERDOWN ")), "{refused:?}");
    cluster.init(1);
    let mut client = cluster.client();
    client.must(&["SET", "milk", "2 litres"]);
    assert_eq!(client.must(&["GET", "milk"]), Reply::value("2 litres"));

    let killed = cluster.leader_of("probe");
    cluster.kill(killed);
    client.must(&["SET", "bread", "1"]);
    assert_eq!(client.must(&["GET", "milk"]), Reply::value("2 litres"));
    cluster.start(killed);
    wait_for_value(&cluster, killed, "bread", &Reply::value("1"));

    let fourth = cluster.make_node();
    cluster.start(fourth);
    let (new, member) = (cluster.nodes[fourth].advertised, cluster.nodes[killed].advertised);
    let said = cluster.admin(&format!("add {new} --to {member}")).text();
    check_says(&said, &format!("node {}|{new}", id_of(&cluster, fourth)));
    wait_for_value(&cluster, fourth, "milk", &Reply::value("2 litres"));
    let status = cluster.status(fourth);
    cluster.nodes.iter().for_each(|node| check_says(&status, &format!("leader|{}", node.advertised)));

    let gone = id_of(&cluster, killed);
    let said = cluster.admin(&format!("remove {gone} --from {new}")).text();
    check_says(&said, &format!("node {gone}|removed"));
    assert!(!cluster.status(fourth).contains(&member.to_string()));
    cluster.kill(killed);
    // Three nodes are left, so one of them may be removed.
    let leader = cluster.leader_of("probe");
    cluster.kill(other_than(&[leader, killed]));
    client.must(&["SET", "milk", "3 litres"]);
    assert_eq!(client.must(&["GET", "milk"]), Reply::value("3 litres"));
}

#[test]
fn a_leader_that_is_removed_hands_over() {
    // Catches a cluster that stops when its leader is removed.
    let cluster = Cluster::new(3, 2);
    let leader = cluster.leader_of("probe");
    let mut client = cluster.client();
    client.must(&["SET", "k", "v"]);
    let from = cluster.nodes[other_than(&[leader])].advertised;
    let moved = cluster.admin(&format!("move-leader {from} --to {from}")).text();
    let other = id_of(&cluster, other_than(&[leader]));
    check_says(&moved, &format!("node {other} leads group 0|node {other} leads group 1"));
    let own = id_of(&cluster, leader);
    let moved = cluster.admin(&format!("move-leader {from} --to {own} --groups 1,0")).text();
    check_says(&moved, &format!("node {own} leads group 0|node {own} leads group 1"));
    cluster.admin(&format!("remove {} --from {from}", id_of(&cluster, leader))).text();
    // The removed node may lead for a moment, although it has no vote.
    wait_for("another leader", || cluster.leader_of("probe") != leader);
    client.must(&["SET", "l", "w"]);
    assert_eq!(client.must(&["GET", "k"]), Reply::value("v"));
}

#[test]
fn a_follower_reads_after_readonly_and_sends_away_what_writes() {
    // Catches a follower that answers a plain GET, perhaps with an old value, or that redirects a read which it may answer.
    let cluster = Cluster::new(3, 1);
    cluster.client().must(&["SET", "k", "v"]);
    let leader = cluster.leader_of("probe");
    let follower = cluster.nodes[other_than(&[leader])].address;
    let mut plain = Connection::open(follower, PATIENCE).expect("connect");
    let moved = |slot: u16| Reply::Error(format!("MOVED {slot} {}", cluster.nodes[leader].address));
    assert_eq!(plain.call(&["CLUSTER", "KEYSLOT", "k"]).expect("a reply"), Reply::Integer(7629));
    wait_for("a follower that knows the leader", || {
        let reply = plain.call(&["SET", "foo", "w"]).expect("a reply");
        assert!(matches!(&reply, Reply::Error(_)), "{reply:?}");
        reply == moved(12_182)
    });
    assert_eq!(plain.call(&["GET", "k"]).expect("a reply"), moved(7629));
    assert_eq!(plain.call(&["READONLY"]).expect("a reply"), Reply::Status("OK".into()));
    wait_for("a follower has the value", || plain.call(&["GET", "k"]).expect("a reply") == Reply::value("v"));
    assert_eq!(plain.call(&["SET", "k", "w"]).expect("a reply"), moved(7629));
    assert_eq!(plain.call(&["READWRITE"]).expect("a reply"), Reply::Status("OK".into()));
    assert_eq!(plain.call(&["GET", "k"]).expect("a reply"), moved(7629));
}

#[test]
fn keys_of_one_request_are_in_one_slot() {
    // Catches a request that only the group of its first key carries out, and hash tags that are ignored.
    let cluster = Cluster::new(3, 2);
    let mut client = cluster.client();
    // The keys may be in one group or in two: as in Redis Cluster, the slot decides.
    for pair in [["a", "b"], ["bar", "probe"]] {
        let leader = cluster.leader_of(pair[0]);
        let mut connection = Connection::open(cluster.nodes[leader].address, PATIENCE).expect("connect");
        let reply = connection.call(&["MSET", pair[0], "1", pair[1], "2"]).expect("a reply");
        assert!(matches!(&reply, Reply::Error(said) if said.starts_with("CROSSSLOT ")), "{reply:?}");
    }
    client.must(&["MSET", "{user}:a", "1", "{user}:b", "2"]);
    let both = Reply::List(vec![Reply::value("1"), Reply::value("2")]);
    assert_eq!(client.must(&["MGET", "{user}:a", "{user}:b"]), both);
}

#[test]
fn redis_cli_follows_a_change_of_leader() {
    // Catches a redirection that a client library accepts and redis-cli does not.
    let mut cluster = Cluster::new(3, 1);
    let run = |node: usize, cluster: &Cluster, input: &str| {
        let mut command = Command::new("redis-cli");
        command.args(["-c", "-h", "127.0.0.1", "-p", &cluster.nodes[node].address.port().to_string()]);
        let said = run_with(command, input.as_bytes()).text();
        // The tool prints its redirections too.
        said.lines().filter(|line| !line.starts_with("-> Redirected")).collect::<Vec<_>>().join(" ")
    };
    if Command::new("redis-cli").arg("--version").stdout(Stdio::null()).status().is_err() {
        return skipped("redis_cli_follows_a_change_of_leader", "redis-cli is not installed");
    }
    let leader = cluster.leader_of("probe");
    let follower = other_than(&[leader]);
    assert_eq!(run(follower, &cluster, "set milk 2\nget milk\n"), "OK 2");
    cluster.kill(leader);
    cluster.client().must(&["SET", "bread", "1"]);
    assert_eq!(run(follower, &cluster, "get milk\nincr milk\nget bread\n"), "2 3 1");
}
