//! Three nodes in one process, on disks in memory: a node that was stopped gets a snapshot, and all are stopped and restarted.

#[path = "../../examples/three_nodes/network.rs"]
mod network;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mini_engine::fs::FileSystem;
use openraft::type_config::TypeConfigExt;
use openraft::{BasicNode, Config, SnapshotPolicy};
use openraft_mini_engine::{Logs, State};
use proof::disk::MemFs;

use self::network::Network;
use crate::snapshots::DIR;
use crate::support::{App, Machine, Request, TypeConfig, number, small};

type Raft = openraft::Raft<TypeConfig, Machine>;

/// Longer than any step takes on a busy machine.
const LONG: Option<Duration> = Some(Duration::from_secs(60));

/// Opens a database as soon as the tasks of a node that was stopped have dropped it.
async fn free<T>(mut open: impl FnMut() -> io::Result<T>) -> T {
    loop {
        match open() {
            Ok(opened) => return opened,
            Err(error) => assert!(error.to_string().contains("is locked"), "{error}"),
        }
        TypeConfig::sleep(Duration::from_millis(1)).await;
    }
}

/// Three nodes, each with a disk of its own.
#[derive(Default)]
struct Cluster {
    network: Network,
    disks: BTreeMap<u64, MemFs>,
}

impl Cluster {
    async fn start(&mut self, id: u64) {
        let fs: Arc<dyn FileSystem> = Arc::new(self.disks.entry(id).or_default().clone());
        let logs = free(|| Logs::open_with("/node/log", small(), Arc::clone(&fs))).await;
        let log = logs.group(0).unwrap();
        let machine = free(|| Machine::open_with(DIR, App, small(), Arc::clone(&fs))).await;
        let state = machine.state();
        let config =
            Config { snapshot_policy: SnapshotPolicy::Never, max_in_snapshot_log_to_keep: 0, ..Config::default() };
        let raft =
            Raft::new(id, Arc::new(config.validate().unwrap()), self.network.clone(), log, machine).await.unwrap();
        self.network.nodes.lock().unwrap().insert(id, (raft, state));
    }

    /// Stops a node without closing its databases.
    async fn stop(&mut self, id: u64) {
        let (raft, _) = self.network.nodes.lock().unwrap().remove(&id).unwrap();
        raft.shutdown().await.unwrap();
    }

    async fn start_all(&mut self) {
        for id in 1..=3 {
            self.start(id).await;
        }
    }

    async fn stop_all(&mut self) {
        for id in 1..=3 {
            self.stop(id).await;
        }
    }

    fn node(&self, id: u64) -> (Raft, State) {
        self.network.nodes.lock().unwrap()[&id].clone()
    }

    /// Proposes one count, and returns the new number. On a busy machine the leader may be deposed before the proposal, which is then repeated.
    async fn count(&self) -> u64 {
        loop {
            let (_, raft, _) = self.network.leader().await;
            match raft.client_write(Request::Count("count".into())).await {
                Ok(response) => return response.data,
                Err(error) => assert!(error.forward_to_leader().is_some(), "{error}"),
            }
        }
    }

    /// Purges the log of a node up to its last applied entry. Returns the index of the last purged entry.
    async fn purge(&self, id: u64) -> u64 {
        let (raft, _) = self.node(id);
        raft.trigger().snapshot().await.unwrap();
        let metrics = raft.wait(LONG).metrics(|metrics| metrics.snapshot.is_some(), "a snapshot").await.unwrap();
        let last = metrics.snapshot.unwrap();
        raft.trigger().purge_log(last.index).await.unwrap();
        raft.wait(LONG).metrics(|metrics| metrics.purged >= Some(last), "a purge").await.unwrap();
        last.index
    }
}

#[test]
fn a_node_that_was_away_gets_a_snapshot_and_all_go_on_after_a_stop() {
    // Catches a store that works alone but not under openraft: a snapshot that cannot be installed, a purged log that a node needs, a lost
    // membership.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build().unwrap();
    runtime.block_on(async {
        let mut cluster = Cluster::default();
        cluster.start_all().await;
        let members = BTreeMap::from([1, 2, 3].map(|id| (id, BasicNode::new(format!("node {id}")))));
        cluster.node(1).0.initialize(members).await.unwrap();
        let away = cluster.network.leader().await.0 % 3 + 1;
        cluster.stop(away).await;
        for expected in 1..=50 {
            assert_eq!(cluster.count().await, expected);
        }
        // Purges all nodes, so that the entries are missing whichever node leads.
        let mut last = 0;
        for id in (1..=3).filter(|id| *id != away) {
            last = cluster.purge(id).await.max(last);
        }

        cluster.start(away).await;
        let (raft, state) = cluster.node(away);
        raft.wait(LONG).applied_index_at_least(Some(last), "all entries").await.unwrap();
        assert_eq!(number(&state.db(), "count").unwrap(), 50);
        drop((raft, state));
        let installed = cluster.disks[&away].exists(&Path::new(DIR).join("state-000001")).unwrap();
        assert!(installed, "the entries before the snapshot are purged");

        cluster.stop_all().await;
        cluster.start_all().await;
        assert_eq!(cluster.count().await, 51);
        cluster.stop_all().await;
    });
}
