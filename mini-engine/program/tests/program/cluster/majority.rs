//! Clusters without a majority, and with a paused node.

use std::time::Duration;

use super::client::{Client, Connection, Reply};
use super::nodes::Cluster;
use super::wait_for;
use crate::support::PATIENCE;

/// The time that a client waits for a possibly paused node before it tries another one.
pub(super) const SHORT: Duration = Duration::from_secs(2);

#[test]
fn without_a_majority_writes_fail_and_readonly_reads_go_on() {
    // Catches a write without a majority that waits for ever or is acknowledged, a linearizable read that is answered from an old state, and a
    // node that does not rejoin the others.
    let mut cluster = Cluster::new(3, 1);
    let mut client = cluster.client();
    client.must(&["SET", "k", "v"]);
    let last = cluster.leader_of("probe");
    for other in (0..3).filter(|node| *node != last) {
        cluster.kill(other);
    }
    let mut alone = Connection::open(cluster.nodes[last].address, PATIENCE).expect("connect");
    // The first request may have been proposed: its outcome is unknown, and the reply states that.
    for request in [&["SET", "k", "w"][..], &["INCR", "n"], &["GET", "k"]] {
        let reply = alone.call(request).expect("a reply in bounded time");
        let Reply::Error(said) = &reply else { panic!("{request:?}: {reply:?}") };
        let is_read = request[0] == "GET";
        assert!(
            said.starts_with("CLUSTERDOWN ") || (said.starts_with("UNCERTAIN ") && !is_read),
            "{request:?}: {said}"
        );
    }
    assert_eq!(alone.call(&["READONLY"]).expect("a reply"), Reply::Status("OK".into()));
    assert_eq!(alone.call(&["GET", "k"]).expect("a reply"), Reply::value("v"));
    cluster.start((last + 1) % 3);
    client.must(&["SET", "k", "x"]);
    assert_eq!(client.must(&["GET", "k"]), Reply::value("x"));
}

#[test]
fn a_node_that_was_away_for_long_catches_up() {
    // Catches a follower that does not get all entries that it missed, or that applies an entry twice.
    let mut cluster = Cluster::new(3, 1);
    let away = (cluster.leader_of("probe") + 1) % 3;
    cluster.kill(away);
    let leader = cluster.leader_of("probe");
    let mut connection = Connection::open(cluster.nodes[leader].address, PATIENCE).expect("connect");
    let value = "v".repeat(1000);
    for n in 0..2000 {
        let reply = connection.call(&["SET", &format!("k{n}"), &format!("{n} {value}")]).expect("a reply");
        assert_eq!(reply, Reply::Status("OK".into()));
    }
    cluster.start(away);
    let mut reader = Connection::reading(cluster.nodes[away].address).expect("a node that answers");
    let last = Reply::value(&format!("1999 {value}"));
    wait_for("the node has the last value", || reader.call(&["GET", "k1999"]).expect("a reply") == last);
    for n in 0..2000 {
        let reply = reader.call(&["GET", &format!("k{n}")]).expect("a reply");
        assert_eq!(reply, Reply::value(&format!("{n} {value}")));
    }
}

#[test]
fn a_leader_that_was_paused_learns_of_the_new_one() {
    // Catches a deposed leader that answers from its old state when it wakes.
    let cluster = Cluster::new(3, 1);
    let mut client = cluster.client();
    client.must(&["SET", "k", "old"]);
    let old = cluster.leader_of("probe");
    let mut asleep = Connection::open(cluster.nodes[old].address, PATIENCE).expect("connect");
    cluster.pause(old);
    let mut others = cluster.addresses();
    others.remove(old);
    Client::new(others, 0, SHORT).must(&["SET", "k", "new"]);
    cluster.resume(old);
    // The node may first believe that it still leads.
    let reply = asleep.call(&["GET", "k"]).expect("a reply");
    assert!(reply == Reply::value("new") || matches!(&reply, Reply::Error(_)), "{reply:?}");
    wait_for("it sends clients to the new leader, or leads again", || {
        let reply = asleep.call(&["GET", "k"]).expect("a reply");
        assert_ne!(reply, Reply::value("old"));
        matches!(&reply, Reply::Error(said) if said.starts_with("MOVED ")) || reply == Reply::value("new")
    });
}
