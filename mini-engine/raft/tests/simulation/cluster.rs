//! [`World`]: the nodes of a run, and all that its tasks share. What it draws comes from one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mini_engine::fs::FileSystem;
use mini_engine::{Db, Options};
use openraft::async_runtime::WatchReceiver;
use openraft::errors::RaftError;
use openraft::raft::VoteResponse;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::type_config::alias::{LogIdOf, VoteOf};
use openraft::{AsyncRuntime, Config, RaftMetrics, ServerState, SnapshotPolicy};
use openraft_mini_engine::{LogReader, Logs, State, StateMachine, without_threads};
use proof::Random;
use proof::disk::{Disk, MemFs};
use tokio::time::Instant;

use crate::history::History;
use crate::network::Network;
use crate::runtime::{Process, Sim};
use crate::storage::{Plant, PlantedLog, Registers};

openraft::declare_raft_types!(pub(crate) TypeConfig: D = u64, R = (), AsyncRuntime = Sim);

pub(crate) type LogId = LogIdOf<TypeConfig>;
pub(crate) type Vote = VoteOf<TypeConfig>;
pub(crate) type Machine = StateMachine<TypeConfig, Registers>;
pub(crate) type Raft = openraft::Raft<TypeConfig, Machine>;

pub(crate) const NODES: u64 = 5;

/// A node that runs.
#[derive(Clone)]
pub(crate) struct Node {
    world: Arc<World>,
    pub(crate) id: u64,
    pub(crate) raft: Raft,
    pub(crate) state: State,
    pub(crate) process: Arc<Process>,
    log: LogReader<TypeConfig>,
    logs: Logs,
    mem: MemFs,
}

impl Node {
    /// Compares a leader's message with the log, as a cluster must. Only a node that has lost something sends one that contradicts it.
    pub(crate) fn check(&self, vote: &Vote, log_ids: impl IntoIterator<Item = LogId>) -> io::Result<()> {
        if self.world.plant == Some(Plant::PutBackUnchecked) {
            return Ok(());
        }
        let checked = self.log.check(vote, log_ids);
        checked.inspect_err(|error| self.world.history().fail(format!("node {} refuses: {error}", self.id)))
    }

    /// Checks the answer to a candidate. A directory that was put back goes back behind its votes too, and is to be found in other ways.
    pub(crate) async fn answer(
        &self,
        answer: impl Future<Output = Result<VoteResponse<TypeConfig>, RaftError<TypeConfig>>>,
        is_vote: bool,
    ) -> io::Result<VoteResponse<TypeConfig>> {
        let granted = self.world.history().granted(self.id);
        let answer = answer.await.map_err(io::Error::other)?;
        if !self.world.plant.is_some_and(Plant::puts_back) {
            self.world.history().voted(self.id, granted, answer.vote, is_vote && answer.vote_granted);
        }
        Ok(answer)
    }

    pub(crate) fn metrics(&self) -> RaftMetrics<TypeConfig> {
        self.raft.metrics().borrow_watched().clone()
    }

    pub(crate) fn leads(&self) -> bool {
        self.metrics().state == ServerState::Leader
    }

    /// The disk, once the threads of the databases are idle. Its directories are synced, because their changes by threads have no fixed order.
    pub(crate) fn disk(&self) -> Disk {
        let is_idle = |db: &Db| {
            let metrics = db.metrics();
            metrics.immutable_memtables + metrics.flushes_running + metrics.logs_being_made == 0
                && metrics.compactions_running == 0
                && !metrics.compaction_due
        };
        while !is_idle(self.logs.db()) || !is_idle(&self.state.db()) {
            std::thread::yield_now();
        }
        let mut dirs = vec![PathBuf::from("/")];
        while let Some(dir) = dirs.pop() {
            if let Ok(names) = self.mem.read_dir(&dir) {
                self.mem.sync_dir(&dir).expect("a directory");
                dirs.extend(names.iter().map(|name| dir.join(name)));
            }
        }
        self.mem.disk()
    }
}

pub(crate) struct World {
    random: Mutex<Random>,
    pub(crate) begun: Instant,
    /// The steps after which the recovery begins.
    pub(crate) steps: u64,
    pub(crate) plant: Option<Plant>,
    /// Runs clients, messages and faults.
    pub(crate) outside: Arc<Process>,
    pub(crate) nodes: Mutex<BTreeMap<u64, Node>>,
    /// The disks of the nodes that do not run.
    pub(crate) down: Mutex<BTreeMap<u64, Disk>>,
    /// The links that are cut, each in one direction.
    pub(crate) cuts: Mutex<BTreeSet<(u64, u64)>>,
    pub(crate) is_slow: AtomicBool,
    history: Mutex<History>,
}

impl World {
    pub(crate) fn new(seed: u64, steps: u64, plant: Option<Plant>) -> Arc<Self> {
        Arc::new(Self {
            random: Mutex::new(Random(seed)),
            begun: Instant::now(),
            steps,
            plant,
            outside: Process::current(),
            nodes: Mutex::default(),
            down: Mutex::new((1..=NODES).map(|id| (id, Disk::default())).collect()),
            cuts: Mutex::default(),
            is_slow: AtomicBool::new(false),
            history: Mutex::default(),
        })
    }

    pub(crate) fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap()
    }

    pub(crate) fn below(&self, limit: u64) -> u64 {
        self.random.lock().unwrap().below(limit)
    }

    pub(crate) fn note(&self, kind: &'static str, event: String) {
        self.history().note(self.begun.elapsed(), kind, event);
    }

    pub(crate) fn node(&self, id: u64) -> Option<Node> {
        self.nodes.lock().unwrap().get(&id).cloned()
    }

    pub(crate) fn running(&self) -> Vec<Node> {
        self.nodes.lock().unwrap().values().cloned().collect()
    }

    pub(crate) async fn pause(&self, least: u64, most: u64) {
        Sim::sleep(Duration::from_millis(least + self.below(most - least))).await;
    }

    /// Starts a node, unless it runs.
    pub(crate) async fn start(self: &Arc<Self>, id: u64) {
        let Some(disk) = self.down.lock().unwrap().remove(&id) else { return };
        self.note("start", format!("node {id}"));
        match self.try_start(id, MemFs::on(disk)).await {
            Ok(node) => drop(self.nodes.lock().unwrap().insert(id, node)),
            Err(error) => self.history().fail(format!("node {id} does not start: {error}")),
        }
    }

    async fn try_start(self: &Arc<Self>, id: u64, mem: MemFs) -> io::Result<Node> {
        let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
        let options = || Options::default().memtable_bytes(1 << 20).table_file_bytes(64 << 10);
        let open = || -> io::Result<_> {
            let logs = Logs::open_with("/node/log", options(), Arc::clone(&fs))?;
            Ok((logs, Machine::open_with("/node/state", Registers(Arc::clone(self), id), options(), fs)?))
        };
        let process = Process::new(self.below(u64::MAX));
        let disk = Arc::clone(&process);
        let (logs, mut machine) = without_threads(move |step| drop(disk.call_disk(step)), open)?;
        if self.plant == Some(Plant::LyingDisk) {
            mem.ignore_syncs();
        }
        let (mut log, state) = (logs.group(0)?, machine.state());
        let reader = log.get_log_reader().await;
        if self.plant != Some(Plant::PutBackUnchecked) {
            log.settle(machine.applied_state().await?.0)?;
        }
        let config = Config {
            heartbeat_interval: 150,
            election_timeout_min: 400,
            election_timeout_max: 800,
            snapshot_policy: SnapshotPolicy::LogsSinceLast(60),
            replication_lag_threshold: 30,
            max_in_snapshot_log_to_keep: 10,
            install_snapshot_timeout: 5000,
            enable_pre_vote: Some(true),
            enable_leader_restore: Some(false),
            // Otherwise a leader panics when a follower has lost entries, before another leader contradicts what is committed.
            allow_log_reversion: self.plant.map(|_| true),
            ..Config::default()
        };
        let config = Arc::new(config.validate().map_err(io::Error::other)?);
        let raft = Raft::new(id, config, Network(Arc::clone(self), id), PlantedLog(log, self.plant), machine);
        let raft = process.spawn(raft).await.map_err(io::Error::other)?.map_err(io::Error::other)?;
        Ok(Node { world: Arc::clone(self), id, raft, state, process, log: reader, logs, mem })
    }

    /// Ends a node at once, if it runs.
    pub(crate) fn kill(&self, id: u64, is_power_cut: bool) {
        let Some(node) = self.nodes.lock().unwrap().remove(&id) else { return };
        self.note(if is_power_cut { "power cut" } else { "kill" }, format!("node {id}"));
        let disk = node.disk();
        node.process.kill();
        let left = if is_power_cut { disk.after_power_cut(self.below(u64::MAX)).0 } else { disk };
        self.down.lock().unwrap().insert(id, left);
    }
}
