//! Disks that seem to be full.

use std::sync::atomic::Ordering;

use super::support::{Cluster, wait_for};

const HOUR: u64 = 3_600_000;

/// Sets the free bytes of nodes' disks.
fn set_free(cluster: &Cluster, nodes: &[u64], bytes: u64) {
    // ORDERING: Relaxed; the tests wait for the effects.
    nodes.iter().for_each(|node| cluster.free[node].store(bytes, Ordering::Relaxed));
}

/// Repeats a request until its reply begins like this.
async fn wait_for_reply(cluster: &Cluster, request: &str, beginning: &str) {
    wait_for(beginning, async || cluster.ask(request).await.starts_with(beginning).then_some(())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_disks_refuse_data_and_accept_removals() {
    // Catches disks that fill together, removals and reads that are refused, keys that do not expire, a node that does not start, and an alarm that
    // nobody sees.
    let mut cluster = Cluster::new(3, 1).await;
    for request in ["SET a 1", "SET b 2", "SET c 3", "SET brief x PX 60000"] {
        assert_eq!(cluster.ask(request).await, "+OK");
    }
    set_free(&cluster, &[1, 2, 3], 0);
    wait_for_reply(&cluster, "SET a 2", "-OOM command not allowed: no room").await;
    let leader = cluster.leader(0).await;
    let instant = async || {
        let status = cluster.control.status(&cluster.address(1)).await.expect("a cluster");
        let all = status.nodes.iter().all(|node| node.description.as_ref().is_ok_and(|told| told.lacks_room));
        status.group(leader, 0).filter(|group| all && group.refuses_growth).map(|group| group.instant)
    };
    let before = wait_for("an alarm of all nodes", instant).await;
    let plan = cluster.control.rebalance(&cluster.address(1), true, |_| (), |_, _| ()).await;
    assert!(plan.unwrap_err().to_string().contains("almost full: nothing moves"));
    for node in 1..=3 {
        cluster.clocks[&node].store(HOUR as i64, Ordering::Relaxed);
    }
    // Nobody reads or writes meanwhile.
    wait_for("keys expire", async || instant().await.filter(|instant| *instant > before + HOUR / 2)).await;
    assert_eq!(cluster.ask("DEL a").await, ":1");
    assert_eq!(cluster.ask("GETDEL b").await, "$2");
    assert_eq!((cluster.ask("GET b").await, cluster.ask("GET c").await), ("$-1".into(), "$3".into()));
    let mut client = cluster.client(leader).await;
    client.send("SET a 3\nDEL c\nINCR d").await;
    assert!(client.receive().await.starts_with("-OOM "));
    assert_eq!(client.receive().await, ":1");
    assert!(client.receive().await.starts_with("-OOM "));
    assert!(client.ask("INFO cluster").await.contains("\ncluster_lacks_room:1\r"));

    cluster.stop(leader).await;
    cluster.start(leader).await;
    cluster.wait_for_stale(leader, "GET c", "$-1").await;
    set_free(&cluster, &[1, 2, 3], u64::MAX);
    wait_for_reply(&cluster, "SET a 4", "+OK").await;
    for node in 1..=3 {
        cluster.wait_for_stale(node, "GET a", "$4").await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_full_disk_does_not_lead_and_the_others_go_on() {
    // Catches a cluster that stops for one disk, a majority that needs a full one, and a leader that hands over to a node with one.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    set_free(&cluster, &[3], 0);
    let (groups, group) = (cluster.groups(1), cluster.groups(1).get(0).expect("its group"));
    let leaves_out_3 = || groups.lacking().contains(&3) && group.fit_leader(&groups.lacking()) == Some(2);
    wait_for("a next leader with room", async || leaves_out_3().then_some(())).await;
    set_free(&cluster, &[3], u64::MAX);
    set_free(&cluster, &[1], 0);
    wait_for("another leader", async || (cluster.leader(0).await != 1).then_some(())).await;
    wait_for_reply(&cluster, "SET a 1", "+OK").await;
    let leader = cluster.leader(0).await;
    cluster.stop(5 - leader).await;
    wait_for_reply(&cluster, "SET a 2", "-OOM ").await;
    set_free(&cluster, &[1], u64::MAX);
    wait_for_reply(&cluster, "SET a 3", "+OK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_group_with_its_quota_accepts_removals_and_what_was_removed_is_compacted() {
    // Catches an alarm that stays although almost all bytes were removed, since these are few of the keys.
    let mut cluster = Cluster::new(1, 1).await;
    cluster.stop(1).await;
    cluster.settings.get_mut(&1).expect("its settings").max_bytes = Some(1 << 20);
    cluster.start(1).await;
    let value = |n: u64| -> String {
        // Cannot be compressed much.
        (0..3500).map(|part| format!("{:016x}", (n * 3500 + part).wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect()
    };
    for n in 0..80 {
        wait_for_reply(&cluster, &format!("SET large{n} {}", value(n)), "+OK").await;
    }
    for n in 0..1000 {
        assert_eq!(cluster.ask(&format!("SET small{n} v")).await, "+OK");
    }
    // The quota is one of tables.
    cluster.groups(1).get(0).expect("its group").db().flush().unwrap();
    wait_for_reply(&cluster, "SET a 1", "-OOM ").await;
    for n in 0..80 {
        assert_eq!(cluster.ask(&format!("DEL large{n}")).await, ":1");
    }
    wait_for_reply(&cluster, "SET a 2", "+OK").await;
    assert_eq!(cluster.ask("GET small999").await, "$v");
}
