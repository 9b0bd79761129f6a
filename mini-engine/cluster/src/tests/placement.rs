//! Several groups: on all nodes, on only some of them, and on their way to others.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use mini_engine_server::replicated::slot_of;
use serde_json::{Value, json};

use super::support::{Cluster, KEYS, LONG, is_like, refused, wait_for};
use crate::identity::Joined;
use crate::network::Link;
use crate::slots::group_of;
use crate::types::{TransferRequest, Vote, VoteRequest};
use crate::wire::message::Call;

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

/// Changes the record of a node that does not run.
fn change_record(cluster: &Cluster, node: u64, change: impl FnOnce(&mut Value)) {
    let file = cluster.dir.path().join(format!("{node}/node.json"));
    let mut record = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    change(&mut record);
    fs::write(&file, record.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_nodes_hold_three_groups_each_and_send_clients_to_the_others() {
    // Catches a node that holds every group, or only learns the leaders of its own; a key that is written to one group and read from another; mixed-up
    // replies of a pipeline over several groups, and a read that overtakes an earlier write of its client.
    let mut cluster = Cluster::spread(5, 5, 3).await;
    cluster.write_all("").await;
    cluster.read_all("").await;
    for node in 1..=5 {
        let expected: BTreeSet<u32> = (0..3).map(|back| ((node + 4 - back) % 5) as u32).collect();
        assert!(groups_of(&cluster, node).into_iter().eq(expected.iter().copied()), "node {node}: {expected:?}");
        assert!((0..5).all(|group| state(&cluster, node, group).exists() == expected.contains(&group)));
        let mut client = cluster.reader(node).await;
        let key = key_of((node % 5) as u32, 5);
        let (elsewhere, leader) = (slot_of(key.as_bytes()), cluster.leader((node % 5) as u32).await);
        let moved = format!("-MOVED {elsewhere} {}", cluster.clients(leader));
        for request in [format!("GET {key}"), format!("SET {key} x"), format!("WATCH {key}")] {
            client.wait_for_reply(&request, &moved).await;
        }
        let slots = client.ask("CLUSTER SLOTS").await;
        assert_eq!((slots.matches("*[:").count(), slots.matches("$127.0.0.1").count()), (5, 15), "{slots}");
        let nodes = client.ask("CLUSTER NODES").await;
        assert_eq!((nodes.matches('@').count(), nodes.matches("myself").count()), (5, 1), "{nodes}");
        client.talk("CLUSTER INFO => ..cluster_slots_ok:16384.. | CLUSTER INFO => ..cluster_known_nodes:5..").await;
        let status = cluster.status(node).await;
        assert!((0..5).all(|group| status.leader(group).is_some()), "{status:?}");
        assert_eq!((status.nodes.len(), status.groups_of(node).len()), (5, 3));

        // Requests for groups that the node leads are carried out, and the others are redirected (MOVED), in the order of the requests.
        let leads = || [0, 1, 2, 3, 4].map(|group| cluster.groups(node).leads(group).is_ok());
        let requests = (0..KEYS).map(|n| format!("SETRANGE {{key{n}}} {n} x\nPING {n}\nSET key{n} {n}x\nGET key{n}"));
        let requests = requests.collect::<Vec<_>>().join("\n");
        client.talk("READWRITE => +OK").await;
        let (led, replies) = wait_for("replies under the same leaders", async || {
            let (led, mut replies) = (leads(), Vec::new());
            client.send(&requests).await;
            for _ in 0..4 * KEYS {
                replies.push(client.receive().await);
            }
            (leads() == led).then_some((led, replies))
        })
        .await;
        for (n, replies) in replies.chunks(4).enumerate() {
            let is_led = led[group_of(slot_of(format!("key{n}").as_bytes()), 5) as usize];
            let of_group = |reply: String| if is_led { reply } else { "-MOVED ..".into() };
            let (len, value) = (of_group(format!(":{}", n + 1)), of_group(format!("${n}x")));
            for (reply, expected) in replies.iter().zip([len, format!("${n}"), of_group("+OK".into()), value]) {
                assert!(is_like(reply, &expected), "key{n}: {reply}, not {expected}");
            }
        }
    }
    // A leader may have changed meanwhile.
    cluster.write_all("x").await;
    cluster.talk("PREFIX key => -CROSSSLOT .. | MSET a 1 b 2 => -CROSSSLOT ..").await;
    cluster.talk("MSET {tag}b 2 {tag}a 1 => +OK | PREFIX {tag} => *[${tag}a $1 ${tag}b $2]").await;
    cluster.stop(3).await;
    cluster.read_all("x").await;
    cluster.start(3).await;
    cluster.restart_all().await;
    assert!((1..=5).all(|node| groups_of(&cluster, node).len() == 3));
    cluster.read_all("x").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_moves_to_other_nodes_and_the_old_ones_free_its_space() {
    // Catches a group that is searched at its old place, data that stays behind, a group without nodes, and one that leaves the node to which it has
    // come back, or comes back empty.
    let mut cluster = Cluster::spread(3, 3, 2).await;
    cluster.write_all("").await;
    cluster.start(4).await;
    refused(cluster.add(4, 1, None).await, "expected --groups");
    refused(cluster.add(4, 1, Some(&[3])).await, "expected groups below 3, found 3");

    // Group 1 is on nodes 2 and 3. Node 1 only learns of it from other nodes.
    let added = cluster.add(4, 1, Some(&[1])).await.unwrap();
    for node in [2, 3] {
        let removed = cluster.remove(node, 1, Some(&[1])).await.unwrap();
        assert!(removed.node == node && removed.is_member);
        wait_for_space(&cluster, node, 1).await;
    }
    let four = cluster.address(4);
    refused(cluster.remove(&four, 1, Some(&[1])).await, "is the last one of group 1");
    assert_eq!((groups_of(&cluster, 2), groups_of(&cluster, 4)), (vec![0], vec![1]));
    cluster.read_all("").await;
    let key = key_of(1, 3);
    cluster.talk(&format!("SET {key} moved => +OK")).await;
    let status = cluster.status(1).await;
    assert!(status.groups_of(added) == [1] && status.leader(1) == Some(added) && status.votes(added));

    // After a restart the old nodes still know the group's place.
    for node in [1, 2, 3] {
        cluster.stop(node).await;
        cluster.start(node).await;
    }
    let moved = format!("GET {key} => $moved");
    cluster.talk(&moved).await;
    assert_eq!(cluster.add(2, 1, Some(&[1])).await.unwrap(), 2);
    cluster.wait_for_stale(2, &format!("GET {key}"), "$moved").await;
    cluster.start(5).await;
    cluster.add(5, 1, Some(&[1])).await.unwrap();
    let removed = cluster.remove(&four, 1, None).await.unwrap();
    assert!(removed.node == added && !removed.is_member);
    wait_for_space(&cluster, 4, 1).await;
    cluster.stop(4).await;
    cluster.stop(5).await;
    cluster.start(5).await;
    assert_eq!((groups_of(&cluster, 2), groups_of(&cluster, 5)), (vec![0, 1], vec![1]));
    cluster.talk(&moved).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_leaves_a_group_also_if_it_was_down_or_was_interrupted() {
    // Catches a group that is opened again after a restart and continues to vote, leftover files that still count, and a node that has no record of its
    // membership, and keeps the group and its vote when it is removed.
    let mut cluster = Cluster::new(3, 2).await;
    cluster.write_all("").await;
    cluster.stop(3).await;
    cluster.remove(3, 1, Some(&[0])).await.unwrap();
    assert!(state(&cluster, 3, 0).exists());
    cluster.start(3).await;
    wait_for_space(&cluster, 3, 0).await;
    assert_eq!(groups_of(&cluster, 3), [1]);

    // As if the node had ended after the first step of leaving group 1, in a version that did not keep votes.
    cluster.stop(3).await;
    cluster.remove(3, 1, Some(&[1])).await.unwrap();
    change_record(&cluster, 3, |record| {
        assert!(record["last"]["0"]["index"].as_u64() > Some(0), "{record}");
        (record["joined"], record["left"]) = (json!({}), json!([0, 1]));
    });
    assert!(state(&cluster, 3, 1).exists());
    cluster.start(3).await;
    wait_for_space(&cluster, 3, 1).await;
    refused(cluster.add(3, 1, Some(&[1])).await, "it was in group 1");

    // As if the command that added the node had ended when the leader had stored the entry.
    cluster.start(4).await;
    let added = cluster.add(4, 1, Some(&[0])).await.unwrap();
    cluster.stop(4).await;
    change_record(&cluster, 4, |record| record["joined"] = json!({"0": null}));
    cluster.remove(added, 1, None).await.unwrap();
    cluster.start(4).await;
    wait_for_space(&cluster, 4, 0).await;

    // A file from the time when every node had all groups.
    cluster.stop(2).await;
    let number = cluster.groups(1).identity.cluster;
    change_record(&cluster, 2, |record| *record = json!({"format": 1, "cluster": number, "node": 2, "groups": 2}));
    cluster.start(2).await;
    assert_eq!(groups_of(&cluster, 2), [0, 1]);
    // A majority of two nodes needs both.
    cluster.read_all("").await;
    cluster.talk("SET key0 0 => +OK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebalance_spreads_groups_and_leaders_and_is_refused_beside_a_fault() {
    // Catches a move to a node that is full, a group that is lost or stays on both nodes, a dry run that moves, moves while a node is away, and a node
    // that is removed beside another change.
    let mut cluster = Cluster::spread(3, 6, 2).await;
    cluster.write_all("").await;
    cluster.start(4).await;
    let one = cluster.address(1);
    let since = cluster.status(1).await.places.get(0).membership.map(|found| found.since);
    let added = cluster.add(4, 1, Some(&[0])).await.unwrap();
    assert!(since.is_some());
    refused(cluster.control.remove_since("1", &one, Some(&[0]), false, since).await, "membership");
    cluster.remove(1, 1, Some(&[0])).await.unwrap();
    cluster.control.move_leader("2", &one, None).await.unwrap();
    let mut moves: [Vec<String>; 4] = Default::default();
    for (moves, is_plan) in moves.iter_mut().zip([true, true, false, false]) {
        cluster.control.rebalance(&one, is_plan, |step| moves.push(step), |_, _| ()).await.unwrap();
        // A leader may also change by an election.
        moves.retain(|step| step.starts_with("move group"));
    }
    assert!(moves[0] == moves[1] && moves[1] == moves[2] && moves[3].is_empty(), "{moves:?}");
    assert!(moves[0].len() == 2 && moves[0][0] == format!("move group 1 from node 3 to node {added}"), "{moves:?}");
    let status = cluster.status(1).await;
    for node in [1, 2, 3, added] {
        let led = (0..6).filter(|group| status.leader(*group) == Some(node)).count();
        assert!(status.groups_of(node).len() == 3 && (1..=2).contains(&led), "node {node}: {status:?}");
    }
    cluster.read_all("").await;
    cluster.stop(3).await;
    refused(cluster.control.rebalance(&one, false, drop, |_, _| ()).await, "node 3 does not answer");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_comes_back_to_a_group_has_its_vote_and_elects_nobody_before_it_has_what_it_had() {
    // Catches a vote that is lost with the log, a leader, or a candidate, that lacks entries which the node has acknowledged, and a node that never
    // votes again.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.talk("SET colour blue => +OK").await;
    cluster.make_leader(1).await;
    let term = cluster.groups(1).get(0).unwrap().describe().term;
    cluster.remove(3, 1, None).await.unwrap();
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
        let mut link = Link::new(cluster.nodes[&1].local().parts.dialer.clone(), cluster.address(3), None);
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
    assert_eq!(cluster.add(3, 1, None).await.unwrap(), 3);
    for node in [1, 2] {
        cluster.remove(node, 3, None).await.unwrap();
        cluster.stop(node).await;
    }
    cluster.restart_all().await;
    cluster.talk("GET colour => $blue").await;
}
