//! The view that clients and an operator have of a node.

use mini_engine_server::{Limits, Settings as ServerSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{Cluster, refused, wait_for};
use crate::gauges::gauges;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_lets_clients_in_and_shows_them_and_their_requests_as_a_server_does() {
    // Catches a password, a number of clients, a slow log or metrics that are set in vain in a cluster, requests that appear in no log, counter, list or monitor, metrics without those of
    // the groups, and a MULTI that is limited by the number of its commands instead of their bytes.
    let limits = Limits { clients: 2, ..Limits::default() };
    let (password, metrics) = (Some(b"open".to_vec()), Some("127.0.0.1:0".into()));
    let clients = ServerSettings { password, metrics, slow_micros: 0, limits, ..ServerSettings::default() };
    let cluster = Cluster::alone(|settings| settings.clients = clients).await;
    let (mut one, mut monitor) = (cluster.client(1).await, cluster.client(1).await);
    one.talk("GET a => -NOAUTH .. | AUTH open => +OK").await;
    monitor.talk("AUTH open => +OK | MONITOR => +OK").await;
    assert_eq!(cluster.client(1).await.receive().await, "-ERR max number of clients reached");
    one.talk("SETEX a 100 milk => +OK | GET a => $milk").await;
    for request in ["\"SETEX\" \"a\" \"100\" \"milk\"", "\"GET\" \"a\""] {
        let seen = monitor.receive().await;
        assert!(seen.contains(request), "{seen}");
    }
    one.talk(
        "SLOWLOG GET 2 => ..*[$SETEX $a $100 $milk].. | CLIENT LIST => ..flags=O.. | CLIENT LIST => ..cmd=client..",
    )
    .await;
    for command in ["setex", "get"] {
        one.talk(&format!("INFO commandstats => ..cmdstat_{command}:calls=1,..")).await;
    }
    let mut metrics = TcpStream::connect(cluster.nodes[&1].metrics_address().unwrap().to_string()).await.unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    metrics.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("mini_engine_clients 2"), "{text}");
    for sample in ["is_leader{group=\"0\"} 1", "is_served{group=\"0\"} 1", "voters{group=\"0\"} 1", "log_bytes "] {
        assert!(text.contains(&format!("\nmini_engine_cluster_{sample}")), "{sample}: {text}");
    }
    const QUEUED: usize = 100_001;
    one.talk("MULTI => +OK").await;
    one.send(&["INCR n"; QUEUED].join("\n")).await;
    for _ in 0..QUEUED {
        assert_eq!(one.receive().await, "+QUEUED");
    }
}

/// A number of the node's metrics; the labels are those of group 0 and `more`.
fn gauge(cluster: &Cluster, node: u64, name: &str, more: &str) -> Option<u64> {
    let all = gauges(cluster.nodes[&node].local());
    let samples = all.into_iter().find(|gauge| gauge.0 == name)?.2;
    samples.into_iter().find(|(labels, _)| *labels == format!("{{group=\"0\"{more}}}")).map(|(_, value)| value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_member_that_is_away_is_behind_and_without_a_majority_nothing_is_ok_but_stale_reads() {
    // Catches followers that monitoring takes for masters, and an alarm that cannot fire: a lag that stays 0 while a member is away, and a leader that
    // refuses everything and reports that all is well. Without a majority: a write that waits for ever or is acknowledged, a read that a deposed
    // leader answers, and a change of members that is tried for half a minute.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    cluster.talk("SET colour blue => +OK").await;
    let port = cluster.clients(1).rsplit_once(':').unwrap().1.to_owned();
    let replica = format!("..role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:{port}\r\nmaster_link_status:up\r\n..");
    for node in 1..=3 {
        let role = if node == 1 { "..role:master\r\nconnected_slaves:2\r\n.." } else { &replica };
        cluster.client(node).await.wait_for_reply("INFO replication", role).await;
        let expected = [Some(u64::from(node == 1)), Some(1), Some(3)];
        let found = ["cluster_is_leader", "cluster_is_served", "cluster_voters"];
        wait_for("figures of a group that is well", async || {
            (found.map(|name| gauge(&cluster, node, name, "")) == expected).then_some(())
        })
        .await;
    }
    cluster.stop(3).await;
    for n in 0..5 {
        cluster.talk(&format!("SET a {n} => +OK")).await;
    }
    let lag = |member| gauge(&cluster, 1, "cluster_member_lag_entries", &format!(",member=\"{member}\""));
    wait_for("a lag", async || lag(3).filter(|lag| *lag >= 5)).await;
    wait_for("a member that is level", async || lag(2).filter(|lag| *lag == 0)).await;
    cluster.stop(2).await;
    let mut client = cluster.client(1).await;
    for request in ["SET colour red", "SET colour red", "INCR count"] {
        let reply = client.ask(request).await;
        // The node may consider itself the leader for a moment.
        assert!(reply.starts_with("-CLUSTERDOWN ") || reply.starts_with("-UNCERTAIN "), "{request}: {reply}");
    }
    client.talk("GET colour => -CLUSTERDOWN .. | READONLY => +OK | GET colour => $blue").await;
    for (request, expected) in [
        ("CLUSTER INFO", "..cluster_state:fail.."),
        ("CLUSTER INFO", "..cluster_slots_ok:0\r.."),
        ("INFO replication", "..role:master\r\nconnected_slaves:0\r.."),
    ] {
        client.wait_for_reply(request, expected).await;
    }
    wait_for("an alarm", async || gauge(&cluster, 1, "cluster_is_served", "").filter(|is_served| *is_served == 0))
        .await;
    assert!(!cluster.status(1).await.has_majority(0));
    refused(cluster.control.remove("2", &cluster.address(1), None, true).await, "does not hear a majority");
}
