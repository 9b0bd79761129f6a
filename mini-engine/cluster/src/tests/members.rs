//! Changes of members and leaders by an operator.

use std::fs;

use super::catching_up::purge;
use super::support::{Cluster, refused};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_added_gets_a_snapshot_and_a_vote_and_a_leader_that_is_removed_loses_both() {
    // Catches a snapshot that does not arrive or is not used, a new node that does not count for the majority, a removed node that still counts, and a
    // cluster that stops when its leader is removed.
    let mut cluster = Cluster::new(3, 1).await;
    let value = "v".repeat(10_000);
    for n in 0..300 {
        cluster.talk(&format!("SET key{n} {value}{n} => +OK")).await;
    }
    for node in 1..=3 {
        purge(&cluster, node, 0).await;
    }
    cluster.start(4).await;
    let added = cluster.add(4, 1, None).await.unwrap();
    assert!(added > 3);
    for n in [299, 0] {
        cluster.wait_for_stale(4, &format!("GET key{n}"), &format!("${value}{n}")).await;
    }
    let installed = cluster.dir.path().join("4/state-0/state-000001");
    assert!(installed.exists(), "the entries before the snapshot are purged");

    cluster.make_leader(1).await;
    let removed = cluster.remove(1, 2, None).await.unwrap();
    assert_eq!((removed.node, removed.is_member), (1, false));
    cluster.stop(1).await;
    let status = cluster.status(4).await;
    assert_eq!(status.nodes.iter().map(|node| node.node).collect::<Vec<_>>(), [2, 3, added]);
    assert!(status.nodes.iter().all(|node| status.votes(node.node) && node.description.is_ok()));
    // Two of three nodes are a majority, so the new node has a vote.
    cluster.stop(2).await;
    cluster.talk("SET colour blue => +OK").await;
    cluster.wait_for_stale(4, "GET colour", "$blue").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_is_down_or_has_lost_its_directory_counts_for_no_majority() {
    // Catches a cluster that stops working and can no longer be changed because a node was removed while another one was down, and a status that counts
    // another node at the same address.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.stop(3).await;
    refused(cluster.remove(2, 1, None).await, "of the 2 voters that group 0 would have without node 2, 1 answer");
    cluster.talk("SET a 1 => +OK").await;
    fs::remove_dir_all(cluster.dir.path().join("3")).unwrap();
    cluster.start(3).await;
    let status = cluster.status(1).await;
    let error = status.nodes[2].description.as_ref().unwrap_err();
    assert!(error.contains("expected node 3 of cluster") && error.contains("found a node of no cluster"), "{error}");
    assert!(status.nodes[1].description.is_ok() && status.has_majority(0));
    assert_eq!(cluster.remove(3, 1, None).await.unwrap().node, 3);
    cluster.talk("GET a => $1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_that_would_break_a_cluster_are_refused_and_those_that_were_given_before_are_not() {
    // Catches a node that is taken from its cluster, a cluster without nodes, and a number that two nodes have.
    let mut cluster = Cluster::new(1, 1).await;
    cluster.start(2).await;
    cluster.start(3).await;
    let [one, two, three] = [1, 2, 3].map(|node| cluster.address(node));
    let init = async |nodes: &[&String], groups| {
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).clone()).collect();
        cluster.control.init(&nodes, groups, nodes.len() as u32).await
    };
    // In the first of these lists, node 1 keeps its place, and would keep its number.
    for nodes in [&[&one][..], &[&one, &two]] {
        refused(init(nodes, 1).await, "is node 1 of cluster");
    }
    for nodes in [&[&two, &one][..], &[&two, &one, &three]] {
        refused(init(nodes, 1).await, "the others are in a cluster already");
    }
    refused(init(&[&two, &two], 1).await, "named twice");
    refused(init(&[&two], 0).await, "expected 1 to 64, found 0");
    for node in [&two, &three] {
        refused(cluster.control.status(node).await, "it is in no cluster");
    }
    cluster.client(2).await.talk("GET a => -CLUSTERDOWN .. | GET a => ..cluster init..").await;
    refused(cluster.remove(1, 1, None).await, "node 1 is the last one of group 0");
    refused(cluster.remove(7, 1, None).await, "expected the number or an address of a member");

    let added = cluster.add(2, 1, None).await.unwrap();
    assert_eq!(cluster.add(2, 1, None).await.unwrap(), added, "a command that is given again");
    init(&[&three], 1).await.unwrap();
    refused(cluster.add(3, 1, None).await, "of cluster");
    assert_eq!(cluster.remove(&two, 1, None).await.unwrap().node, added, "by its address");
    cluster.start(4).await;
    assert_ne!(cluster.add(4, 1, None).await.unwrap(), added, "a number is given once");
    cluster.talk("SET a 1 => +OK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_moves_to_the_node_that_is_named_and_stays_if_that_cannot_lead() {
    // Catches a hand-over to another node, one that is reported before it is done, and a group that stops because of a node that is down.
    let mut cluster = Cluster::new(3, 1).await;
    let (one, two) = (cluster.address(1), cluster.address(2));
    for node in [3, 1, 2] {
        let moved = cluster.control.move_leader(&cluster.address(node), &one, None).await.unwrap();
        assert_eq!(moved, (node, vec![0]));
        assert_eq!(cluster.leader(0).await, node);
    }
    assert_eq!(cluster.control.move_leader("3", &one, Some(&[0])).await.unwrap(), (3, vec![0]));
    cluster.stop(1).await;
    for (node, expected) in [("1", "node 1 does not answer"), ("7", "expected the number or an address of a member")] {
        refused(cluster.control.move_leader(node, &two, None).await, expected);
    }
    assert_eq!(cluster.leader(0).await, 3);
}
