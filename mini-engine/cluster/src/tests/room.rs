//! Disks that seem to be full.

use std::sync::atomic::Ordering;

use super::support::{Cluster, is_like, refused, wait_for};
use crate::space::table_bytes;

const HOUR: u64 = 3_600_000;

/// Sets the free bytes of nodes' disks.
fn set_free(cluster: &Cluster, nodes: &[u64], bytes: u64) {
    // ORDERING: Relaxed; the tests wait for the effects.
    nodes.iter().for_each(|node| cluster.free[node].store(bytes, Ordering::Relaxed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_refuse_data_and_accept_removals_and_one_alone_stops_nothing() {
    // Catches disks that fill together, removals and reads that are refused, keys that do not expire, a node that does not start, an alarm that nobody
    // sees, a cluster that stops for one disk, and a majority that needs a full one.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.talk("SET a 1 => +OK | SET b 2 => +OK | SET c 3 => +OK | SET brief x PX 60000 => +OK").await;
    set_free(&cluster, &[1, 2, 3], 0);
    cluster.wait_for_reply("SET a 2", "-OOM command not allowed: no room..").await;
    let leader = cluster.leader(0).await;
    let instant = async || {
        let status = cluster.status(1).await;
        let all = status.nodes.iter().all(|node| node.description.as_ref().is_ok_and(|told| told.lacks_room));
        status.group(leader, 0).filter(|group| all && group.refuses_growth).map(|group| group.instant)
    };
    let before = wait_for("an alarm of all nodes", instant).await;
    let plan = cluster.control.rebalance(&cluster.address(1), true, |_| (), |_, _| ()).await;
    refused(plan, "almost full: nothing moves");
    for node in 1..=3 {
        cluster.clocks[&node].store(HOUR as i64, Ordering::Relaxed);
    }
    // Nobody reads or writes meanwhile.
    wait_for("keys expire", async || instant().await.filter(|instant| *instant > before + HOUR / 2)).await;
    cluster.talk("DEL a => :1 | GETDEL b => $2 | GET b => $-1 | GET c => $3").await;
    let mut client = cluster.client(leader).await;
    client.send("SET a 3\nDEL c\nINCR d").await;
    for expected in ["-OOM ..", ":1", "-OOM .."] {
        assert!(is_like(&client.receive().await, expected), "{expected}");
    }
    client.talk("INFO cluster => ..\ncluster_lacks_room:1\r..").await;

    cluster.stop(leader).await;
    cluster.start(leader).await;
    cluster.wait_for_stale(leader, "GET c", "$-1").await;
    set_free(&cluster, &[1, 2, 3], u64::MAX);
    cluster.wait_for_reply("SET a 4", "+OK").await;
    for node in 1..=3 {
        cluster.wait_for_stale(node, "GET a", "$4").await;
    }
    // One full disk does not lead, and is needed for no majority.
    let leader = cluster.leader(0).await;
    let (full, other) = (leader % 3 + 1, (leader + 1) % 3 + 1);
    set_free(&cluster, &[full], 0);
    let (groups, group) = (cluster.groups(leader), cluster.groups(leader).get(0).expect("its group"));
    let has_room = || groups.lacking().contains(&full) && group.fit_leader(&groups.lacking()) == Some(other);
    wait_for("a next leader with room", async || has_room().then_some(())).await;
    set_free(&cluster, &[full], u64::MAX);
    set_free(&cluster, &[leader], 0);
    wait_for("another leader", async || (cluster.leader(0).await != leader).then_some(())).await;
    cluster.wait_for_reply("SET a 5", "+OK").await;
    let next = cluster.leader(0).await;
    cluster.stop(6 - leader - next).await;
    cluster.wait_for_reply("SET a 6", "-OOM ..").await;
    set_free(&cluster, &[leader], u64::MAX);
    cluster.wait_for_reply("SET a 7", "+OK").await;
}

/// Fills a node, removes almost all bytes again, and waits until there is room: with a quota or, without one, on a disk that is full but for these bytes.
async fn fill_and_remove(quota: Option<u64>) {
    let mut cluster = Cluster::new(1, 2).await;
    cluster.stop(1).await;
    cluster.settings.get_mut(&1).expect("its settings").max_bytes = quota;
    cluster.start(1).await;
    let value = |n: u64| -> String {
        // Cannot be compressed much.
        (0..3500).map(|part| format!("{:016x}", (n * 3500 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
    };
    for n in 0..80 {
        cluster.wait_for_reply(&format!("SET large{n} {}", value(n)), "+OK").await;
    }
    for n in 0..1000 {
        cluster.talk(&format!("SET small{n} v => +OK")).await;
    }
    if quota.is_none() {
        set_free(&cluster, &[1], 0);
    }
    let groups = cluster.groups(1);
    let databases = || groups.here().values().map(|group| group.db()).collect::<Vec<_>>();
    databases().iter().for_each(|db| db.flush().unwrap());
    for key in ["large0", "large1"] {
        cluster.wait_for_reply(&format!("SET {key} 1"), "-OOM ..").await;
    }
    for n in 0..80 {
        cluster.talk(&format!("DEL large{n} => :1")).await;
    }
    wait_for("room", async || {
        if quota.is_none() {
            // Only smaller tables of both groups make room.
            let tables: u64 = databases().iter().map(table_bytes).sum();
            set_free(&cluster, &[1], (11_u64 << 30).saturating_sub(tables << 13));
        }
        let replies = [cluster.ask("SET large0 2").await, cluster.ask("SET large1 2").await];
        (replies == ["+OK", "+OK"]).then_some(())
    })
    .await;
    cluster.talk("GET small999 => $v").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_removed_is_compacted_until_the_disk_has_room() {
    // Catches an alarm that stays although almost all bytes were removed, since these are few of the keys, and a group that waits for another one.
    fill_and_remove(None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_with_its_quota_accepts_removals_and_what_was_removed_is_compacted() {
    // Catches a quota without an effect, and one without an end.
    fill_and_remove(Some(512 << 10)).await;
}
