//! Groups that are on only some of the nodes, and that move.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mini_engine_server::replicated::slot_of;

use super::support::{Cluster, LONG, wait_for};
use crate::identity::Joined;
use crate::network::Link;
use crate::slots::group_of;
use crate::types::{TransferRequest, Vote, VoteRequest};
use crate::wire::message::Call;

const KEYS: usize = 60;

async fn write_all(cluster: &Cluster) {
    for n in 0..KEYS {
        assert_eq!(cluster.ask(&format!("SET key{n} {n}")).await, "+OK");
    }
}

async fn read_all(cluster: &Cluster) {
    for n in 0..KEYS {
        assert_eq!(cluster.ask(&format!("GET key{n}")).await, format!("${n}"));
    }
}

/// A key that belongs to this group.
fn key_of(group: u32, groups: u32) -> String {
    let mut keys = (0..KEYS).map(|n| format!("key{n}"));
    keys.find(|key| group_of(slot_of(key.as_bytes()), groups) == group).expect("a key")
}

fn groups_of(cluster: &Cluster, node: u64) -> Vec<u32> {
    cluster.groups(node).here().keys().copied().collect()
}

fn state(cluster: &Cluster, node: u64, group: u32) -> PathBuf {
    cluster.dir.path().join(format!("{node}/state-{group}"))
}

/// Waits until a node has no files of a group: neither a state nor a log, except the vote.
async fn wait_for_space(cluster: &Cluster, node: u64, group: u32) {
    wait_for("the space of a group", async || {
        let log = cluster.nodes[&node].local().parts.logs.db().range(group.to_be_bytes()..(group + 1).to_be_bytes());
        let is_gone = !state(cluster, node, group).exists() && log.count() <= 1;
        (is_gone && !groups_of(cluster, node).contains(&group)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_holds_only_its_groups_and_sends_clients_to_the_others() {
    // Catches a node that holds every group, and a node that only learns the leaders of its own groups.
    let mut cluster = Cluster::spread(5, 5, 3).await;
    write_all(&cluster).await;
    for node in 1..=5 {
        let expected: BTreeSet<u32> = (0..3).map(|back| ((node + 4 - back) % 5) as u32).collect();
        assert!(groups_of(&cluster, node).into_iter().eq(expected.iter().copied()), "node {node}: {expected:?}");
        assert!((0..5).all(|group| state(&cluster, node, group).exists() == expected.contains(&group)));
        let mut client = cluster.client(node).await;
        assert_eq!(client.ask("READONLY").await, "+OK");
        let key = key_of((node % 5) as u32, 5);
        let (elsewhere, leader) = (slot_of(key.as_bytes()), cluster.leader((node % 5) as u32).await);
        let moved = format!("-MOVED {elsewhere} {}", cluster.clients(leader));
        for request in [format!("GET {key}"), format!("SET {key} x"), format!("WATCH {key}")] {
            wait_for("the way to the leader", async || (client.ask(&request).await == moved).then_some(())).await;
        }
        let slots = client.ask("CLUSTER SLOTS").await;
        assert_eq!((slots.matches("*[:").count(), slots.matches("$127.0.0.1").count()), (5, 15), "{slots}");
        let nodes = client.ask("CLUSTER NODES").await;
        assert_eq!((nodes.lines().filter(|line| line.contains('@')).count(), nodes.matches("myself").count()), (5, 1));
        let info = client.ask("CLUSTER INFO").await;
        assert!(info.contains("cluster_slots_ok:16384") && info.contains("cluster_known_nodes:5"), "{info}");
        let status = cluster.control.status(&cluster.address(node)).await.unwrap();
        assert_eq!(status.nodes.len(), 5);
        assert!((0..5).all(|group| status.leader(group).is_some()) && status.groups_of(node).len() == 3);
    }
    cluster.stop(3).await;
    read_all(&cluster).await;
    cluster.start(3).await;
    for node in 1..=5 {
        cluster.stop(node).await;
    }
    for node in 1..=5 {
        cluster.start(node).await;
        assert_eq!(groups_of(&cluster, node).len(), 3);
    }
    read_all(&cluster).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_moves_to_other_nodes_and_the_old_ones_free_its_space() {
    // Catches a group that is searched at its old place, data that stays behind, a group without nodes, and one that leaves the node to which it has
    // come back, or comes back empty.
    let mut cluster = Cluster::spread(3, 3, 2).await;
    write_all(&cluster).await;
    cluster.start(4).await;
    let (one, two, four) = (cluster.address(1), cluster.address(2), cluster.address(4));
    let unclear = cluster.control.add(&four, &one, None, |_, _| ()).await.unwrap_err().to_string();
    assert!(unclear.contains("expected --groups"), "{unclear}");
    let unknown = cluster.control.add(&four, &one, Some(&[3]), |_, _| ()).await.unwrap_err().to_string();
    assert!(unknown.contains("expected groups below 3, found 3"), "{unknown}");

    // Group 1 is on nodes 2 and 3. Node 1 only learns of it from other nodes.
    let added = cluster.control.add(&four, &one, Some(&[1]), |_, _| ()).await.unwrap();
    for node in [2, 3] {
        let removed = cluster.control.remove(&node.to_string(), &one, Some(&[1]), false).await.unwrap();
        assert!(removed.node == node && removed.is_member);
        wait_for_space(&cluster, node, 1).await;
    }
    let last = cluster.control.remove(&four, &one, Some(&[1]), false).await.unwrap_err().to_string();
    assert!(last.contains("is the last one of group 1"), "{last}");
    assert_eq!((groups_of(&cluster, 2), groups_of(&cluster, 4)), (vec![0], vec![1]));
    read_all(&cluster).await;
    assert_eq!(cluster.ask(&format!("SET {} moved", key_of(1, 3))).await, "+OK");
    let status = cluster.control.status(&one).await.unwrap();
    assert!(status.groups_of(added) == [1] && status.leader(1) == Some(added) && status.votes(added));

    // After a restart the old nodes still know the group's place.
    for node in [1, 2, 3] {
        cluster.stop(node).await;
        cluster.start(node).await;
    }
    assert_eq!(cluster.ask(&format!("GET {}", key_of(1, 3))).await, "$moved");
    assert_eq!(cluster.control.add(&two, &one, Some(&[1]), |_, _| ()).await.unwrap(), 2);
    cluster.wait_for_stale(2, &format!("GET {}", key_of(1, 3)), "$moved").await;
    cluster.start(5).await;
    let five = cluster.address(5);
    cluster.control.add(&five, &one, Some(&[1]), |_, _| ()).await.unwrap();
    let removed = cluster.control.remove(&four, &one, None, false).await.unwrap();
    assert!(removed.node == added && !removed.is_member);
    wait_for_space(&cluster, 4, 1).await;
    cluster.stop(4).await;
    cluster.stop(5).await;
    cluster.start(5).await;
    assert_eq!((groups_of(&cluster, 2), groups_of(&cluster, 5)), (vec![0, 1], vec![1]));
    assert_eq!(cluster.ask(&format!("GET {}", key_of(1, 3))).await, "$moved");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_a_group_also_if_it_was_down_or_was_interrupted() {
    // Catches a group that is opened again after a restart and continues to vote, and leftover files that still count.
    let mut cluster = Cluster::new(3, 2).await;
    write_all(&cluster).await;
    let (one, three) = (cluster.address(1), cluster.address(3));
    cluster.stop(3).await;
    cluster.control.remove("3", &one, Some(&[0]), false).await.unwrap();
    assert!(state(&cluster, 3, 0).exists());
    cluster.start(3).await;
    wait_for_space(&cluster, 3, 0).await;
    assert_eq!(groups_of(&cluster, 3), [1]);

    // As if the node had ended after the first step of leaving group 1, in a version that did not keep votes.
    cluster.stop(3).await;
    cluster.control.remove("3", &one, Some(&[1]), false).await.unwrap();
    let file = cluster.dir.path().join("3/node.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    assert!(record["last"]["0"]["index"].as_u64() > Some(0), "{record}");
    (record["joined"], record["left"]) = (serde_json::json!({}), serde_json::json!([0, 1]));
    std::fs::write(&file, record.to_string()).unwrap();
    assert!(state(&cluster, 3, 1).exists());
    cluster.start(3).await;
    wait_for_space(&cluster, 3, 1).await;
    let forgotten = cluster.control.add(&three, &one, Some(&[1]), |_, _| ()).await.unwrap_err().to_string();
    assert!(forgotten.contains("it was in group 1"), "{forgotten}");

    // A file from the time when every node had all groups.
    cluster.stop(2).await;
    let identity = cluster.groups(1).identity;
    let old = format!(r#"{{"format":1,"cluster":{},"node":2,"groups":2}}"#, identity.cluster);
    std::fs::write(cluster.dir.path().join("2/node.json"), old).unwrap();
    cluster.start(2).await;
    assert_eq!(groups_of(&cluster, 2), [0, 1]);
    // A majority of two nodes needs both.
    read_all(&cluster).await;
    assert_eq!(cluster.ask("SET key0 0").await, "+OK");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_whose_adding_was_interrupted_leaves_like_any_other() {
    // Catches a node that has no record of its membership, and keeps the group and its vote when it is removed.
    let mut cluster = Cluster::new(2, 1).await;
    cluster.start(3).await;
    let (one, three) = (cluster.address(1), cluster.address(3));
    let added = cluster.control.add(&three, &one, None, |_, _| ()).await.unwrap();
    cluster.stop(3).await;
    // As if the command had ended when the leader had stored the entry.
    let file = cluster.dir.path().join("3/node.json");
    let mut record: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    record["joined"] = serde_json::json!({"0": null});
    std::fs::write(&file, record.to_string()).unwrap();
    cluster.control.remove(&added.to_string(), &one, None, false).await.unwrap();
    cluster.start(3).await;
    wait_for_space(&cluster, 3, 0).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_spreads_groups_and_leaders_and_is_refused_beside_a_fault() {
    // Catches a move to a node that is full, a group that is lost or stays on both nodes, a dry run that moves, moves while a node is away, and a node
    // that is removed beside another change.
    let mut cluster = Cluster::spread(3, 6, 2).await;
    write_all(&cluster).await;
    cluster.start(4).await;
    let (one, four) = (cluster.address(1), cluster.address(4));
    let since = cluster.control.status(&one).await.unwrap().places.get(0).membership.map(|found| found.since);
    let added = cluster.control.add(&four, &one, Some(&[0]), |_, _| ()).await.unwrap();
    let late = cluster.control.remove_since("1", &one, Some(&[0]), false, since).await.unwrap_err().to_string();
    assert!(since.is_some() && late.contains("membership"), "{late}");
    cluster.control.remove("1", &one, Some(&[0]), false).await.unwrap();
    cluster.control.move_leader("2", &one, None).await.unwrap();
    let mut moves: [Vec<String>; 4] = Default::default();
    for (moves, is_plan) in moves.iter_mut().zip([true, true, false, false]) {
        cluster.control.rebalance(&one, is_plan, |step| moves.push(step), |_, _| ()).await.unwrap();
        // A leader may also change by an election.
        moves.retain(|step| step.starts_with("move group"));
    }
    assert!(moves[0] == moves[1] && moves[1] == moves[2] && moves[3].is_empty(), "{moves:?}");
    assert!(moves[0].len() == 2 && moves[0][0] == format!("move group 1 from node 3 to node {added}"), "{moves:?}");
    let status = cluster.control.status(&one).await.unwrap();
    for node in [1, 2, 3, added] {
        let led = (0..6).filter(|group| status.leader(*group) == Some(node)).count();
        assert!(status.groups_of(node).len() == 3 && (1..=2).contains(&led), "node {node}: {status:?}");
    }
    read_all(&cluster).await;
    cluster.stop(3).await;
    let refused = cluster.control.rebalance(&one, false, drop, |_, _| ()).await.unwrap_err().to_string();
    assert!(refused.contains("node 3 does not answer"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_to_a_group_has_its_vote_and_elects_nobody_before_it_has_what_it_had() {
    // Catches a vote that is lost with the log, a leader, or a candidate, that lacks entries which the node has acknowledged, and a node that never
    // votes again.
    let mut cluster = Cluster::new(3, 1).await;
    assert_eq!(cluster.ask("SET colour blue").await, "+OK");
    let (one, three) = (cluster.address(1), cluster.address(3));
    cluster.control.move_leader("1", &one, None).await.unwrap();
    let term = cluster.groups(1).get(0).unwrap().describe().term;
    cluster.control.remove("3", &one, None, false).await.unwrap();
    wait_for_space(&cluster, 3, 0).await;
    // As if the command that adds it again had ended at once.
    let identity = cluster.groups(3).identity;
    let joined = Joined::from([(0, None)]);
    cluster.nodes[&3].local().become_node(identity, joined, BTreeSet::new()).await.unwrap();
    for _ in 0..2 {
        let group = cluster.groups(3).get(0).unwrap();
        wait_for("the vote", async || (group.describe().term == term).then_some(())).await;
        assert_eq!(group.describe().last, 0);
        assert!(!group.may_elect() && !group.raft().config().enable_elect);
        let mut link = Link::new(cluster.nodes[&1].local().parts.dialer.clone(), three.clone(), None);
        let vote = Vote::new_committed(term + 1, 2);
        let transfer = Call::Transfer(0, TransferRequest::new(vote, 3, None));
        let [vote, pre_vote] = [Call::Vote, Call::PreVote].map(|call| call(0, VoteRequest::new(vote, None)));
        for call in [vote, pre_vote, transfer] {
            let refused = link.call(call, LONG, Some).await.err().expect("a refusal").to_string();
            assert!(refused.contains("has not received again what it had of group 0"), "{refused}");
        }
        drop(group);
        cluster.stop(3).await;
        cluster.start(3).await;
    }
    assert_eq!(cluster.control.add(&three, &one, None, |_, _| ()).await.unwrap(), 3);
    for node in ["1", "2"] {
        cluster.control.remove(node, &three, None, false).await.unwrap();
    }
    cluster.stop(1).await;
    cluster.stop(2).await;
    cluster.stop(3).await;
    cluster.start(3).await;
    assert_eq!(cluster.ask("GET colour").await, "$blue");
}
