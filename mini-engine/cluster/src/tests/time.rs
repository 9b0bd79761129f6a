//! Wrong clocks.

use std::sync::atomic::Ordering;

use super::support::{Cluster, wait_for};

const HOUR: i64 = 3_600_000;

/// The keys on a node, by a stale read after the node has applied everything.
async fn seen(cluster: &Cluster, node: u64, sign: &str) -> Vec<String> {
    cluster.wait_for_stale(node, &format!("GET {sign}"), "$1").await;
    let mut client = cluster.client(node).await;
    assert_eq!(client.ask("READONLY").await, "+OK");
    let mut seen = Vec::new();
    for request in ["GET brief", "PEXPIRETIME brief", "GET long", "PEXPIRETIME long", "GET count", "PEXPIRETIME count"]
    {
        seen.push(client.ask(request).await);
    }
    seen
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_holds_the_same_although_the_clock_of_one_is_an_hour_ahead() {
    // Catches an expiry that depends on each node's own clock: the same INCR would start from 0 on one node and continue on another.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.clocks[&1].store(HOUR, Ordering::Relaxed);
    cluster.make_leader(2).await;
    for request in ["SET brief x EX 1800", "SET long x EX 36000", "SET count 41 EX 1800"] {
        assert_eq!(cluster.ask(request).await, "+OK");
    }
    assert_eq!(cluster.ask("INCR count").await, ":42");
    assert_eq!(cluster.ask("SET sign1 1").await, "+OK");
    let before = seen(&cluster, 1, "sign1").await;
    assert_eq!((&before[0][..], &before[4][..]), ("$x", "$42"));
    for node in 2..=3 {
        assert_eq!(seen(&cluster, node, "sign1").await, before, "node {node}");
    }

    // The node whose clock is ahead leads: keys that expire within the hour are gone on all nodes, and stay gone.
    cluster.make_leader(1).await;
    assert_eq!(cluster.ask("INCR count").await, ":1");
    assert_eq!(cluster.ask("GET brief").await, "$-1");
    cluster.make_leader(3).await;
    assert_eq!(cluster.ask("INCR count").await, ":2");
    assert_eq!(cluster.ask("SET sign2 1").await, "+OK");
    let after = seen(&cluster, 3, "sign2").await;
    assert_eq!((&after[0][..], &after[2][..], &after[4][..]), ("$-1", "$x", "$2"));
    for node in 1..=2 {
        assert_eq!(seen(&cluster, node, "sign2").await, after, "node {node}");
    }

    // A restarted node takes the instant from its database.
    cluster.stop(2).await;
    cluster.start(2).await;
    assert_eq!(seen(&cluster, 2, "sign2").await, after);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_expires_although_nothing_is_written() {
    // Catches a clock that stops between proposals, so that a lock is held for ever.
    let cluster = Cluster::new(3, 1).await;
    assert_eq!(cluster.ask("SET lock mine PX 300").await, "+OK");
    let leader = cluster.leader(0).await;
    let mut client = cluster.client(leader).await;
    wait_for("an expiry", async || (client.ask("GET lock").await == "$-1").then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_goes_on_under_the_leader_after_one_whose_clock_was_ahead() {
    // Catches a lock that is held for an hour although its holder is dead, and a wrong clock that nobody sees.
    let cluster = Cluster::new(3, 1).await;
    cluster.clocks[&1].store(HOUR, Ordering::Relaxed);
    cluster.make_leader(1).await;
    assert_eq!(cluster.ask("SET long x EX 36000").await, "+OK");
    let mut client = cluster.client(1).await;
    wait_for("a clock that is compared", async || {
        client.ask("INFO cluster").await.contains("cluster_clock_ahead_ms:3").then_some(())
    })
    .await;
    let status = cluster.control.status(&cluster.address(2)).await.unwrap();
    let ahead = |node: usize| status.clock_ahead(&status.nodes[node]);
    assert!(ahead(0) > HOUR - 60_000 && ahead(1) == 0 && ahead(2) == 0, "{} {} {}", ahead(0), ahead(1), ahead(2));

    // The time of the lock passes although nobody asks, and the first request to the next leader shows it.
    assert_eq!(cluster.ask("SET lock mine NX PX 300").await, "+OK");
    let set = cluster.groups(1).get(0).unwrap().clock.millis();
    let group = cluster.groups(3).get(0).unwrap();
    wait_for("time that goes on", async || (group.clock.continued() > set + 300).then_some(())).await;
    cluster.make_leader(3).await;
    assert_eq!(cluster.ask("SET lock other NX").await, "+OK");
    assert_eq!(cluster.ask("GET long").await, "$x");
}
