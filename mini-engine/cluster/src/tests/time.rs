//! Wrong clocks.

use std::sync::atomic::Ordering;

use super::support::{Cluster, wait_for};

const HOUR: i64 = 3_600_000;

/// The keys and their times of expiry on every node, by stale reads after the node has applied the write of `sign`.
async fn seen(cluster: &Cluster, sign: &str) -> Vec<String> {
    let mut all = Vec::new();
    for node in 1..=3 {
        cluster.wait_for_stale(node, &format!("GET {sign}"), "$1").await;
        let (mut client, mut seen) = (cluster.reader(node).await, Vec::new());
        for key in ["brief", "long", "count"] {
            seen.extend([client.ask(&format!("GET {key}")).await, client.ask(&format!("PEXPIRETIME {key}")).await]);
        }
        all.push(seen);
    }
    assert!(all.iter().all(|seen| *seen == all[0]), "{all:?}");
    all.swap_remove(0)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_node_holds_the_same_and_time_goes_on_although_the_clock_of_one_is_an_hour_ahead() {
    // Catches an expiry that depends on each node's own clock: the same INCR would start from 0 on one node and continue on another. Also catches a
    // clock that stops between proposals, or under the next leader, so that a lock is held although its holder is dead; and a wrong clock that nobody
    // sees.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.clocks[&1].store(HOUR, Ordering::Relaxed);
    cluster.make_leader(2).await;
    cluster
        .talk(
            "SET brief x EX 1800 => +OK | SET long x EX 36000 => +OK | SET count 41 EX 1800 => +OK | INCR count => :42",
        )
        .await;
    cluster.talk("SET sign1 1 => +OK").await;
    let before = seen(&cluster, "sign1").await;
    assert_eq!((&before[0][..], &before[4][..]), ("$x", "$42"));
    cluster.talk("SET lock mine PX 300 => +OK").await;
    cluster.wait_for_reply("GET lock", "$-1").await;

    // The node whose clock is ahead leads: keys that expire within the hour are gone on all nodes, and stay gone.
    cluster.make_leader(1).await;
    cluster.talk("INCR count => :1 | GET brief => $-1").await;
    cluster.client(1).await.wait_for_reply("INFO cluster", "..cluster_clock_ahead_ms:3..").await;
    let status = cluster.status(2).await;
    let ahead = [0, 1, 2].map(|node| status.clock_ahead(&status.nodes[node]));
    assert!(ahead[0] > HOUR - 60_000 && ahead[1..] == [0, 0], "{ahead:?}");

    // The time of a lock passes although nobody asks, and the first request to the next leader shows it.
    cluster.talk("SET lock mine NX PX 300 => +OK").await;
    let set = cluster.groups(1).get(0).unwrap().clock.millis();
    let group = cluster.groups(3).get(0).unwrap();
    wait_for("time that goes on", async || (group.clock.continued() > set + 300).then_some(())).await;
    cluster.make_leader(3).await;
    cluster.talk("SET lock other NX => +OK | INCR count => :2 | SET sign2 1 => +OK").await;
    let after = seen(&cluster, "sign2").await;
    assert_eq!((&after[0][..], &after[2][..], &after[4][..]), ("$-1", "$x", "$2"));

    // A restarted node takes the instant from its database.
    cluster.stop(2).await;
    cluster.start(2).await;
    assert_eq!(seen(&cluster, "sign2").await, after);
}
