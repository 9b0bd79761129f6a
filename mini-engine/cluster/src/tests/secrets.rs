//! Changes of the secret.

use std::cell::Cell;

use super::support::Cluster;
use crate::{ControlClient, NodeTls, Security};

fn security(secrets: &[&str]) -> Security {
    Security { secrets: secrets.iter().map(|secret| secret.as_bytes().to_vec()).collect(), tls: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_secret_is_changed_while_clients_write() {
    // Catches a node that ignores the new secret or keeps the old one, and nodes that do not understand each other during the change.
    let cluster = Cluster::new(3, 1).await;
    let admits = async |node, secret| {
        let client = ControlClient::new(&security(&[secret])).unwrap();
        client.status(&cluster.address(node)).await.is_ok()
    };
    (1..=3).for_each(|node| cluster.nodes[&node].reload(&security(&["old"])).unwrap());
    let is_done = Cell::new(false);
    let change = async {
        for (secrets, guest, is_let_in) in [(&["new", "old"][..], "new", true), (&["new"], "old", false)] {
            for node in 1..=3 {
                assert_eq!(admits(node, guest).await, !is_let_in, "{guest} at node {node}");
                cluster.nodes[&node].reload(&security(secrets)).unwrap();
                assert_eq!(admits(node, guest).await, is_let_in, "{guest} at node {node}");
                // A new leader makes new connections to the others, of which some have another file.
                cluster.make_leader(node).await;
            }
        }
        is_done.set(true);
    };
    let write = async {
        while !is_done.get() {
            let reply = cluster.ask("SET a 1").await;
            // Proposed by a leader that was replaced meanwhile.
            assert!(reply == "+OK" || reply.starts_with("-UNCERTAIN "), "{reply}");
        }
    };
    tokio::join!(change, write);
    let [certificates, key, authorities] = ["/nowhere"; 3].map(Into::into);
    let without_files = Security { tls: Some(NodeTls { certificates, key, authorities }), ..security(&["other"]) };
    for useless in [without_files, security(&[""]), security(&["other", "b", "c"])] {
        assert!(cluster.nodes[&1].reload(&useless).is_err());
    }
    assert!(admits(1, "new").await, "what cannot be used has changed nothing");
}
