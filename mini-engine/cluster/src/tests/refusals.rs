//! Connections of strangers, and nodes that must not start.

use std::slice::from_ref;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::support::{Cluster, wait_for};
use crate::{ControlClient, Error, Node, NodeTls, Security, Settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_does_not_know_the_secret_learns_nothing_and_rubbish_does_no_harm() {
    // Catches a node that replies to strangers, and a node that ends, or allocates memory, because of their input.
    let cluster = Cluster::new(1, 1).await;
    let stranger = ControlClient::new(&Security { secrets: vec![b"guess".to_vec()], tls: None }).unwrap();
    let error = stranger.status(&cluster.address(1)).await.unwrap_err().to_string();
    assert!(error.contains("secret"), "{error}");
    for rubbish in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 64], &[0, 0, 4, 1], &[0, 0, 0, 0], &[0, 0, 0, 4, 1, 2, 3, 4]]
    {
        let mut stream = TcpStream::connect(cluster.address(1)).await.unwrap();
        stream.write_all(rubbish).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut said = Vec::new();
        // The connection is closed, or reset because not all input was read.
        if stream.read_to_end(&mut said).await.is_ok() {
            assert!(said.len() < 200, "{said:?}");
        }
    }
    assert_eq!(cluster.ask("SET a 1").await, "+OK");
    assert_eq!(cluster.control.status(&cluster.address(1)).await.unwrap().nodes.len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_must_not_start_says_why() {
    // Catches two processes in one directory, an address that anyone may use, and a setting with which openraft would panic.
    let cluster = Cluster::new(1, 1).await;
    let refused = async |settings: Settings| match Node::start(settings).await {
        Ok(_) => panic!("it has started"),
        Err(error) => error,
    };
    let error = refused(cluster.settings(1)).await;
    assert!(matches!(error, Error::Engine(mini_engine::Error::Locked { .. })), "{error}");
    let new = || cluster.settings(2);
    let error = refused(Settings { cluster_listen: "0.0.0.0:0".into(), ..new() }).await;
    assert!(matches!(error, Error::ExposedToNodes(_)), "{error}");
    let half = Security { secrets: vec![b"secret".to_vec()], tls: None };
    let error = refused(Settings { cluster_listen: "0.0.0.0:0".into(), security: half, ..new() }).await;
    assert!(matches!(error, Error::ExposedToNodes(_)), "{error}");
    let error = refused(Settings { listen: "0.0.0.0:0".into(), ..new() }).await;
    assert!(matches!(error, Error::Server(mini_engine_server::Error::Exposed(_))), "{error}");
    let error = refused(Settings { election_timeout: std::time::Duration::ZERO, ..new() }).await;
    assert!(matches!(error, Error::InvalidSettings { .. }), "{error}");
    assert!(!cluster.dir.path().join("2").exists(), "nothing was created");
}

/// A certificate for 127.0.0.1, signed by a new authority, in files.
fn certificate(dir: &std::path::Path) -> NodeTls {
    let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".to_owned()]).unwrap();
    let files =
        NodeTls { certificates: dir.join("cert.pem"), key: dir.join("key.pem"), authorities: dir.join("cert.pem") };
    std::fs::write(&files.certificates, made.cert.pem()).unwrap();
    std::fs::write(&files.key, made.signing_key.serialize_pem()).unwrap();
    files
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_tls_only_who_shows_a_certificate_of_the_authority_is_let_in() {
    // Catches TLS that is required on one side only, and a certificate that nobody checks.
    let (ours, others) = (proof::TempDir::new().unwrap(), proof::TempDir::new().unwrap());
    let secrets = vec![b"secret".to_vec()];
    let of = |dir: &proof::TempDir| Security { secrets: secrets.clone(), tls: Some(certificate(dir.path())) };
    let security = of(&ours);
    let unused = Cluster::without_init(0).await;
    let settings =
        Settings { security: security.clone(), clients: mini_engine_server::Settings::default(), ..unused.settings(1) };
    let node = Node::start(settings).await.unwrap();
    let address = node.cluster_address().to_string();
    ControlClient::new(&security).unwrap().init(from_ref(&address), 1, 1).await.unwrap();
    let without = ControlClient::new(&Security { secrets: secrets.clone(), tls: None }).unwrap();
    let wrong = ControlClient::new(&of(&others)).unwrap();
    for stranger in [without, wrong] {
        assert!(stranger.status(&address).await.is_err());
    }
    assert_eq!(ControlClient::new(&security).unwrap().status(&address).await.unwrap().nodes.len(), 1);
    node.stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_has_lost_a_part_of_its_files_does_not_start() {
    // Catches a node that votes again in a term in which it has voted, or that lacks entries that it has acknowledged.
    let mut cluster = Cluster::new(1, 1).await;
    assert_eq!(cluster.ask("SET a 1").await, "+OK");
    cluster.stop(1).await;
    let (dir, settings) = (cluster.dir.path().join("1"), cluster.settings(1));
    let refused = async || {
        wait_for("a free directory", async || match Node::start(settings.clone()).await {
            Ok(_) => panic!("it has started"),
            // Tasks of the previous node still hold the databases for a moment.
            Err(Error::Engine(mini_engine::Error::Locked { .. })) => None,
            Err(error) => Some(error.to_string()),
        })
        .await
    };
    let aside = cluster.dir.path().join("aside");
    std::fs::rename(dir.join("log"), &aside).unwrap();
    assert!(refused().await.contains("the node's log is lost"));
    // Another log, which has no votes.
    drop(openraft_mini_engine::Logs::open(dir.join("log")).unwrap());
    assert!(refused().await.contains("the node's log is lost"));
    std::fs::remove_dir_all(dir.join("log")).unwrap();
    std::fs::rename(&aside, dir.join("log")).unwrap();
    std::fs::remove_file(dir.join("node.json")).unwrap();
    assert!(refused().await.contains("found no file, although there is data"));
    std::fs::remove_dir_all(dir.join("state-0")).unwrap();
    assert!(refused().await.contains("expected no log"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_node_that_listens_everywhere_has_to_say_where_it_is_reached() {
    // Catches 0.0.0.0 in the membership, where it would stay for ever: nodes and clients would connect to themselves.
    let cluster = Cluster::without_init(0).await;
    let clients = mini_engine_server::Settings { without_password: true, ..Default::default() };
    let settings = Settings { listen: "0.0.0.0:0".into(), clients, ..cluster.settings(1) };
    let error = Node::start(settings.clone()).await.err().expect("it has no address").to_string();
    assert!(error.starts_with("advertise: expected the address at which others reach this node"), "{error}");
    let settings = Settings { advertise: Some("127.0.0.1:7001".into()), ..settings };
    Node::start(settings).await.unwrap().stop().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn silent_connections_do_not_keep_nodes_away() {
    // Catches a node whose new connections wait behind those of a stranger who is silent: without the secret he delays the next leader.
    let cluster = Cluster::new(1, 1).await;
    let address = cluster.address(1);
    let mut silent = Vec::new();
    for _ in 0..300 {
        silent.push(TcpStream::connect(&address).await.unwrap());
    }
    cluster.control.status(&address).await.unwrap();
}
