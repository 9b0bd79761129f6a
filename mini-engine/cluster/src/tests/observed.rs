//! The view that an operator has of a node and its clients.

use mini_engine_server::Settings as ServerSettings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::support::{Client, Cluster, LONG, wait_for};
use crate::gauges::gauges;
use crate::{Node, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_shows_its_clients_and_their_requests_as_a_server_does() {
    // Catches requests of a cluster that appear in no log, counter, list or monitor, and a killed client that continues.
    let cluster = Cluster::without_init(0).await;
    let clients = ServerSettings { metrics: Some("127.0.0.1:0".into()), slow_micros: 0, ..ServerSettings::default() };
    let node = Node::start(Settings { clients, ..cluster.settings(1) }).await.unwrap();
    let address = node.clients_address().to_string();
    let mut one = Client::connect(&address).await;
    assert!(one.ask("GET a").await.contains("this node is in no cluster yet"));
    cluster.control.init(&[node.cluster_address().to_string()], 1, 1).await.unwrap();
    wait_for("a leader", async || (one.ask("SET a 1").await == "+OK").then_some(())).await;

    let mut monitor = Client::connect(&address).await;
    assert_eq!(monitor.ask("MONITOR").await, "+OK");
    assert_eq!(one.ask("SETEX a 100 milk").await, "+OK");
    assert_eq!(one.ask("GET a").await, "$milk");
    for request in ["\"SETEX\" \"a\" \"100\" \"milk\"", "\"GET\" \"a\""] {
        let seen = monitor.receive().await;
        assert!(seen.contains(request), "{seen}");
    }
    assert!(one.ask("SLOWLOG GET 2").await.contains("*[$SETEX $a $100 $milk]"));
    let list = one.ask("CLIENT LIST").await;
    assert!(list.contains("flags=O") && list.contains("cmd=client"), "{list}");
    let stats = one.ask("INFO commandstats").await;
    assert!(stats.contains("cmdstat_setex:calls=1,") && stats.contains("cmdstat_get:calls=1,"), "{stats}");

    let mut metrics = TcpStream::connect(node.metrics_address().unwrap().to_string()).await.unwrap();
    metrics.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").await.unwrap();
    let mut text = String::new();
    metrics.read_to_string(&mut text).await.unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("mini_engine_clients 2"), "{text}");
    for sample in ["is_leader{group=\"0\"} 1", "is_served{group=\"0\"} 1", "voters{group=\"0\"} 1", "log_bytes "] {
        assert!(text.contains(&format!("\nmini_engine_cluster_{sample}")), "{sample}: {text}");
    }

    let id = list.lines().find(|line| line.contains("flags=O")).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(
        one.ask(&format!("CLIENT KILL ID {}", id.trim_start_matches("$").trim_start_matches("id="))).await,
        ":1"
    );
    // Reads past the requests that came since.
    let end = async { while !monitor.receive().await.is_empty() {} };
    timeout(LONG, end).await.expect("it is disconnected");
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_listens_on_a_unix_socket_if_it_has_an_address_for_redirections() {
    // Catches a file path in the membership: a client on another machine cannot be sent to it.
    let cluster = Cluster::without_init(0).await;
    let path = cluster.dir.path().join("socket");
    let listen = format!("unix:{}", path.display());
    let settings = Settings { listen, ..cluster.settings(1) };
    let error = Node::start(settings.clone()).await.err().expect("it has no address").to_string();
    assert!(error.starts_with("advertise: expected the address at which others reach this node"), "{error}");
    let node = Node::start(Settings { advertise: Some("127.0.0.1:7001".into()), ..settings }).await.unwrap();
    let mut client = UnixStream::connect(&path).await.unwrap();
    client.write_all(b"PING\r\nQUIT\r\n").await.unwrap();
    let mut said = String::new();
    client.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "+PONG\r\n+OK\r\n");
    node.stop().await.unwrap();
    assert!(!path.exists());
}

/// A number of the node's metrics; the labels are those of group 0 and `more`.
fn gauge(cluster: &Cluster, node: u64, name: &str, more: &str) -> Option<u64> {
    let all = gauges(cluster.nodes[&node].local());
    let samples = all.into_iter().find(|gauge| gauge.0 == name)?.2;
    samples.into_iter().find(|(labels, _)| *labels == format!("{{group=\"0\"{more}}}")).map(|(_, value)| value)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_metrics_show_which_node_leads_and_how_far_the_others_are_behind() {
    // Catches an alarm that cannot fire: a lag that stays 0 while a member is away, and a group without a leader that counts as served.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    assert_eq!(cluster.ask("SET a 1").await, "+OK");
    for node in 1..=3 {
        let expected = [Some(u64::from(node == 1)), Some(1), Some(3)];
        let found = ["cluster_is_leader", "cluster_is_served", "cluster_voters"];
        wait_for("figures of a group that is well", async || {
            (found.map(|name| gauge(&cluster, node, name, "")) == expected).then_some(())
        })
        .await;
    }
    cluster.stop(3).await;
    for n in 0..5 {
        assert_eq!(cluster.ask(&format!("SET a {n}")).await, "+OK");
    }
    let lag =
        |cluster: &Cluster, member| gauge(cluster, 1, "cluster_member_lag_entries", &format!(",member=\"{member}\""));
    wait_for("a lag", async || lag(&cluster, 3).filter(|lag| *lag >= 5)).await;
    wait_for("a member that is level", async || lag(&cluster, 2).filter(|lag| *lag == 0)).await;
    cluster.stop(2).await;
    wait_for("an alarm", async || gauge(&cluster, 1, "cluster_is_served", "").filter(|is_served| *is_served == 0))
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_leader_is_a_master_and_without_a_majority_nothing_is_ok() {
    // Catches followers that monitoring takes for masters, a leader that refuses everything and reports that all is well, and a change of members
    // that is tried for half a minute.
    let mut cluster = Cluster::new(3, 1).await;
    let leader = cluster.leader(0).await;
    let port = cluster.clients(leader).rsplit_once(':').unwrap().1.to_owned();
    let replica = format!("role:slave\r\nmaster_host:127.0.0.1\r\nmaster_port:{port}\r\nmaster_link_status:up\r\n");
    for node in 1..=3 {
        let mut client = cluster.client(node).await;
        let expected = if node == leader { "role:master\r\nconnected_slaves:2\r\n" } else { &replica[..] };
        wait_for(expected, async || client.ask("INFO replication").await.contains(expected).then_some(())).await;
    }
    let others: Vec<u64> = (1..=3).filter(|node| *node != leader).collect();
    for node in &others {
        cluster.stop(*node).await;
    }
    let mut client = cluster.client(leader).await;
    for (request, expected) in [
        ("CLUSTER INFO", "cluster_state:fail"),
        ("CLUSTER INFO", "cluster_slots_ok:0\r"),
        ("INFO replication", "role:master\r\nconnected_slaves:0\r"),
    ] {
        wait_for(expected, async || client.ask(request).await.contains(expected).then_some(())).await;
    }
    assert!(!cluster.control.status(&cluster.address(leader)).await.unwrap().has_majority(0));
    let removed = cluster.control.remove(&others[0].to_string(), &cluster.address(leader), None, true).await;
    let error = removed.unwrap_err().to_string();
    assert!(error.contains("does not hear a majority"), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_lost_its_directory_is_not_taken_for_a_follower() {
    // Catches a status that counts another node at the same address.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.make_leader(1).await;
    cluster.stop(3).await;
    std::fs::remove_dir_all(cluster.dir.path().join("3")).unwrap();
    cluster.start(3).await;
    let status = cluster.control.status(&cluster.address(1)).await.unwrap();
    let error = status.nodes[2].description.as_ref().unwrap_err();
    assert!(error.contains("expected node 3 of cluster") && error.contains("found a node of no cluster"), "{error}");
    assert!(status.nodes[1].description.is_ok() && status.has_majority(0));
}
