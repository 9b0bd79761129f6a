//! Limits for clients.

use std::slice::from_ref;

use mini_engine_server::Limits;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::support::{Client, Cluster, LONG, wait_for};
use crate::{Node, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_are_let_in_by_a_password_and_bounded_in_number_and_in_memory() {
    // Catches a client that needs no password, a client beyond the limit, and a client whose requests take all memory or disconnect the others.
    let cluster = Cluster::without_init(0).await;
    let limits = Limits { clients: 2, buffer_bytes: 1 << 20, ..Limits::default() };
    let clients = mini_engine_server::Settings {
        password: Some(b"open".to_vec()),
        limits,
        ..mini_engine_server::Settings::default()
    };
    let node = Node::start(Settings { clients, ..cluster.settings(1) }).await.unwrap();
    cluster.control.init(from_ref(&node.cluster_address().to_string()), 1, 1).await.unwrap();
    let address = node.clients_address().to_string();

    let mut one = Client::connect(&address).await;
    assert!(one.ask("GET a").await.starts_with("-NOAUTH "));
    assert_eq!(one.ask("AUTH open").await, "+OK");
    wait_for("a leader", async || (one.ask("SET a 1").await == "+OK").then_some(())).await;
    let mut two = Client::connect(&address).await;
    assert_eq!(two.ask("AUTH open").await, "+OK");
    let mut three = Client::connect(&address).await;
    assert_eq!(three.receive().await, "-ERR max number of clients reached");

    assert_eq!(two.ask("QUIT").await, "+OK");
    let mut large = wait_for("a place", async || {
        let mut stream = TcpStream::connect(&address).await.ok()?;
        stream.write_all(b"AUTH open\r\n").await.ok()?;
        let mut reply = [0; 5];
        stream.read_exact(&mut reply).await.ok()?;
        (&reply == b"+OK\r\n").then_some(stream)
    })
    .await;
    let mut request = b"*3\r\n$3\r\nSET\r\n$1\r\na\r\n$4194304\r\n".to_vec();
    request.resize(request.len() + (4 << 20), b'v');
    // The client is disconnected, perhaps before everything is sent.
    large.write_all(&request).await.ok();
    let mut said = Vec::new();
    large.read_to_end(&mut said).await.ok();
    assert_eq!(said, b"");
    assert_eq!(one.ask("GET a").await, "$1");
    let info = one.ask("INFO stats").await;
    for counted in ["clients_disconnected_buffers:1", "clients_disconnected_slow:0"] {
        assert!(info.contains(&format!("\n{counted}\r")), "{counted}: {info}");
    }
    assert!(!info.contains("\nrejected_connections:0\r"), "{info}");
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pipeline_may_be_sent_whole_before_its_first_reply_is_read() {
    // Catches a deadlock in which each side waits until the other one reads.
    let cluster = Cluster::new(1, 1).await;
    let mut stream = TcpStream::connect(cluster.clients(1)).await.unwrap();
    let (value, requests) = (format!("$10000\r\n{}\r\n", "v".repeat(10_000)), 5000);
    // Far more than all buffers of the system, in both directions.
    let all = format!("*2\r\n$4\r\nECHO\r\n{value}").repeat(requests);
    timeout(LONG, stream.write_all(all.as_bytes())).await.expect("it is read").unwrap();
    let mut said = vec![0; value.len()];
    for n in 0..requests {
        stream.read_exact(&mut said).await.unwrap();
        assert!(said == value.as_bytes(), "{n}");
    }
    // The size of a MULTI is limited by bytes.
    let queued = 100_001;
    let (mut reader, mut writer) = stream.split();
    let send = async { writer.write_all(format!("MULTI\r\n{}", "INCR n\r\n".repeat(queued)).as_bytes()).await };
    let mut replies = vec![0; "+OK\r\n".len() + queued * "+QUEUED\r\n".len()];
    let (sent, received) = tokio::join!(send, reader.read_exact(&mut replies));
    sent.and(received).unwrap();
    assert!(replies.ends_with(b"+QUEUED\r\n"));
}
