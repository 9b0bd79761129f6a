//! Nodes whose time is not that of the others: a paused process, and a clock that is an hour ahead, where libfaketime is installed.

use std::path::PathBuf;
use std::time::Duration;

use redis::{ErrorKind, RedisResult, ServerErrorKind, cmd};
use rustix::process::Signal;

use super::client::{Client, get, open, reader};
use super::nodes::Cluster;
use crate::support::{PATIENCE, check_says, skipped, wait_for};

#[test]
fn a_leader_that_was_paused_learns_of_the_new_one() {
    // Catches a deposed leader that answers from its old state when it wakes.
    let cluster = Cluster::new(3, 1);
    cluster.client().set("k", "old");
    let old = cluster.leader_of("probe");
    let mut asleep = open(cluster.nodes[old].address, PATIENCE).expect("connect");
    cluster.nodes[old].signal(Signal::STOP);
    let mut others = cluster.addresses();
    others.remove(old);
    Client::new(others, 0, Duration::from_secs(2)).set("k", "new");
    cluster.nodes[old].signal(Signal::CONT);
    // The node may first believe that it still leads.
    wait_for("it sends clients to the new leader, or leads again", || {
        let reply: RedisResult<Option<String>> = cmd("GET").arg("k").query(&mut asleep);
        match reply {
            Ok(value) => {
                assert_eq!(value.as_deref(), Some("new"));
                true
            }
            Err(error) => error.kind() == ErrorKind::Server(ServerErrorKind::Moved),
        }
    });
}

#[test]
fn a_leader_whose_clock_is_an_hour_ahead_says_so_and_the_others_show_what_it_shows() {
    // Catches a clock that only a test can set, a node that lets keys expire by its own clock, so that the nodes' states differ for ever, and a wrong
    // clock that nobody sees.
    let library = PathBuf::from("/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1");
    if !library.exists() {
        return skipped("a_leader_whose_clock_is_an_hour_ahead", "libfaketime is not installed");
    }
    let mut cluster = Cluster::new(3, 1);
    let ahead = (cluster.leader_of("probe") + 1) % 3;
    assert!(cluster.end(ahead), "{}", cluster.nodes[ahead].said());
    cluster.nodes[ahead].environment = vec![
        ("LD_PRELOAD", library.display().to_string()),
        ("FAKETIME", "+1h".into()),
        ("FAKETIME_DONT_FAKE_MONOTONIC", "1".into()),
    ];
    cluster.start(ahead);
    cluster.client().must::<()>(&["SET", "short", "v", "EX", "1000"]);
    let mut readers: Vec<_> = cluster.addresses().into_iter().map(reader).collect();
    wait_for("the follower has it", || {
        get(&mut readers[ahead], "short").is_ok_and(|found| found.as_deref() == Some("v"))
    });
    let address = cluster.nodes[ahead].advertised;
    cluster.admin(&format!("move-leader {address} --to {address}")).text();
    wait_for("it says so", || cluster.nodes[ahead].said().contains("the clock of this node, by which keys expire"));
    check_says(&cluster.status(ahead), "warning: the clock of node |s ahead; it leads");
    assert_eq!(cluster.client().get("short"), None);
    for reader in &mut readers {
        wait_for("a node that agrees", || get(reader, "short").is_ok_and(|found| found.is_none()));
    }
}
