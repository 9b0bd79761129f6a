//! Directories of nodes that are put back to older copies, and copies that are started.

use std::fs;

use tokio::time::timeout;

use super::backups::copy;
use super::support::{Cluster, LONG, once_free, wait_for};
use crate::starts::KEPT;
use crate::{Error, Node, Settings};

/// Starts a node whose directory is an older copy, and waits until it finds that out.
async fn ends(cluster: &Cluster, settings: Settings) {
    let error = match once_free(async || Node::start(settings.clone()).await).await {
        Ok(mut node) => {
            let error = timeout(LONG, node.failed()).await.expect("an end");
            assert!(cluster.control.status(&node.cluster_address().to_string()).await.is_err(), "it answers nothing");
            error
        }
        Err(error) => error,
    };
    assert!(matches!(error, Error::Outdated(_)), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_does_not_start_and_does_not_harm_its_original() {
    // Catches a copy that votes, also one of the same start, or gets in by many starts; and a copy that ends its original.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.stop(3).await;
    let [dir, tried, running] = ["3", "tried", "running"].map(|name| cluster.dir.path().join(name));
    copy(&dir, &tried);
    // Only node 1 learns of the next start.
    cluster.stop(2).await;
    cluster.start(3).await;
    cluster.talk("SET a 1 => +OK").await;
    fs::create_dir(&running).unwrap();
    fs::copy(dir.join("node.json"), running.join("node.json")).unwrap();
    cluster.nodes[&3].local().parts.logs.db().checkpoint(running.join("log")).unwrap();
    let told = |node| cluster.nodes[&node].local().parts.dialer.starts.introduction().unwrap();
    let copied = *told(3).history.last().unwrap();
    wait_for("a later tick", async || (told(1).others[&3] > copied).then_some(())).await;
    for dir in [tried, running] {
        for _ in 0..=KEPT {
            ends(&cluster, Settings { dir: dir.clone(), ..cluster.settings(3) }).await;
        }
    }
    cluster.talk("SET a 2 => +OK").await;
    cluster.nodes[&3].local().parts.dialer.starts.check().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_copy_that_knows_no_other_node_ends_when_one_meets_it() {
    // Catches a copy from before the first `add`, which leads its own group and serves clients.
    let mut cluster = Cluster::new(1, 1).await;
    cluster.stop(1).await;
    let [dir, old] = ["1", "old"].map(|name| cluster.dir.path().join(name));
    copy(&dir, &old);
    cluster.start(1).await;
    cluster.start(2).await;
    cluster.add(2, 1, None).await.unwrap();
    cluster.stop(1).await;
    ends(&cluster, Settings { dir: old, cluster_listen: cluster.address(1), ..cluster.settings(1) }).await;
}
