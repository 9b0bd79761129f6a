//! Nodes that are added and removed permanently.

use std::slice::from_ref;

use super::catching_up::purge;
use super::support::Cluster;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_added_gets_a_snapshot_and_a_vote_and_one_that_is_removed_loses_it() {
    // Catches a snapshot that does not arrive or is not used, a new node that does not count for the majority, and a removed node that still counts.
    let mut cluster = Cluster::new(3, 1).await;
    let value = "v".repeat(10_000);
    for n in 0..300 {
        assert_eq!(cluster.ask(&format!("SET key{n} {value}{n}")).await, "+OK");
    }
    for node in 1..=3 {
        purge(&cluster, node, 0).await;
    }
    cluster.start(4).await;
    let added = cluster.control.add(&cluster.address(4), &cluster.address(1), None, |_, _| ()).await.unwrap();
    assert!(added > 3);
    cluster.wait_for_stale(4, "GET key299", &format!("${value}299")).await;
    cluster.wait_for_stale(4, "GET key0", &format!("${value}0")).await;
    let installed = cluster.dir.path().join("4/state-0/state-000001");
    assert!(installed.exists(), "the entries before the snapshot are purged");

    let removed = cluster.control.remove("1", &cluster.address(2), None, false).await.unwrap();
    assert_eq!((removed.node, removed.is_member), (1, false));
    cluster.stop(1).await;
    let status = cluster.control.status(&cluster.address(4)).await.unwrap();
    assert_eq!(status.nodes.iter().map(|node| node.node).collect::<Vec<_>>(), [2, 3, added]);
    assert!(status.nodes.iter().all(|node| status.votes(node.node) && node.description.is_ok()));
    // Two of three nodes are a majority, so the new node has a vote.
    cluster.stop(2).await;
    assert_eq!(cluster.ask("SET colour blue").await, "+OK");
    cluster.wait_for_stale(4, "GET colour", "$blue").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_is_not_removed_if_those_that_remain_are_no_majority() {
    // Catches a cluster that stops working and can no longer be changed because a node was removed while another one was down.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.stop(3).await;
    let refused = cluster.control.remove("2", &cluster.address(1), None, false).await.unwrap_err().to_string();
    assert!(refused.contains("of the 2 voters that group 0 would have without node 2, 1 answer"), "{refused}");
    assert_eq!(cluster.ask("SET a 1").await, "+OK");
    assert_eq!(cluster.control.remove("3", &cluster.address(1), None, false).await.unwrap().node, 3);
    assert_eq!(cluster.ask("GET a").await, "$1");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_would_break_a_cluster_are_refused_and_those_that_were_given_before_are_not() {
    // Catches a node that is taken from its cluster, a cluster without nodes, and a number that two nodes have.
    let mut cluster = Cluster::new(1, 1).await;
    let one = cluster.address(1);
    let refused = |error: crate::Error, expected: &str| {
        assert!(error.to_string().contains(expected), "{error}");
    };
    refused(cluster.control.init(from_ref(&one), 1, 1).await.unwrap_err(), "is node 1 of cluster");
    refused(cluster.control.remove("1", &one, None, false).await.unwrap_err(), "node 1 is the last one of group 0");
    refused(
        cluster.control.remove("7", &one, None, false).await.unwrap_err(),
        "expected the number or an address of a member",
    );
    cluster.start(2).await;
    let two = cluster.address(2);
    refused(cluster.control.status(&two).await.unwrap_err(), "it is in no cluster");
    refused(cluster.control.init(&[two.clone(), two.clone()], 1, 2).await.unwrap_err(), "named twice");
    refused(cluster.control.init(from_ref(&two), 0, 1).await.unwrap_err(), "expected 1 to 64, found 0");
    let reply = cluster.client(2).await.ask("GET a").await;
    assert!(reply.starts_with("-CLUSTERDOWN ") && reply.contains("cluster init"), "{reply}");

    let added = cluster.control.add(&two, &one, None, |_, _| ()).await.unwrap();
    assert_eq!(cluster.control.add(&two, &one, None, |_, _| ()).await.unwrap(), added, "a command that is given again");
    cluster.start(3).await;
    let other = cluster.address(3);
    cluster.control.init(from_ref(&other), 1, 1).await.unwrap();
    refused(cluster.control.add(&other, &one, None, |_, _| ()).await.unwrap_err(), "of cluster");
    // The number of a removed node is not assigned again.
    cluster.start(4).await;
    let four = cluster.address(4);
    refused(cluster.control.init(&[one.clone(), four.clone()], 1, 2).await.unwrap_err(), "is node 1 of cluster");
    refused(cluster.control.status(&four).await.unwrap_err(), "it is in no cluster");
    assert_eq!(cluster.control.remove(&two, &one, None, false).await.unwrap().node, added, "by its address");
    assert_eq!(cluster.ask("SET a 1").await, "+OK");
}
