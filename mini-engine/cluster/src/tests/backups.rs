//! Backups, and new clusters of them or of what is left of a cluster.

use std::fs;
use std::path::{Path, PathBuf};
use std::slice::from_ref;

use mini_engine::{Db, incomplete_directory};

use super::support::{Cluster, wait_for};
use crate::{Error, Recovered, recover};

const KEYS: u32 = 40;

async fn write_all(cluster: &Cluster, value: &str) {
    for n in 0..KEYS {
        assert_eq!(cluster.ask(&format!("SET key{n} {n}{value}")).await, "+OK");
    }
}

async fn read_all(cluster: &Cluster, value: &str) {
    for n in 0..KEYS {
        assert_eq!(cluster.ask(&format!("GET key{n}")).await, format!("${n}{value}"));
    }
}

/// Every file below `dir`, with its bytes, except locks.
fn contents(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        match entry.is_dir() {
            true => found.extend(contents(&entry)),
            false if entry.ends_with("LOCK") => {}
            false => found.push((entry.clone(), fs::read(&entry).unwrap())),
        }
    }
    found.sort_unstable();
    found
}

fn refused<T>(result: crate::Result<T>, expected: &str) {
    let error = result.err().expect("an error").to_string();
    assert!(error.contains(expected), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_becomes_a_new_cluster_that_grows_and_that_old_nodes_cannot_join() {
    // Catches a backup that lacks a group or an acknowledged write, new members without the data, and an old node that is let in.
    let mut cluster = Cluster::new(3, 2).await;
    write_all(&cluster, "old").await;
    let (dir, mut copied) = (cluster.dir.path().join("backup"), Vec::new());
    let backup = cluster.control.backup(&cluster.address(2), &dir, |group, _| copied.push(group)).await.unwrap();
    assert_eq!((copied, backup.cluster), (vec![0, 1], cluster.groups(1).identity.cluster));
    refused(cluster.control.backup(&cluster.address(2), &dir, |_, _| ()).await, "found that it exists");
    write_all(&cluster, "new").await;
    let mut keys = 0;
    for (group, found) in &backup.groups {
        let db = Db::builder(dir.join(format!("state-{group}/state-000001"))).read_only(true).open().unwrap();
        drop(db.verify().unwrap().into_result().unwrap());
        keys += db.keyspace("0").unwrap().iter().count();
        assert!(found.last.index > 0 && cluster.leader(*group).await > 0);
    }
    assert_eq!(keys, KEYS as usize);

    for node in 1..=3 {
        cluster.stop(node).await;
    }
    let recovered = recover(&[dir], &cluster.dir.path().join("4")).await.unwrap();
    assert!(recovered.cluster != backup.cluster && recovered.groups.values().all(|group| group.last.index > 0));
    for node in [4, 5, 6] {
        cluster.start(node).await;
    }
    let four = cluster.address(4);
    for node in [5, 6] {
        cluster.control.add(&cluster.address(node), &four, None, |_, _| ()).await.unwrap();
    }
    read_all(&cluster, "old").await;
    let status = cluster.control.status(&four).await.unwrap();
    assert_eq!((status.cluster, status.nodes.len()), (recovered.cluster, 3));
    let places = cluster.groups(5).places();
    let own = (1, &cluster.nodes[&4].local().parts.member);
    assert!((0..2).all(|group| places.get(group).members().next() == Some(own)), "{places:?}");

    cluster.start(1).await;
    refused(cluster.control.add(&cluster.address(1), &four, None, |_, _| ()).await, "is a node of cluster");
    let dialer = &cluster.nodes[&1].local().parts.dialer;
    let error =
        dialer.connect(&four, Some((backup.cluster, 1))).await.err().expect("it is another cluster").to_string();
    assert!(error.contains(&format!("expected node 1 of cluster {:016x}", backup.cluster)), "{error}");
    cluster.stop(1).await;
    // Two of three nodes are a majority, so the new nodes vote, and have everything.
    cluster.stop(4).await;
    read_all(&cluster, "old").await;
    write_all(&cluster, "newer").await;
}

/// Recovers when the stopped nodes have given their directories free.
async fn recover_stopped(from: &[PathBuf], dir: &Path) -> crate::Result<Recovered> {
    wait_for("a free directory", async || match recover(from, dir).await {
        Err(Error::Identity { reason, .. }) if reason.contains("a node runs here") => None,
        done => Some(done),
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_nodes_become_a_new_cluster_with_everything_in_their_logs() {
    // Catches a recovery that drops acknowledged log entries that were not applied, that takes the older of two copies, or that changes a copy.
    let mut cluster = Cluster::new(3, 1).await;
    write_all(&cluster, "old").await;
    let late = cluster.leader(0).await;
    let early = late % 3 + 1;
    cluster.stop(early).await;
    write_all(&cluster, "new").await;
    assert_eq!(cluster.ask("SET lease mine EX 9999").await, "+OK");
    for node in (1..=3).filter(|node| *node != early) {
        cluster.stop(node).await;
    }
    let [late, early] = [late, early].map(|node| cluster.dir.path().join(node.to_string()));
    let from = [late.clone(), early.clone()];
    let (four, again) = (cluster.dir.path().join("4"), cluster.dir.path().join("again"));
    recover_stopped(&from, &again).await.unwrap();
    // As after a power cut: the state has lost what was not flushed.
    let state = late.join("state-0");
    fs::remove_dir_all(&state).unwrap();
    fs::create_dir(&state).unwrap();
    Db::open(state.join("state-000000")).unwrap().close().unwrap();
    let before = from.each_ref().map(|dir| contents(dir));
    let recovered = recover(&from, &four).await.unwrap();
    assert_eq!(recovered.groups[&0].from, late);
    assert_eq!(before, from.each_ref().map(|dir| contents(dir)));

    cluster.start(4).await;
    read_all(&cluster, "new").await;
    assert!(cluster.ask("TTL lease").await.starts_with(":9"));
    write_all(&cluster, "newer").await;
    cluster.stop(4).await;
    cluster.start(4).await;
    read_all(&cluster, "newer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_cannot_be_recovered_from_is_named() {
    // Catches a recovery beside a running node, of two clusters, without a group, or of half a backup.
    let mut cluster = Cluster::spread(2, 2, 1).await;
    write_all(&cluster, "").await;
    let [one, two, new, backup, other] = ["1", "2", "3", "backup", "other"].map(|name| cluster.dir.path().join(name));
    refused(recover(from_ref(&one), &new).await, "a node runs here");
    cluster.control.backup(&cluster.address(1), &backup, |_, _| ()).await.unwrap();
    cluster.stop(1).await;
    cluster.stop(2).await;
    refused(recover_stopped(from_ref(&one), &new).await, "expected group 1, found no data of it");
    assert!(!new.exists() && !incomplete_directory(&new).exists());
    recover_stopped(&[one, two], &new).await.unwrap();
    recover(from_ref(&backup), &other).await.unwrap();
    refused(recover(&[backup.clone(), other.clone()], &cluster.dir.path().join("more")).await, "expected cluster");
    refused(recover(&[cluster.dir.path().to_owned()], &backup).await, "expected backup.json or node.json");
    cluster.start(3).await;
    read_all(&cluster, "").await;
    // As an interrupted backup leaves it.
    let half = cluster.dir.path().join("half.incomplete");
    fs::remove_file(backup.join("backup.json")).unwrap();
    fs::rename(&backup, &half).unwrap();
    refused(recover(from_ref(&half), &backup).await, "found no file, although there is data");
    let half_made = cluster.control.backup(&cluster.address(3), &cluster.dir.path().join("half"), |_, _| ()).await;
    refused(half_made, "was interrupted: then delete it");
    assert!(half.join("state-0").exists());
}
