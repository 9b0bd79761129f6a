//! The processes of a cluster.

use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::client::Client;
use super::links::Links;
use super::wait_for;
use crate::support::{Ran, Room, program, run_with, skipped};

/// Longer than a node takes to report that there is no majority.
const REPLY: Duration = Duration::from_secs(15);

/// The command of a node in `directory` that listens for clients and for other nodes at these addresses.
pub(super) fn serve(directory: &Path, clients: &str, peers: &str) -> Command {
    let mut command = program();
    command.args(["serve", "--cluster"]).arg(directory);
    command.args(["--listen", clients, "--cluster-listen", peers]).env_remove("MINI_ENGINE_PASSWORD");
    command
}

/// One node; its process is killed when it is dropped.
pub(super) struct Node {
    pub(super) directory: PathBuf,
    /// The address for clients.
    pub(super) address: SocketAddr,
    /// The address to which its proxy connects.
    peers: SocketAddr,
    /// The address to which the other nodes connect: its proxy's.
    pub(super) advertised: SocketAddr,
    log: PathBuf,
    /// Additional environment variables of its process.
    pub(super) environment: Vec<(&'static str, String)>,
    /// Additional options of its process.
    pub(super) options: Vec<String>,
    process: Option<Child>,
}

impl Node {
    /// The command that starts the process.
    pub(super) fn command(&self) -> Command {
        let mut command = serve(&self.directory, &self.address.to_string(), &self.peers.to_string());
        command.args(["--cluster-advertise", &self.advertised.to_string()]).args(&self.options);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The output of its processes so far.
    pub(super) fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Whether its process runs; a process that has ended by itself has failed.
    pub(super) fn runs(&mut self) -> bool {
        let Some(process) = &mut self.process else { return false };
        let ended = process.try_wait().expect("wait");
        assert!(ended.is_none(), "{} ended by itself, {ended:?}, and said: {}", self.directory.display(), self.said());
        true
    }

    pub(super) fn signal(&self, signal: Signal) {
        let process = self.process.as_ref().expect("it runs");
        kill_process(Pid::from_child(process), signal).expect("signal");
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // The process may have ended already.
            process.kill().ok();
            process.wait().ok();
        }
        if std::thread::panicking() {
            let said = self.said();
            let from = said.len().saturating_sub(4000);
            println!("{} said: {}", self.directory.display(), String::from_utf8_lossy(&said.as_bytes()[from..]));
        }
    }
}

pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) links: Links,
    /// Whether nodes are reached without proxies, because proxies are slow with the connections of many groups.
    is_direct: bool,
    /// The processes that slow down the disks.
    tracers: Vec<Child>,
    room: Room,
}

impl Cluster {
    /// Running nodes that are in no cluster yet.
    pub(super) fn started(count: usize) -> Self {
        Self::started_so(count, false)
    }

    fn started_so(count: usize, is_direct: bool) -> Self {
        let (links, tracers, room) = (Links::default(), Vec::new(), Room::new());
        let mut cluster = Self { nodes: Vec::new(), links, is_direct, tracers, room };
        for _ in 0..count {
            let node = cluster.make_node();
            cluster.start(node);
        }
        cluster
    }

    /// A cluster that answers.
    pub(super) fn new(count: usize, groups: usize) -> Self {
        let cluster = Self::started(count);
        cluster.init(groups);
        cluster
    }

    /// A cluster in which each group is on `replicas` nodes, which are reached without proxies.
    pub(super) fn spread(count: usize, groups: usize, replicas: usize) -> Self {
        let cluster = Self::started_so(count, true);
        cluster.init_with(groups, &format!("--replicas {replicas}"));
        cluster
    }

    /// Makes one cluster of the nodes, and waits until it answers.
    pub(super) fn init(&self, groups: usize) {
        self.init_with(groups, "");
    }

    fn init_with(&self, groups: usize, options: &str) {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.advertised.to_string()).collect();
        self.admin(&format!("init {} --groups {groups} {options}", addresses.join(" "))).text();
        let keys: Vec<String> = (0..8 * groups).map(|n| format!("probe {n}")).collect();
        let mut client = self.client();
        keys.iter().for_each(|key| _ = client.must(&["DEL", key]));
    }

    /// A further node, not yet started.
    pub(super) fn make_node(&mut self) -> usize {
        let (number, peers) = (self.nodes.len(), free_address());
        self.nodes.push(Node {
            directory: self.room.path(&format!("node-{number}")),
            address: free_address(),
            peers,
            advertised: if self.is_direct { self.links.direct(peers) } else { self.links.proxy(peers) },
            log: self.room.path(&format!("node-{number}.log")),
            environment: Vec::new(),
            options: Vec::new(),
            process: None,
        });
        number
    }

    /// Starts a node, for the first time or again, and waits until it can be reached.
    pub(super) fn start(&mut self, number: usize) {
        let node = &mut self.nodes[number];
        assert!(node.process.is_none(), "it runs");
        let log = File::options().create(true).append(true).open(&node.log).expect("a log");
        let begin = log.metadata().expect("metadata").len() as usize;
        let mut command = node.command();
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().expect("spawn");
        self.links.set_process(number, Some(process.id()));
        node.process = Some(process);
        let ready = format!(" on {}\n", node.address);
        wait_for("a node that serves", || node.runs() && node.said()[begin..].contains(&ready));
    }

    pub(super) fn kill(&mut self, number: usize) {
        self.links.set_process(number, None);
        let mut process = self.nodes[number].process.take().expect("it runs");
        process.kill().expect("kill");
        process.wait().expect("wait");
    }

    /// Ends a node as an operator does. Returns whether it exited with success.
    pub(super) fn end(&mut self, number: usize) -> bool {
        self.nodes[number].signal(Signal::TERM);
        self.links.set_process(number, None);
        let mut process = self.nodes[number].process.take().expect("it runs");
        let mut status = None;
        wait_for("the end of a node", || {
            status = process.try_wait().expect("wait");
            status.is_some()
        });
        status.expect("an end").success()
    }

    /// The exit status of a node that has ended by itself.
    pub(super) fn ended(&mut self, number: usize) -> Option<ExitStatus> {
        let process = self.nodes[number].process.as_mut()?;
        let status = process.try_wait().expect("wait")?;
        self.links.set_process(number, None);
        self.nodes[number].process = None;
        Some(status)
    }

    pub(super) fn pause(&self, number: usize) {
        self.nodes[number].signal(Signal::STOP);
    }

    pub(super) fn resume(&self, number: usize) {
        self.nodes[number].signal(Signal::CONT);
    }

    /// Delays each sync of a node, if strace can do that.
    pub(super) fn slow_disk(&mut self, number: usize) {
        const SYNCS: &str = "fsync,fdatasync,msync,sync_file_range";
        let process = self.nodes[number].process.as_ref().expect("it runs").id().to_string();
        let mut strace = Command::new("strace");
        strace.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={SYNCS}"), "-e"]);
        strace.args([&format!("inject={SYNCS}:delay_enter=20000"), "-p", &process]);
        match strace.stdin(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(tracer) => self.tracers.push(tracer),
            Err(error) => skipped("a slow disk", format!("strace: {error}")),
        }
    }

    pub(super) fn fast_disks(&mut self) {
        for mut tracer in self.tracers.drain(..) {
            // The tracer then detaches. It may have ended already, with its process or because it has no right to trace.
            kill_process(Pid::from_child(&tracer), Signal::TERM).ok();
            tracer.wait().expect("wait");
        }
    }

    /// Fails if a node has ended by itself.
    pub(super) fn check_running(&mut self) {
        self.nodes.iter_mut().for_each(|node| _ = node.runs());
    }

    /// Runs `mini-engine cluster` with these arguments.
    pub(super) fn admin(&self, words: &str) -> Ran {
        let mut command = program();
        command.arg("cluster").args(words.split_whitespace());
        run_with(command, b"")
    }

    /// A client that knows all nodes.
    pub(super) fn client(&self) -> Client {
        Client::new(self.addresses(), 0, REPLY)
    }

    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.nodes.iter().map(|node| node.address).collect()
    }

    /// The node that accepts writes of `key`. Finds it by a removal of the key.
    pub(super) fn leader_of(&self, key: &str) -> usize {
        let mut client = self.client();
        client.must(&["DEL", key]);
        self.nodes.iter().position(|node| node.address == client.at).expect("a node")
    }

    /// The output of `mini-engine cluster status` for this node.
    pub(super) fn status(&self, number: usize) -> String {
        self.admin(&format!("status {}", self.nodes[number].advertised)).text()
    }
}

/// A free address on loopback. Its port is below those that the system assigns to connections, so that no connection takes it while the node is down.
pub(super) fn free_address() -> SocketAddr {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    const PORTS: u32 = 20_000;
    loop {
        let next = (std::process::id() * 101 + NEXT.fetch_add(1, Ordering::Relaxed)) % PORTS;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, (10_000 + next) as u16));
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}
