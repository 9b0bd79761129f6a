//! The view that an operator has of a node and its clients.

use mini_engine_server::Settings as ServerSettings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;

use super::support::{Client, Cluster, LONG, wait_for};
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
