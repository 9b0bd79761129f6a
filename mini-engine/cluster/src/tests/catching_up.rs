//! Nodes that return: they get the entries that they lack, or one snapshot.

use std::io;

use openraft::async_runtime::WatchReceiver;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::support::{Cluster, wait_for};
use crate::Security;
use crate::network::Dialer;
use crate::starts::Introduction;
use crate::types::{AppendEntriesResponse, Member};
use crate::wire::message::{Call, CallReply, Numbered};

/// More than enough for everything that a test writes.
const ALL: u64 = 1 << 40;

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
        assert_eq!(client.ask(&format!("SET key{n} {}", "v".repeat(bytes))).await, "+OK");
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
            let (first, applied) = purge(&cluster, node, ALL).await;
            assert!(first + 590 <= applied, "node {node}: {first}, {applied}");
        }
    }
    cluster.start(3).await;
    cluster.wait_for_stale(3, "GET key599", "$v").await;
    assert_eq!(installed(&cluster, 3), 0);
    for node in 1..=3 {
        let is_purged = async || {
            let (first, applied) = purge(&cluster, node, ALL).await;
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
    let (mut client, mut reader) = (cluster.client(1).await, cluster.client(3).await);
    assert_eq!(reader.ask("READONLY").await, "+OK");
    let mut count = 0;
    wait_for("the node has caught up", async || {
        // All entries so far are in a snapshot: they may be purged, unless they are kept for the node.
        count += 1;
        assert_eq!(client.ask("INCR count").await, format!(":{count}"));
        purge(&cluster, 1, 4 << 20).await;
        let seen = reader.ask("GET count").await;
        // A follower learns with the next message that an entry is committed.
        seen[1..].parse::<u64>().is_ok_and(|seen| count > 10 && seen + 3 > count).then_some(())
    })
    .await;
    assert_eq!(installed(&cluster, 3), 1);
}

/// A member that stores entries once `goes_on` is true.
async fn slow_member(listener: TcpListener, identity: (u64, u64), goes_on: watch::Receiver<bool>) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        let mut goes_on = goes_on.clone();
        tokio::spawn(async move {
            let dialer = Dialer::new(&Security::default()).expect("no files");
            let mut frames = dialer.accept(stream, Some(identity)).await.ok()?;
            while let Ok(Numbered { number, body }) = frames.receive::<Numbered<Call>>().await {
                if matches!(&body, Call::Append(_, request, _) if !request.entries.is_empty()) {
                    goes_on.wait_for(|goes_on| *goes_on).await.ok()?;
                }
                let body = match body {
                    Call::Introduce(other) => {
                        let others = Default::default();
                        CallReply::Introduced(Introduction { node: identity.1, others, ..other })
                    }
                    _ => CallReply::Append(AppendEntriesResponse::Success),
                };
                frames.send(&Numbered { number, body }).await.ok()?;
            }
            Some(())
        });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_does_not_wait_for_a_member_that_is_slow() {
    // Catches a log that grows without bound while a member receives entries more slowly than they are written.
    let cluster = Cluster::new(1, 1).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let member = Member { cluster: listener.local_addr().unwrap().to_string(), clients: "-".into() };
    let (gate, goes_on) = watch::channel(true);
    tokio::spawn(slow_member(listener, (cluster.groups(1).identity.cluster, 9), goes_on));
    let group = cluster.groups(1).get(0).unwrap();
    group.raft().add_learner(9, member, false).await.unwrap();
    wait_for("the member has all", async || {
        let described = group.describe();
        (described.matched.get(&9) == Some(&described.last)).then_some(())
    })
    .await;
    gate.send_replace(false);
    for n in 0..40 {
        assert_eq!(cluster.ask(&format!("SET key{n} {}", "v".repeat(50_000))).await, "+OK");
    }
    let (first, applied) = purge(&cluster, 1, 0).await;
    assert!(first > applied, "{first}, {applied}");
    gate.send_replace(true);
    let purged = || group.raft().metrics().borrow_watched().purged;
    wait_for("a purge", async || purged().filter(|last| last.index >= applied)).await;
}
