//! The processes of a cluster.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use proof::free_address;
use rustix::process::{Pid, Signal, kill_process};

use super::client::Client;
use super::links::Links;
use crate::support::{Ran, Room, program, run_with, skipped, wait_for};

/// Longer than a node takes to report that there is no majority.
const REPLY: Duration = Duration::from_secs(15);

/// The command of a node in `directory` that listens for clients and for other nodes at these addresses.
pub(super) fn serve(directory: &Path, clients: &str, peers: &str) -> Command {
    let mut command = program();
    command.args(["serve", "--cluster"]).arg(directory);
    command.args(["--listen", clients, "--cluster-listen", peers]).env_remove("MINI_ENGINE_PASSWORD");
    command
}

/// A process, which is killed when it is dropped.
pub(super) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a process that adds its output to the file `log`.
    pub(super) fn start(mut command: Command, log: PathBuf) -> Self {
        let output = File::options().create(true).append(true).open(&log).expect("a log");
        command.stdin(Stdio::null()).stdout(output.try_clone().expect("a log")).stderr(output);
        Self { child: command.spawn().expect("spawn"), log }
    }

    pub(super) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("signal");
    }

    /// The exit status, if the process has ended.
    fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().expect("wait")
    }

    /// Sends a signal, and waits for the end.
    pub(super) fn end(mut self, signal: Signal) -> ExitStatus {
        assert!(self.ended().is_none(), "it ended by itself");
        self.signal(signal);
        wait_for("the end of a node", || self.ended().is_some());
        self.ended().expect("an end")
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            let said = fs::read(&self.log).unwrap_or_default();
            let from = said.len().saturating_sub(4000);
            println!("{} has: {}", self.log.display(), String::from_utf8_lossy(&said[from..]));
        }
    }
}

/// One node.
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
    process: Option<Process>,
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
        let ended = process.ended();
        assert!(ended.is_none(), "{} ended by itself, {ended:?}, and said: {}", self.directory.display(), self.said());
        true
    }

    pub(super) fn signal(&self, signal: Signal) {
        self.process.as_ref().expect("it runs").signal(signal);
    }
}

pub(super) struct Cluster {
    pub(super) nodes: Vec<Node>,
    pub(super) links: Links,
    /// The processes that slow down the disks.
    tracers: Vec<Child>,
    room: Room,
}

impl Cluster {
    /// Running nodes that are in no cluster yet.
    pub(super) fn started(count: usize) -> Self {
        let (links, tracers, room) = (Links::default(), Vec::new(), Room::new());
        let mut cluster = Self { nodes: Vec::new(), links, tracers, room };
        for _ in 0..count {
            let node = cluster.make_node();
            cluster.start(node);
        }
        cluster
    }

    /// A cluster that answers.
    pub(super) fn new(count: usize, groups: usize) -> Self {
        let cluster = Self::started(count);
        cluster.init(&format!("--groups {groups}"));
        cluster
    }

    /// Makes one cluster of the nodes, and waits until all of its groups answer.
    pub(super) fn init(&self, options: &str) {
        let addresses: Vec<String> = self.nodes.iter().map(|node| node.advertised.to_string()).collect();
        self.admin(&format!("init {} {options}", addresses.join(" "))).text();
        let mut client = self.client();
        (0..24).for_each(|n| client.must(&["DEL", &format!("probe {n}")]));
    }

    /// A further node, not yet started.
    pub(super) fn make_node(&mut self) -> usize {
        let (number, peers) = (self.nodes.len(), free_address());
        self.nodes.push(Node {
            directory: self.room.path(&format!("node-{number}")),
            address: free_address(),
            peers,
            advertised: self.links.proxy(peers),
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
        let begin = node.said().len();
        let process = Process::start(node.command(), node.log.clone());
        self.links.set_process(number, Some(process.child.id()));
        node.process = Some(process);
        let ready = format!(" on {}\n", node.address);
        wait_for("a node that serves", || node.runs() && node.said()[begin..].contains(&ready));
    }

    pub(super) fn kill(&mut self, number: usize) {
        self.end_by(number, Signal::KILL);
    }

    /// Ends a node as an operator does. Returns whether it exited with success.
    pub(super) fn end(&mut self, number: usize) -> bool {
        self.end_by(number, Signal::TERM).success()
    }

    fn end_by(&mut self, number: usize, signal: Signal) -> ExitStatus {
        self.links.set_process(number, None);
        self.nodes[number].process.take().expect("it runs").end(signal)
    }

    /// The exit status of a node that has ended by itself.
    pub(super) fn ended(&mut self, number: usize) -> Option<ExitStatus> {
        let status = self.nodes[number].process.as_mut()?.ended()?;
        self.links.set_process(number, None);
        self.nodes[number].process = None;
        Some(status)
    }

    /// Delays each sync of a node, if strace can do that.
    pub(super) fn slow_disk(&mut self, number: usize) {
        const SYNCS: &str = "fsync,fdatasync,msync,sync_file_range";
        let process = self.nodes[number].process.as_ref().expect("it runs").child.id().to_string();
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
        client.must::<()>(&["DEL", key]);
        self.nodes.iter().position(|node| node.address == client.at).expect("a node")
    }

    /// The output of `mini-engine cluster status` for this node.
    pub(super) fn status(&self, number: usize) -> String {
        self.admin(&format!("status {}", self.nodes[number].advertised)).text()
    }
}
