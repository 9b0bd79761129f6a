//! Backups, and new clusters of them or of what is left of a cluster.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::slice::from_ref;
use std::sync::Arc;

use mini_engine::fs::StdFs;
use mini_engine::incomplete_directory;

use openraft::LogId;
use openraft::entry::RaftEntry;
use openraft::storage::{IOFlushed, RaftLogStorage};
use openraft::type_config::alias::{EntryOf, LogIdOf};
use openraft_mini_engine::{LogStore, Logs};

use super::support::{Cluster, once_free, refused};
use crate::application::open_state;
use crate::checks::Checks;
use crate::network::{Dialer, Link, fetch};
use crate::types::{TypeConfig, Vote};
use crate::{Member, Position, Security};

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

pub(super) fn copy(from: &Path, to: &Path) {
    for (file, bytes) in contents(from) {
        let file = to.join(file.strip_prefix(from).unwrap());
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, bytes).unwrap();
    }
}

/// Copies the directory of a node, and changes the log of its first group, whose last entry is given, in the copy.
async fn copy_changed(
    from: &Path,
    to: &Path,
    change: impl AsyncFnOnce(&mut LogStore<TypeConfig>, LogIdOf<TypeConfig>) -> std::io::Result<()>,
) {
    copy(from, to);
    let logs = Logs::open(to.join("log")).unwrap();
    let mut log = logs.group::<TypeConfig>(0).unwrap();
    let last = log.get_log_state().await.unwrap().last_log_id.unwrap();
    change(&mut log, last).await.unwrap();
    drop(log);
    logs.close().unwrap();
}

/// Makes a new cluster of copies. Its first node is that of this number, which has not run yet. Returns the number of the cluster.
async fn recover_as(
    cluster: &mut Cluster,
    node: u64,
    from: &[PathBuf],
    progress: impl FnMut(u32, &Path, Position),
) -> u64 {
    cluster.start(node).await;
    let member = cluster.nodes[&node].local().parts.member.clone();
    cluster.stop(node).await;
    let dir = cluster.dir.path().join(node.to_string());
    fs::remove_dir_all(&dir).unwrap();
    crate::recover(from, &dir, member, progress).await.unwrap()
}

/// Starts the first node of a new cluster, and adds two more.
async fn grow(cluster: &mut Cluster, first: u64) {
    cluster.start(first).await;
    for node in [first + 1, first + 2] {
        cluster.start(node).await;
        cluster.add(node, first, None).await.unwrap();
    }
}

/// Makes a node that is never started, of copies whose nodes may just have stopped. Returns the directory of the copy of each group.
async fn recover(from: &[PathBuf], dir: &Path) -> crate::Result<Vec<PathBuf>> {
    once_free(async || {
        let (member, mut used) = (Member { cluster: String::new(), clients: String::new() }, Vec::new());
        crate::recover(from, dir, member, |_, from, _| used.push(from.to_owned())).await.map(|_| used)
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_backup_becomes_a_new_cluster_that_grows_and_that_old_nodes_cannot_join() {
    // Catches a backup that lacks a group or an acknowledged write, new members without the data, and an old node that is let in.
    let mut cluster = Cluster::new(3, 2).await;
    cluster.write_all("old").await;
    let (dir, mut copied) = (cluster.dir.path().join("backup"), Vec::new());
    let progress = |group, last: Position| copied.push((group, last));
    let old = cluster.control.backup(&cluster.address(2), &dir, progress).await.unwrap();
    assert_eq!(old, cluster.groups(1).identity.cluster);
    assert!(copied.iter().map(|(group, _)| *group).eq([0, 1]) && copied.iter().all(|(_, last)| last.index > 0));
    refused(cluster.control.backup(&cluster.address(2), &dir, |_, _| ()).await, "found that it exists");
    cluster.write_all("new").await;
    for node in 1..=3 {
        cluster.stop(node).await;
    }
    let mut recovered = Vec::new();
    let new = recover_as(&mut cluster, 4, &[dir], |group, _, last| recovered.push((group, last))).await;
    assert!(new != old && recovered == copied);
    grow(&mut cluster, 4).await;
    cluster.read_all("old").await;
    let status = cluster.status(4).await;
    assert_eq!((status.cluster, status.nodes.len()), (new, 3));

    cluster.start(1).await;
    refused(cluster.add(1, 4, None).await, "is a node of cluster");
    let dialer = &cluster.nodes[&1].local().parts.dialer;
    let error = dialer.connect(&cluster.address(4), Some((old, 1))).await.err().expect("another cluster").to_string();
    assert!(error.contains(&format!("expected node 1 of cluster {old:016x}")), "{error}");
    cluster.stop(1).await;
    // Two of three nodes are a majority, so the new nodes vote, and have everything.
    cluster.stop(4).await;
    cluster.read_all("old").await;
    cluster.write_all("newer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_nodes_become_a_new_cluster_with_everything_in_their_logs() {
    // Catches a recovery that drops log entries that were not applied, takes the older of two copies, one that contradicts the other, or one with a hole
    // in it, changes a copy, or leaves the old members in the log.
    let mut cluster = Cluster::new(3, 1).await;
    cluster.write_all("old").await;
    let [one, two, saved, later, hole, again, new] =
        ["1", "2", "saved", "later", "hole", "again", "new"].map(|name| cluster.dir.path().join(name));
    cluster.stop(1).await;
    copy(&one.join("state-0"), &saved);
    cluster.start(1).await;
    cluster.start(4).await;
    cluster.add(4, 1, None).await.unwrap();
    cluster.stop(2).await;
    cluster.write_all("new").await;
    cluster.talk("SET lease mine EX 9999 => +OK").await;
    cluster.wait_for_stale(1, "GET lease", "$mine").await;
    for node in [1, 3, 4] {
        cluster.stop(node).await;
    }
    let from = [one.clone(), two.clone()];
    assert_eq!(recover(&from, &again).await.unwrap(), from_ref(&one));
    copy_changed(&two, &later, async |log, last| {
        let vote = Vote::new_committed(last.leader_id.term + 9, 2);
        let entry = EntryOf::<TypeConfig>::new_blank(LogId::new(vote.leader_id, last.index + 1));
        log.append([entry], IOFlushed::noop()).await
    })
    .await;
    let error = recover(&[one.clone(), later.clone()], &new).await.unwrap_err().to_string();
    assert!([&one, &later].iter().all(|dir| error.contains(dir.to_str().unwrap())), "{error}");
    // As after a power cut: the state has lost what was not flushed.
    fs::remove_dir_all(one.join("state-0")).unwrap();
    copy(&saved, &one.join("state-0"));
    copy_changed(&one, &hole, async |log, last| log.purge(last).await).await;
    refused(recover(&[two, hole], &new).await, "which is not in the state");

    let before = from.each_ref().map(|dir| contents(dir));
    recover_as(&mut cluster, 5, &from, |_, from, _| assert_eq!(from, one)).await;
    assert_eq!(before, from.each_ref().map(|dir| contents(dir)));
    grow(&mut cluster, 5).await;
    cluster.stop(5).await;
    cluster.read_all("new").await;
    cluster.talk("TTL lease => :9..").await;
    cluster.write_all("newer").await;
    cluster.start(5).await;
    cluster.stop(6).await;
    cluster.read_all("newer").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_directory_that_cannot_be_recovered_from_is_named() {
    // Catches a recovery beside a running node, of two clusters, without a group, or of half a backup.
    let mut cluster = Cluster::spread(2, 2, 1).await;
    cluster.write_all("").await;
    let [one, two, new, backup, other] = ["1", "2", "3", "backup", "other"].map(|name| cluster.dir.path().join(name));
    let member = cluster.nodes[&1].local().parts.member.clone();
    refused(crate::recover(from_ref(&one), &new, member, |_, _, _| ()).await, "a node runs here");
    cluster.control.backup(&cluster.address(1), &backup, |_, _| ()).await.unwrap();
    cluster.stop(1).await;
    cluster.stop(2).await;
    refused(recover(from_ref(&one), &new).await, "expected group 1, found no data of it");
    assert!(!new.exists() && !incomplete_directory(&new).exists());
    recover(&[one, two], &new).await.unwrap();
    recover(from_ref(&backup), &other).await.unwrap();
    refused(recover(&[backup.clone(), other], &cluster.dir.path().join("more")).await, "expected cluster");
    refused(recover(&[cluster.dir.path().to_owned()], &backup).await, "expected backup.json or node.json");
    cluster.start(3).await;
    cluster.read_all("").await;
    let (description, other) = (backup.join("backup.json"), cluster.dir.path().join("more"));
    let text = fs::read_to_string(&description).unwrap();
    fs::write(&description, text.replace("\"index\": ", "\"index\": 1")).unwrap();
    refused(recover(from_ref(&backup), &other).await, "expected entries up to");
    // As an interrupted backup leaves it.
    let half = cluster.dir.path().join("half.incomplete");
    fs::remove_file(description).unwrap();
    fs::rename(&backup, &half).unwrap();
    refused(recover(from_ref(&half), &backup).await, "found no file, although there is data");
    let half_made = cluster.control.backup(&cluster.address(3), &cluster.dir.path().join("half"), |_, _| ()).await;
    refused(half_made, "was interrupted: then delete it");
    assert!(half.join("state-0").exists());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_to_store_a_backup_is_not_taken_for_one_of_the_network() {
    // Catches a backup that is repeated for half a minute because the disk here is full, and then names the leader as the reason.
    let cluster = Cluster::new(1, 1).await;
    let dir = cluster.dir.path().join("state");
    let (machine, ..) = open_state(&dir, Arc::new(StdFs), Checks::default()).unwrap();
    fs::write(dir.join("incoming-000000"), "in the way").unwrap();
    let link = Link::new(Arc::new(Dialer::new(&Security::default()).unwrap()), cluster.address(1), None);
    let fetched = fetch(&link, 0, machine.state()).await.unwrap();
    assert_eq!(fetched.expect("it leads").unwrap_err().kind(), ErrorKind::NotADirectory);
    assert!(fetch(&link, 0, machine.state()).await.unwrap().expect("it leads").is_ok());
}
