//! Connections of strangers, and nodes that must not start.

use std::fs;
use std::time::Duration;

use mini_engine_server::Settings as ServerSettings;
use proof::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};

use super::support::{Cluster, once_free, refused};
use crate::{ControlClient, Node, NodeTls, Security, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_learn_nothing_do_no_harm_and_keep_no_node_away() {
    // Catches a node that replies to strangers, that ends, or allocates memory, because of their input, or whose new connections wait behind those of
    // a stranger who is silent: without the secret he delays the next leader.
    let cluster = Cluster::new(1, 1).await;
    let address = cluster.address(1);
    let stranger = ControlClient::new(&Security { secrets: vec![b"guess".to_vec()], tls: None }).unwrap();
    refused(stranger.status(&address).await, "secret");
    for rubbish in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 4, 1], &[0, 0, 0, 0], &[0, 0, 0, 4, 1, 2, 3, 4]]
    {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = Vec::new();
        // The connection is closed, or reset because not all input was read.
        if stream.read_to_end(&mut said).await.is_ok() {
            assert!(said.len() < 200, "{said:?}");
        }
    }
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(&address).await.unwrap());
    }
    assert_eq!(cluster.status(1).await.nodes.len(), 1);
    cluster.talk("SET a 1 => +OK").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_must_not_start_says_why() {
    // Catches two processes in one directory, an address that anyone may use, a setting with which openraft would panic, and in the membership 0.0.0.0
    // or the path of a file, where it would stay for ever: nodes and clients would connect to themselves.
    let cluster = Cluster::new(1, 1).await;
    let path = cluster.dir.path().join("socket");
    let (socket, everywhere) = (format!("unix:{}", path.display()), "0.0.0.0:0".to_owned());
    let new = || cluster.settings(2);
    let half = Security { secrets: vec![b"secret".to_vec()], tls: None };
    let nobody_knows_where = "advertise: expected the address at which others reach this node";
    let reached = [&everywhere, &socket].map(|listen| {
        let clients = ServerSettings { without_password: true, ..ServerSettings::default() };
        Settings { listen: listen.clone(), clients, ..new() }
    });
    for (settings, expected) in [
        (cluster.settings(1), "is locked"),
        (Settings { cluster_listen: everywhere.clone(), ..new() }, "both TLS and a shared secret"),
        (Settings { cluster_listen: everywhere.clone(), security: half, ..new() }, "both TLS and a shared secret"),
        (Settings { listen: everywhere, ..new() }, "password"),
        (Settings { election_timeout: Duration::ZERO, ..new() }, "election timeout: expected"),
        (reached[0].clone(), nobody_knows_where),
        (reached[1].clone(), nobody_knows_where),
    ] {
        refused(Node::start(settings).await, expected);
    }
    assert!(!cluster.dir.path().join("2").exists(), "nothing was created");
    for settings in reached {
        let settings = Settings { advertise: Some("127.0.0.1:7001".into()), ..settings };
        let node = once_free(async || Node::start(settings.clone()).await).await.unwrap();
        if settings.listen == socket {
            assert_eq!(node.clients_address().to_string(), socket);
            let (mut stream, mut reply) = (UnixStream::connect(&path).await.unwrap(), [0; 7]);
            stream.write_all(b"PING\r\n").await.unwrap();
            stream.read_exact(&mut reply).await.unwrap();
            assert_eq!(&reply, b"+PONG\r\n");
        }
        node.stop().await.unwrap();
        assert!(!path.exists());
    }
    // The first node goes on.
    cluster.talk("SET a 1 => +OK").await;
}

/// The secret, and a certificate for 127.0.0.1, signed by a new authority, in files.
fn security(dir: &TempDir) -> Security {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let [certificates, key] = ["cert.pem", "key.pem"].map(|name| dir.path().join(name));
    fs::write(&certificates, made.cert.pem()).unwrap();
    fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let tls = Some(NodeTls { authorities: certificates.clone(), certificates, key });
    Security { secrets: vec![b"secret".to_vec()], tls }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_only_who_shows_a_certificate_of_the_authority_is_let_in() {
    // Catches TLS that is required on one side only, and a certificate that nobody checks.
    let [ours, others] = [(); 2].map(|()| TempDir::new().unwrap());
    let cluster = Cluster::alone(|settings| settings.security = security(&ours)).await;
    for stranger in [Security { tls: None, ..security(&others) }, security(&others)] {
        assert!(ControlClient::new(&stranger).unwrap().status(&cluster.address(1)).await.is_err());
    }
    assert_eq!(cluster.status(1).await.nodes.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_lost_a_part_of_its_files_does_not_start() {
    // Catches a node that votes again in a term in which it has voted, or that lacks entries that it has acknowledged.
    let mut cluster = Cluster::new(1, 1).await;
    cluster.talk("SET a 1 => +OK").await;
    cluster.stop(1).await;
    let [dir, aside] = ["1", "aside"].map(|name| cluster.dir.path().join(name));
    let fails = async |expected| {
        let start = async || Node::start(cluster.settings(1)).await;
        refused(once_free(start).await, expected);
    };
    fs::rename(dir.join("log"), &aside).unwrap();
    fails("the node's log is lost").await;
    // Another log, which has no votes.
    drop(openraft_mini_engine::Logs::open(dir.join("log")).unwrap());
    fails("the node's log is lost").await;
    fs::remove_dir_all(dir.join("log")).unwrap();
    fs::rename(&aside, dir.join("log")).unwrap();
    fs::remove_file(dir.join("node.json")).unwrap();
    fails("found no file, although there is data").await;
    fs::remove_dir_all(dir.join("state-0")).unwrap();
    fails("expected no log").await;
}
