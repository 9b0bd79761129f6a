//! [`World`]: nodes, clients and faults, all drawn from one seed.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mini_engine::fs::FileSystem;
use mini_engine::{Db, Options};
use openraft::async_runtime::WatchReceiver;
use openraft::raft::VoteResponse;
use openraft::storage::{RaftLogStorage, RaftStateMachine};
use openraft::type_config::alias::{LogIdOf, VoteOf};
use openraft::{AsyncRuntime, Config, ReadPolicy, ServerState, SnapshotPolicy};
use openraft_mini_engine::{LogReader, Logs, State, StateMachine, without_threads};
use proof::Random;
use proof::disk::{Disk, MemFs};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::history::{History, REGISTERS};
use crate::network::Network;
use crate::runtime::{Process, Sim};
use crate::storage::{Plant, PlantedLog, Registers, value};

openraft::declare_raft_types!(pub(crate) TypeConfig: D = Write, R = (), AsyncRuntime = Sim);

pub(crate) type LogId = LogIdOf<TypeConfig>;
pub(crate) type Vote = VoteOf<TypeConfig>;
pub(crate) type Machine = StateMachine<TypeConfig, Registers>;
pub(crate) type Raft = openraft::Raft<TypeConfig, Machine>;

pub(crate) const NODES: u64 = 5;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Write {
    pub(crate) register: u64,
    pub(crate) value: u64,
}

impl fmt::Display for Write {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.register, self.value)
    }
}

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

    /// Notes the answer to a candidate. A directory that was put back goes back behind its votes too, and is to be found in other ways.
    pub(crate) fn answers(&self, answer: &VoteResponse<TypeConfig>, is_vote: bool) {
        if !self.world.plant.is_some_and(Plant::puts_back) {
            self.world.history().voted(self.id, answer.vote, is_vote && answer.vote_granted);
        }
    }

    pub(crate) fn leads(&self) -> bool {
        self.raft.metrics().borrow_watched().state == ServerState::Leader
    }

    /// The disk, once the threads of the databases are idle. Its directories are synced, because their changes by threads have no fixed order.
    fn disk(&self) -> Disk {
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

/// All that the tasks of a run share.
pub(crate) struct World {
    pub(crate) random: Mutex<Random>,
    pub(crate) begun: Instant,
    pub(crate) nodes: Mutex<BTreeMap<u64, Node>>,
    /// The links that are cut, each in one direction.
    pub(crate) cuts: Mutex<BTreeSet<(u64, u64)>>,
    pub(crate) is_slow: Mutex<bool>,
    pub(crate) history: Mutex<History>,
    pub(crate) plant: Option<Plant>,
}

impl World {
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

    pub(crate) async fn start(self: &Arc<Self>, id: u64, disk: Disk) {
        self.note("start", format!("node {id}"));
        let started = self.try_start(id, disk).await;
        let started = started.map(|node| self.nodes.lock().unwrap().insert(id, node));
        if let Err(error) = started {
            self.history().fail(format!("node {id} does not start: {error}"));
        }
    }

    async fn try_start(self: &Arc<Self>, id: u64, disk: Disk) -> io::Result<Node> {
        let (mem, process) = (MemFs::on(disk), Process::new(self.below(u64::MAX)));
        if self.plant == Some(Plant::LyingDisk) {
            mem.ignore_syncs();
        }
        let fs: Arc<dyn FileSystem> = Arc::new(mem.clone());
        let options = || Options::default().memtable_bytes(1 << 20).table_file_bytes(64 << 10);
        let of_steps = Arc::clone(&process);
        let open = || -> io::Result<_> {
            let logs = Logs::open_with("/node/log", options(), Arc::clone(&fs))?;
            let machine =
                Machine::open_with("/node/state", Registers(Arc::clone(self), id), options(), Arc::clone(&fs))?;
            Ok((logs, machine))
        };
        let (logs, mut machine) = without_threads(move |step| of_steps.run_step(step), open)?;
        let (mut log, state) = (logs.group(0)?, machine.state());
        let reader = log.get_log_reader().await;
        if self.plant != Some(Plant::PutBackUnchecked) {
            log.settle(machine.applied_state().await?.0)?;
        }
        let log = PlantedLog { logs: logs.clone(), log: Some(log), plant: self.plant };
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
            allow_log_reversion: self.plant.map(Plant::puts_back),
            ..Config::default()
        };
        let config = Arc::new(config.validate().map_err(io::Error::other)?);
        let network = Network(Arc::clone(self), id);
        let raft = process.spawn(async move { Raft::new(id, config, network, log, machine).await }).await?;
        let raft = raft.map_err(io::Error::other)?;
        Ok(Node { world: Arc::clone(self), id, raft, state, process, log: reader, logs, mem })
    }

    /// A copy of the disk of a node.
    pub(crate) fn disk(&self, id: u64) -> Option<Disk> {
        self.node(id).map(|node| node.disk())
    }

    /// Ends a node at once, and returns its disk.
    pub(crate) async fn kill(&self, id: u64, is_power_cut: bool) -> Option<Disk> {
        let disk = self.disk(id)?;
        let node = self.nodes.lock().unwrap().remove(&id)?;
        self.note(if is_power_cut { "power cut" } else { "kill" }, format!("node {id}"));
        node.process.kill().await;
        Some(if is_power_cut { disk.after_power_cut(self.below(u64::MAX)).0 } else { disk })
    }
}

pub(crate) async fn client(world: Arc<World>, number: u64, clients: u64, is_over: Arc<Mutex<bool>>) {
    let mut last = number;
    loop {
        world.pause(1, 400).await;
        if *is_over.lock().unwrap() {
            return;
        }
        let leaders: Vec<Node> = world.running().into_iter().filter(Node::leads).collect();
        if leaders.is_empty() {
            continue;
        }
        let node = &leaders[world.below(leaders.len() as u64) as usize];
        let register = world.below(REGISTERS);
        if world.below(2) == 0 {
            last += clients;
            write(&world, node, Write { register, value: last }).await;
        } else {
            read(&world, node, register).await;
        }
    }
}

pub(crate) async fn write(world: &World, node: &Node, write: Write) -> bool {
    world.history().write_begins(&write);
    let written = Sim::timeout(Duration::from_secs(5), node.raft.client_write(write.clone())).await;
    match written {
        Ok(Ok(response)) => {
            world.note("write", format!("{write} by node {} at {}", node.id, response.log_id));
            world.history().write_ends(&write, response.log_id);
            true
        }
        _ => false,
    }
}

async fn read(world: &World, node: &Node, register: u64) {
    let began = world.history().ended(register);
    let current = node.raft.ensure_linearizable(ReadPolicy::ReadIndex);
    if let Ok(Ok(_)) = Sim::timeout(Duration::from_secs(5), current).await {
        let found = value(&node.state.db(), register);
        world.note("read", format!("{register} by node {}: {found:?}", node.id));
        world.history().read_ends(node.id, register, began, found);
    }
}
