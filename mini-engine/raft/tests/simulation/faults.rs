//! A run: faults at random times until there were enough steps, then a recovery, after which all nodes must agree.

use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::async_runtime::WatchReceiver;
use openraft::{AsyncRuntime, BasicNode};
use proof::Random;
use proof::disk::Disk;
use tokio::time::Instant;

use crate::cluster::{NODES, Node, World, Write, client, write};
use crate::history::REGISTERS;
use crate::runtime::{Seeded, Sim};
use crate::storage::{Plant, value};

const CLIENTS: u64 = 4;
/// Longer than elections and snapshots take once all faults have ended.
const RECOVERED: Duration = Duration::from_secs(300);

/// A debug assertion of openraft 0.10.0-alpha.37, for a snapshot that ends before appended entries that are not known to be committed. The node restarts.
const KNOWN_PANIC: &str = "expect submitted:";

pub(crate) struct Outcome {
    pub(crate) failure: Option<String>,
    /// A hash of all events.
    pub(crate) trace: u64,
    pub(crate) steps: u64,
    pub(crate) time: Duration,
    pub(crate) counts: BTreeMap<&'static str, u64>,
}

/// A run with at least `steps` messages, operations of clients, and faults.
pub(crate) fn run(seed: u64, steps: u64, plant: Option<Plant>) -> Outcome {
    Sim.block_on(Seeded::scope(seed, async move {
        let world = Arc::new(World {
            random: Mutex::new(Random(seed)),
            begun: Instant::now(),
            nodes: Mutex::default(),
            cuts: Mutex::default(),
            is_slow: Mutex::default(),
            history: Mutex::default(),
            plant,
        });
        Faults { world: Arc::clone(&world), down: BTreeMap::new(), copies: BTreeMap::new() }.run(steps).await;
        let history = world.history();
        let (failure, trace) = (history.failure.clone(), history.trace.finish());
        Outcome { failure, trace, steps: history.steps, time: world.begun.elapsed(), counts: history.counts.clone() }
    }))
}

struct Faults {
    world: Arc<World>,
    /// The disks of the nodes that do not run.
    down: BTreeMap<u64, Disk>,
    /// Older copies of disks.
    copies: BTreeMap<u64, Disk>,
}

impl Faults {
    async fn run(mut self, steps: u64) {
        let world = Arc::clone(&self.world);
        for id in 1..=NODES {
            world.start(id, Disk::default()).await;
        }
        let Some(first) = world.node(1) else { return };
        let member = |id: u64| (id, BasicNode::new(format!("node {id}")));
        first.raft.initialize(BTreeMap::from([1, 2, 3].map(member))).await.unwrap();
        let is_over = Arc::new(Mutex::new(false));
        for number in 0..CLIENTS {
            Seeded::spawn(client(Arc::clone(&world), number, CLIENTS, Arc::clone(&is_over)));
        }
        for id in 4..=NODES {
            self.until(async |leader| leader.raft.add_learner(id, member(id).1, false).await.is_ok()).await;
        }
        while world.history().steps < steps && !self.has_failed() {
            world.pause(100, 3000).await;
            self.step().await;
        }
        *is_over.lock().unwrap() = true;
        if !self.has_failed() {
            self.recover().await;
        }
        for id in 1..=NODES {
            world.kill(id, false).await;
        }
    }

    fn has_failed(&self) -> bool {
        for node in self.world.running() {
            if let Err(error) = &node.raft.metrics().borrow_watched().running_state {
                self.world.history().fail(format!("node {} has ended: {error}", node.id));
            }
            if let Some(said) = node.process.panicked().filter(|said| !said.starts_with(KNOWN_PANIC)) {
                self.world.history().fail(format!("a task of node {} has panicked: {said}", node.id));
            }
        }
        self.world.history().failure.is_some()
    }

    async fn end_known_panics(&mut self) {
        for node in self.world.running() {
            if node.process.panicked().is_some_and(|said| said.starts_with(KNOWN_PANIC)) {
                self.world.note("openraft's assertion", format!("node {}", node.id));
                self.kill(node.id, false).await;
                self.restart(node.id).await;
            }
        }
    }

    async fn step(&mut self) {
        let world = Arc::clone(&self.world);
        self.end_known_panics().await;
        for id in self.down.keys().copied().collect::<Vec<_>>() {
            if world.below(2) == 0 {
                self.restart(id).await;
            }
        }
        if world.below(3) == 0 {
            self.heal();
        }
        let (id, all) = (1 + world.below(NODES), 1..=NODES);
        let others = (1..=NODES).filter(|other| *other != id);
        match world.below(12) {
            0 => self.kill(id, false).await,
            1 => self.kill(id, true).await,
            2 => {
                self.kill(id, true).await;
                self.restart(id).await;
            }
            3 => {
                for id in all {
                    self.kill(id, true).await;
                }
            }
            4 => {
                world.note("pause", format!("node {id}"));
                world.node(id).iter().for_each(|node| node.process.pause());
            }
            5 => self.cut(others.map(|other| (id, other))),
            6 => self.cut(others.map(|other| (other, id))),
            7 => self.cut(all.flat_map(|a| (1..=NODES).map(move |b| (a, b))).filter(|(a, b)| (a < &3) != (b < &3))),
            8 => *world.is_slow.lock().unwrap() = true,
            9 => self.change_members(),
            10 if world.plant.is_some_and(Plant::puts_back) => {
                if let Some(copy) = self.copies.get(&id).cloned() {
                    world.note("put back", format!("node {id}"));
                    world.kill(id, false).await;
                    self.down.insert(id, copy);
                }
            }
            _ => drop(world.disk(id).map(|disk| self.copies.insert(id, disk))),
        }
    }

    async fn kill(&mut self, id: u64, is_power_cut: bool) {
        let disk = self.world.kill(id, is_power_cut).await;
        disk.map(|disk| self.down.insert(id, disk));
    }

    async fn restart(&mut self, id: u64) {
        if let Some(disk) = self.down.remove(&id) {
            self.world.start(id, disk).await;
        }
    }

    fn cut(&self, links: impl Iterator<Item = (u64, u64)>) {
        let mut cuts = self.world.cuts.lock().unwrap();
        cuts.extend(links);
        self.world.note("cut", format!("{cuts:?}"));
    }

    fn heal(&self) {
        self.world.note("heal", String::new());
        self.world.cuts.lock().unwrap().clear();
        *self.world.is_slow.lock().unwrap() = false;
        self.world.running().iter().for_each(|node| node.process.resume());
    }

    /// Proposes other voters, at least three.
    fn change_members(&self) {
        let world = Arc::clone(&self.world);
        let mut voters: std::collections::BTreeSet<u64> = (1..=NODES).collect();
        for _ in 0..2 {
            voters.remove(&(1 + world.below(NODES)));
        }
        let Some(leader) = world.running().into_iter().find(Node::leads) else { return };
        world.note("members", format!("{voters:?}"));
        Seeded::spawn(async move {
            let changed = leader.raft.change_membership(voters, true);
            Sim::timeout(Duration::from_secs(10), changed).await.ok();
        });
    }

    /// Tries with a leader until that succeeds, or takes too long.
    async fn until(&mut self, mut attempt: impl AsyncFnMut(&Node) -> bool) {
        let begun = self.world.begun.elapsed();
        while self.world.begun.elapsed() < begun + RECOVERED {
            if let Some(leader) = self.world.running().iter().find(|node| node.leads())
                && attempt(leader).await
            {
                return;
            }
            self.end_known_panics().await;
            self.world.pause(50, 100).await;
        }
        self.world.history().fail(format!("no progress for {RECOVERED:?} without faults"));
    }

    async fn recover(&mut self) {
        self.heal();
        for id in 1..=NODES {
            self.restart(id).await;
        }
        let (mut last, world) = (0, Arc::clone(&self.world));
        self.until(async |leader| {
            last += 1;
            write(&world, leader, Write { register: 0, value: u64::MAX - last }).await
        })
        .await;
        self.until(async |_| {
            let applied = |node: &Node| node.raft.metrics().borrow_watched().last_applied.map_or(0, |last| last.index);
            let last = world.history().last_index();
            world.history().failure.is_some() || world.running().iter().all(|node| applied(node) == last)
        })
        .await;
        for node in self.world.running() {
            let found = |register| Some((register, value(&node.state.db(), register)?));
            self.world.history().ends_with(node.id, &(0..REGISTERS).filter_map(found).collect());
        }
    }
}
