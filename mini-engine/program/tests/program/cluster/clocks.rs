//! A node whose clock is an hour ahead, where libfaketime is installed.

use std::path::PathBuf;

use super::client::{Client, Connection, Reply};
use super::majority::SHORT;
use super::nodes::Cluster;
use super::wait_for;
use crate::support::{check_says, skipped};

/// The environment in which a process sees a time an hour from now.
fn an_hour_ahead() -> Option<Vec<(&'static str, String)>> {
    let library = PathBuf::from("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1");
    library.exists().then(|| {
        vec![
            ("LD_PRELOAD", library.display().to_string()),
            ("FAKETIME", "+1h".into()),
            ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
        ]
    })
}

#[test]
fn a_follower_whose_clock_is_an_hour_ahead_shows_what_the_leader_shows() {
    // Catches a node that lets keys expire by its own clock, so that the nodes' states differ for ever.
    let Some(environment) = an_hour_ahead() else {
        return skipped(
            "a_follower_whose_clock_is_an_hour_ahead_shows_what_the_leader_shows",
            "libfaketime is not installed",
        );
    };
    let mut cluster = Cluster::new(3, 1);
    let leader = cluster.leader_of("probe");
    let ahead = (leader + 1) % 3;
    assert!(cluster.end(ahead), "{}", cluster.nodes[ahead].said());
    cluster.nodes[ahead].environment = environment;
    cluster.start(ahead);
    let mut client = cluster.client();
    client.must(&["SET", "short", "v", "EX", "1000"]);
    let mut reader = Connection::reading(cluster.nodes[ahead].address).expect("a node that answers");
    wait_for("the follower has it", || reader.call(&["GET", "short"]).expect("a reply") == Reply::value("v"));
    check_says(&cluster.status(leader), "clock");
    // As leader, the node expires keys by its clock, and the other nodes follow.
    cluster.kill((leader + 2) % 3);
    cluster.start((leader + 2) % 3);
    cluster.pause(leader);
    let other = cluster.nodes[(leader + 2) % 3].address;
    let mut others = Client::new(vec![cluster.nodes[ahead].address, other], 0, SHORT);
    others.must(&["SET", "k", "v"]);
    let expected = others.must(&["GET", "short"]);
    let says_so = |node: usize| cluster.nodes[node].said().contains("the clock of this node, by which keys expire");
    // Of two nodes, either one leads, and none of the clocks is in the majority.
    wait_for("the leader says so", || says_so(ahead) || says_so((leader + 2) % 3));
    cluster.resume(leader);
    let same = |node: usize| {
        let mut reader = Connection::reading(cluster.nodes[node].address).expect("a node that answers");
        wait_for("a node that agrees", || reader.call(&["GET", "short"]).expect("a reply") == expected);
    };
    (0..3).for_each(same);
}
