//! Reads at followers that see everything.

use std::sync::atomic::{AtomicU64, Ordering};

use futures_util::future::{join, join_all};
use tokio::sync::oneshot;

use super::support::{Cluster, wait_for};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_follower_that_is_behind_or_cut_off_returns_no_old_value() {
    // Catches a follower that reads before it has applied the leader's index, or without an index.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    assert_eq!(cluster.ask("SET k 1").await, "+OK");
    cluster.wait_for_stale(3, "GET k", "$1").await;
    // From now on the follower applies nothing.
    let (go_on, paused) = oneshot::channel::<()>();
    let group = cluster.groups(3).get(0).unwrap();
    group.raft().external_state_machine_request(|_| Box::pin(async { drop(paused.await) })).await.unwrap();
    assert_eq!(cluster.ask("SET k 2").await, "+OK");
    let (mut stale, mut exact) = (cluster.client(3).await, cluster.client(3).await);
    assert_eq!(stale.ask("READONLY").await, "+OK");
    assert_eq!(exact.ask("READONLY LINEARIZABLE").await, "+OK");
    assert_eq!(stale.ask("GET k").await, "$1");
    let reply = exact.ask("GET k").await;
    assert!(reply.starts_with("-CLUSTERDOWN "), "{reply}");
    go_on.send(()).unwrap();
    wait_for("the new value", async || {
        let reply = exact.ask("GET k").await;
        assert!(reply == "$2" || reply.starts_with("-CLUSTERDOWN "), "{reply}");
        (reply == "$2").then_some(())
    })
    .await;

    // A key expires although nothing is written.
    assert_eq!(cluster.ask("SET lock mine PX 300").await, "+OK");
    wait_for("an expiry", async || (exact.ask("GET lock").await == "$-1").then_some(())).await;

    for node in [1, 2] {
        cluster.stop(node).await;
    }
    assert_eq!(stale.ask("GET k").await, "$2");
    let reply = exact.ask("GET k").await;
    assert!(reply.starts_with("-CLUSTERDOWN "), "{reply}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_at_all_nodes_see_acknowledged_writes_and_never_go_back() {
    // Catches an index that several reads share although it was asked for before one of them began.
    const LAST: u64 = 300;
    let cluster = Cluster::new(3, 1).await;
    assert_eq!(cluster.ask("SET n 0").await, "+OK");
    let leader = cluster.leader(0).await;
    // The greatest value that was acknowledged, or read.
    let known = AtomicU64::new(0);
    let read = async |node: u64| {
        let mut client = cluster.client(node).await;
        assert_eq!(client.ask("READONLY LINEARIZABLE").await, "+OK");
        let mut read = 0;
        while read < LAST {
            // ORDERING(known): Acquire; pairs with Release in `write` and here: a reply that came before this read began counts.
            let least = known.load(Ordering::Acquire);
            let reply = client.ask("GET n").await;
            read = reply.trim_start_matches('$').parse().expect(&reply);
            assert!(read >= least, "node {node}: {read} after {least}");
            known.fetch_max(read, Ordering::Release);
        }
    };
    let write = async {
        let mut client = cluster.client(leader).await;
        for n in 1..=LAST {
            assert_eq!(client.ask("INCR n").await, format!(":{n}"));
            known.fetch_max(n, Ordering::Release);
        }
    };
    join(write, join_all([1, 2, 3, 1, 2, 3].map(read))).await;
}
