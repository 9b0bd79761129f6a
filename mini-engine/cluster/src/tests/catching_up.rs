//! Nodes that return: they get the entries that they lack, or one snapshot.

use std::sync::mpsc;

use openraft::async_runtime::WatchReceiver;
use tokio::task::block_in_place;

use super::support::{Cluster, wait_for};

/// Makes a snapshot of everything on a node, and purges; returns the first entry that is kept, and the last applied one.
pub(super) async fn purge(cluster: &Cluster, node: u64, max_bytes: u64) -> (u64, u64) {
    let group = cluster.groups(node).get(0).expect("its group");
    let applied = group.applied();
    wait_for("a snapshot", async || {
        // If one is being made already, it may be older.
        group.raft().trigger().snapshot().await.expect("it runs");
        let snapshot = group.raft().metrics().borrow_watched().snapshot;
        snapshot.is_some_and(|last| last.index >= applied).then_some(())
    })
    .await;
    group.purge(max_bytes).await;
    (group.retention.first(), applied)
}

/// The number of snapshots that a node has installed in its directory.
fn installed(cluster: &Cluster, node: u64) -> u64 {
    let states = std::fs::read_dir(cluster.dir.path().join(format!("{node}/state-0"))).expect("a directory");
    let names = states.map(|state| state.expect("a name").file_name().into_string().expect("text"));
    names.filter_map(|name| name.strip_prefix("state-")?.parse().ok()).max().expect("a state")
}

/// Three nodes, of which node 3 is stopped and node 1 leads and writes.
async fn without_node_3(writes: usize, bytes: usize) -> Cluster {
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    cluster.stop(3).await;
    let mut client = cluster.client(1).await;
    for n in 0..writes {
        client.talk(&format!("SET key{n} {} => +OK", "v".repeat(bytes))).await;
    }
    cluster
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_gets_entries_also_from_the_next_leader() {
    // Catches a copy of the whole state for a node that was away for a moment, and entries that are kept for ever after it.
    let mut cluster = without_node_3(600, 1).await;
    for leader in [1, 2] {
        cluster.make_leader(leader).await;
        for node in [1, 2] {
            let (first, applied) = purge(&cluster, node, u64::MAX).await;
            assert!(first + 590 <= applied, "node {node}: {first}, {applied}");
        }
    }
    cluster.start(3).await;
    cluster.wait_for_stale(3, "GET key599", "$v").await;
    assert_eq!(installed(&cluster, 3), 0);
    for node in 1..=3 {
        let is_purged = async || {
            let (first, applied) = purge(&cluster, node, u64::MAX).await;
            (first > 600 && first + 10 > applied).then_some(())
        };
        wait_for("a purge of what every node has", is_purged).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_was_away_too_long_gets_one_snapshot_under_writes() {
    // Catches a log that is kept for ever, and snapshots that are outdated on arrival, one after the other.
    let mut cluster = without_node_3(100, 50_000).await;
    let (first, _) = purge(&cluster, 1, 4 << 20).await;
    assert!(first > 100, "{first}");
    cluster.start(3).await;
    let (mut client, mut reader) = (cluster.client(1).await, cluster.reader(3).await);
    let mut count = 0;
    wait_for("the node has caught up", async || {
        // All entries so far are in a snapshot: they may be purged, unless they are kept for the node.
        count += 1;
        client.talk(&format!("INCR count => :{count}")).await;
        purge(&cluster, 1, 4 << 20).await;
        let seen = reader.ask("GET count").await;
        // A follower learns with the next message that an entry is committed.
        seen[1..].parse::<u64>().is_ok_and(|seen| count > 10 && seen + 3 > count).then_some(())
    })
    .await;
    assert_eq!(installed(&cluster, 3), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_does_not_wait_for_a_member_that_is_slow() {
    // Catches a log that grows without bound while a member receives entries more slowly than they are written.
    let cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    // From now on, node 3 answers nothing about this group.
    let (go_on, paused) = mpsc::channel::<()>();
    let wait = move |_: &_| block_in_place(|| _ = paused.recv());
    cluster.groups(3).get(0).unwrap().raft().external_request(wait).await.unwrap();
    for n in 0..40 {
        cluster.talk(&format!("SET key{n} {} => +OK", "v".repeat(50_000))).await;
    }
    let (first, applied) = purge(&cluster, 1, 0).await;
    assert!(first > applied, "{first}, {applied}");
    drop(go_on);
    let group = cluster.groups(1).get(0).unwrap();
    let purged = || group.raft().metrics().borrow_watched().purged;
    wait_for("a purge", async || purged().filter(|last| last.index >= applied)).await;
}
