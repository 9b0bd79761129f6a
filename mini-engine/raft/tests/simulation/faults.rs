//! A run: clients, and faults at random times until there were enough steps, then a recovery, after which all nodes must agree.

use std::collections::{BTreeMap, BTreeSet};
use std::mem::take;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use openraft::{AsyncRuntime, BasicNode, ReadPolicy};
use proof::disk::Disk;

use crate::cluster::{NODES, Node, World};
use crate::history::{History, REGISTERS};
use crate::runtime::{Sim, simulate};
use crate::storage::{Plant, stored};

const CLIENTS: u64 = 4;
/// The longest operation of a client.
const OPERATION: Duration = Duration::from_secs(5);
/// Longer than elections and snapshots take once all faults have ended.
const RECOVERED: Duration = Duration::from_secs(300);

/// A debug assertion of openraft 0.10.0-alpha.37, for a snapshot that ends before appended entries that are not known to be committed. The node restarts.
const KNOWN_PANIC: &str = "expect submitted:";

/// A run with at least `steps` messages, operations of clients, and faults.
pub(crate) fn run(seed: u64, steps: u64, plant: Option<Plant>) -> History {
    simulate(seed, async move {
        let world = World::new(seed, steps, plant);
        world.run().await;
        take(&mut *world.history())
    })
}

impl World {
    async fn run(self: &Arc<Self>) {
        self.start_all().await;
        let Some(first) = self.node(1) else { return };
        let member = |id: u64| (id, BasicNode::new(format!("node {id}")));
        first.raft.initialize(BTreeMap::from([1, 2, 3].map(member))).await.unwrap();
        for _ in 0..CLIENTS {
            self.outside.spawn(Arc::clone(self).client());
        }
        for id in 4..=NODES {
            self.until(async |leader| leader.raft.add_learner(id, member(id).1, false).await.is_ok()).await;
        }
        let mut copies = BTreeMap::new();
        while self.goes_on() && !self.has_failed().await {
            self.pause(100, 3000).await;
            self.fault(&mut copies).await;
        }
        if !self.has_failed().await {
            self.recover().await;
        }
        (1..=NODES).for_each(|id| self.kill(id, false));
    }

    fn goes_on(&self) -> bool {
        self.history().steps < self.steps
    }

    async fn client(self: Arc<Self>) {
        while self.goes_on() {
            self.pause(1, 400).await;
            let leaders: Vec<Node> = self.running().into_iter().filter(Node::leads).collect();
            if leaders.is_empty() {
                continue;
            }
            let node = &leaders[self.below(leaders.len() as u64) as usize];
            let register = self.below(REGISTERS);
            if self.below(2) == 0 {
                self.write(node, register).await;
            } else {
                self.read(node, register).await;
            }
        }
    }

    /// Writes a new value. Returns whether that was acknowledged.
    async fn write(&self, node: &Node, register: u64) -> bool {
        let value = self.history().write_begins(register);
        let written = Sim::timeout(OPERATION, node.raft.client_write(value)).await;
        let Ok(Ok(response)) = written else { return false };
        self.note("write", format!("{value} to {register} by node {} at {}", node.id, response.log_id));
        self.history().write_ends(value, response.log_id);
        true
    }

    async fn read(&self, node: &Node, register: u64) {
        let began = self.history().ended(register);
        let current = Sim::timeout(OPERATION, node.raft.ensure_linearizable(ReadPolicy::ReadIndex)).await;
        if let Ok(Ok(_)) = current {
            let found = stored(&node.state.db(), register);
            self.note("read", format!("{register} by node {}: {found:?}", node.id));
            self.history().read_ends(node.id, register, began, found);
        }
    }

    /// Whether a rule was broken, or a node has ended. Restarts the nodes with the known panic.
    async fn has_failed(self: &Arc<Self>) -> bool {
        for node in self.running() {
            let panicked = node.process.state().panicked.clone();
            if panicked.as_ref().is_some_and(|said| said.starts_with(KNOWN_PANIC)) {
                self.note("openraft's assertion", format!("node {}", node.id));
                self.kill(node.id, false);
                self.start(node.id).await;
            } else if let Some(said) = panicked {
                self.history().fail(format!("a task of node {} has panicked: {said}", node.id));
            } else if let Err(error) = node.metrics().running_state {
                self.history().fail(format!("node {} has ended: {error}", node.id));
            }
        }
        self.history().failure.is_some()
    }

    async fn fault(self: &Arc<Self>, copies: &mut BTreeMap<u64, Disk>) {
        for id in 1..=NODES {
            if self.below(2) == 0 {
                self.start(id).await;
            }
        }
        if self.below(3) == 0 {
            self.heal();
        }
        let id = 1 + self.below(NODES);
        match self.below(12) {
            0 => self.kill(id, false),
            1 => self.kill(id, true),
            2 => {
                self.kill(id, true);
                self.start(id).await;
            }
            3 => (1..=NODES).for_each(|id| self.kill(id, true)),
            4 => {
                self.note("pause", format!("node {id}"));
                self.node(id).iter().for_each(|node| node.process.state().is_paused = true);
            }
            5 => self.cut(|from, _| from == id),
            6 => self.cut(|_, to| to == id),
            7 => self.cut(|from, to| (from < 3) != (to < 3)),
            8 => self.is_slow.store(true, Relaxed),
            9 => self.change_members(),
            10 if self.plant.is_some_and(Plant::puts_back) => {
                if let Some(copy) = copies.get(&id) {
                    self.note("put back", format!("node {id}"));
                    self.kill(id, false);
                    self.down.lock().unwrap().insert(id, copy.clone());
                }
            }
            _ => drop(self.node(id).map(|node| copies.insert(id, node.disk()))),
        }
    }

    fn cut(&self, is_cut: impl Fn(u64, u64) -> bool) {
        let mut cuts = self.cuts.lock().unwrap();
        let links = (1..=NODES).flat_map(|from| (1..=NODES).map(move |to| (from, to)));
        cuts.extend(links.filter(|&(from, to)| is_cut(from, to)));
        self.note("cut", format!("{cuts:?}"));
    }

    fn heal(&self) {
        self.note("heal", String::new());
        self.cuts.lock().unwrap().clear();
        self.is_slow.store(false, Relaxed);
        self.running().iter().for_each(|node| node.process.state().is_paused = false);
    }

    /// Proposes other voters, at least three.
    fn change_members(&self) {
        let removed = [self.below(NODES), self.below(NODES)];
        let voters: BTreeSet<u64> = (0..NODES).filter(|id| !removed.contains(id)).map(|id| id + 1).collect();
        let Some(leader) = self.running().into_iter().find(Node::leads) else { return };
        self.note("members", format!("{voters:?}"));
        self.outside.spawn(async move {
            Sim::timeout(2 * OPERATION, leader.raft.change_membership(voters, true)).await.ok();
        });
    }

    async fn start_all(self: &Arc<Self>) {
        for id in 1..=NODES {
            self.start(id).await;
        }
    }

    /// Tries with a leader until that succeeds, or takes too long.
    async fn until(self: &Arc<Self>, attempt: impl AsyncFn(&Node) -> bool) {
        let limit = self.begun.elapsed() + RECOVERED;
        while self.begun.elapsed() < limit {
            let leader = self.running().into_iter().find(Node::leads);
            let is_done = if let Some(leader) = leader { attempt(&leader).await } else { false };
            if is_done || self.has_failed().await {
                return;
            }
            self.pause(50, 100).await;
        }
        self.history().fail(format!("no progress for {RECOVERED:?} without faults"));
    }

    async fn recover(self: &Arc<Self>) {
        self.heal();
        self.start_all().await;
        self.until(async |leader| self.write(leader, 0).await).await;
        self.until(async |_| {
            let last = self.history().last_index();
            self.running().iter().all(|node| node.metrics().last_applied.map_or(0, |last| last.index) == last)
        })
        .await;
        for node in self.running() {
            let found = |register| Some((register, stored(&node.state.db(), register)?));
            self.history().ends_with(node.id, &(0..REGISTERS).filter_map(found).collect());
        }
    }
}
