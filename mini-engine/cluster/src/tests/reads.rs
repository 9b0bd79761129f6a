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
    cluster.talk("SET k 1 => +OK").await;
    cluster.wait_for_stale(3, "GET k", "$1").await;
    // From now on the follower applies nothing.
    let (go_on, paused) = oneshot::channel::<()>();
    let group = cluster.groups(3).get(0).unwrap();
    group.raft().external_state_machine_request(|_| Box::pin(async { drop(paused.await) })).await.unwrap();
    cluster.talk("SET k 2 => +OK").await;
    let (mut stale, mut exact) = (cluster.reader(3).await, cluster.client(3).await);
    stale.talk("GET k => $1").await;
    exact.talk("READONLY LINEARIZABLE => +OK | GET k => -CLUSTERDOWN ..").await;
    go_on.send(()).unwrap();
    wait_for("the new value", async || {
        let reply = exact.ask("GET k").await;
        assert!(reply == "$2" || reply.starts_with("-CLUSTERDOWN "), "{reply}");
        (reply == "$2").then_some(())
    })
    .await;

    // A key expires although nothing is written.
    cluster.talk("SET lock mine PX 300 => +OK").await;
    exact.wait_for_reply("GET lock", "$-1").await;

    cluster.stop(1).await;
    cluster.stop(2).await;
    stale.talk("GET k => $2").await;
    exact.talk("GET k => -CLUSTERDOWN ..").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reads_at_all_nodes_see_acknowledged_writes_and_never_go_back() {
    // Catches an index that several reads share although it was asked for before one of them began.
    const LAST: u64 = 300;
    let cluster = Cluster::new(3, 1).await;
    cluster.talk("SET n 0 => +OK").await;
    let leader = cluster.leader(0).await;
    // The greatest value that was acknowledged, or read.
    let known = AtomicU64::new(0);
    let read = async |node: u64| {
        let mut client = cluster.client(node).await;
        client.talk("READONLY LINEARIZABLE => +OK").await;
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
