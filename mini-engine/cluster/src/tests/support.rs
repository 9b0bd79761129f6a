//! A cluster in this process, and a client that shows replies as text.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use proof::{TempDir, free_address};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::clock::{WallClock, system_clock};
use crate::local::Groups;
use crate::space::{Space, SpaceSource};
use crate::{ControlClient, Error, Node, Removed, Result, Security, Settings, Status};

/// Longer than any step takes on a busy machine.
pub(super) const LONG: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// The number of keys that `write_all` writes: `key0` and so on.
pub(super) const KEYS: usize = 60;

/// Calls `look` again and again until it returns a value.
pub(super) async fn wait_for<T>(what: &str, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(begun.elapsed() < LONG, "{what}: not there in {LONG:?}");
        sleep(PAUSE).await;
    }
}

/// The result of `open`, which is called until tasks of a stopped node hold the directory no longer.
pub(super) async fn once_free<T>(open: impl AsyncFn() -> Result<T>) -> Result<T> {
    wait_for("a free directory", async || match open().await {
        Err(Error::Engine(mini_engine::Error::Locked { .. })) => None,
        Err(Error::Identity { reason, .. }) if reason.contains("a node runs here") => None,
        opened => Some(opened),
    })
    .await
}

#[track_caller]
pub(super) fn refused<T>(result: Result<T>, expected: &str) {
    let error = result.err().expect("an error").to_string();
    assert!(error.contains(expected), "{error}");
}

/// Whether a reply is the expected one, in which `..` at the beginning or the end stands for anything.
pub(super) fn is_like(reply: &str, expected: &str) -> bool {
    match (expected.strip_prefix(".."), expected.strip_suffix("..")) {
        (Some(part), Some(_)) => reply.contains(part.trim_end_matches("..")),
        (Some(end), None) => reply.ends_with(end),
        (None, Some(beginning)) => reply.starts_with(beginning),
        (None, None) => reply == expected,
    }
}

/// The requests of a conversation, and the expected replies: `GET a => $1 | GET b => -MOVED ..`.
fn parts(conversation: &str) -> impl Iterator<Item = (&str, &str)> {
    conversation.split('|').map(|part| part.trim().split_once(" => ").expect("a request and a reply"))
}

/// The nodes, by their numbers. A node keeps its addresses when it is started again.
pub(super) struct Cluster {
    pub(super) dir: TempDir,
    pub(super) nodes: BTreeMap<u64, Node>,
    pub(super) settings: BTreeMap<u64, Settings>,
    /// The number of milliseconds by which the clock of each node is off.
    pub(super) clocks: BTreeMap<u64, Arc<AtomicI64>>,
    /// The free bytes of the disk of each node.
    pub(super) free: BTreeMap<u64, Arc<AtomicU64>>,
    pub(super) control: ControlClient,
}

impl Cluster {
    /// Nodes 1 to `nodes`, in a cluster of `groups` groups; every node holds all groups.
    pub(super) async fn new(nodes: u64, groups: u32) -> Cluster {
        Cluster::spread(nodes, groups, nodes as u32).await
    }

    /// Like `new`, but each group is on `replicas` nodes.
    pub(super) async fn spread(nodes: u64, groups: u32, replicas: u32) -> Cluster {
        let mut cluster = Cluster::without_nodes();
        for node in 1..=nodes {
            cluster.start(node).await;
        }
        let addresses: Vec<String> = (1..=nodes).map(|node| cluster.address(node)).collect();
        let members = cluster.control.init(&addresses, groups, replicas).await.expect("a cluster");
        assert!(members.keys().copied().eq(1..=nodes));
        for group in 0..groups {
            cluster.leader(group).await;
        }
        cluster
    }

    /// A cluster of one node with other settings.
    pub(super) async fn alone(change: impl FnOnce(&mut Settings)) -> Cluster {
        let mut cluster = Cluster::without_nodes();
        let mut settings = cluster.settings(1);
        change(&mut settings);
        cluster.control = ControlClient::new(&settings.security).expect("credentials");
        cluster.settings.insert(1, settings);
        cluster.start(1).await;
        cluster.control.init(&[cluster.address(1)], 1, 1).await.expect("a cluster");
        cluster.leader(0).await;
        cluster
    }

    fn without_nodes() -> Cluster {
        Cluster {
            dir: TempDir::new().expect("a directory"),
            nodes: BTreeMap::new(),
            settings: BTreeMap::new(),
            clocks: BTreeMap::new(),
            free: BTreeMap::new(),
            control: ControlClient::new(&Security::default()).expect("no files"),
        }
    }

    pub(super) fn settings(&self, node: u64) -> Settings {
        Settings {
            dir: self.dir.path().join(node.to_string()),
            listen: free_address().to_string(),
            advertise: None,
            cluster_listen: free_address().to_string(),
            cluster_advertise: None,
            security: Security::default(),
            clients: mini_engine_server::Settings::default(),
            // Long enough that a busy machine is not mistaken for a lost leader.
            election_timeout: Duration::from_millis(1500),
            keep_log: None,
            min_free_bytes: None,
            max_bytes: None,
        }
    }

    /// Starts a node, for the first time or again.
    pub(super) async fn start(&mut self, node: u64) {
        let settings = self.settings.get(&node).cloned().unwrap_or_else(|| self.settings(node));
        let offset = Arc::clone(self.clocks.entry(node).or_default());
        let system = system_clock();
        // ORDERING: Relaxed; the test waits for the effects of the change.
        let clock: WallClock = Arc::new(move || system().saturating_add_signed(offset.load(Ordering::Relaxed)));
        let free = Arc::clone(self.free.entry(node).or_insert_with(|| Arc::new(AtomicU64::new(u64::MAX))));
        let space: SpaceSource = Arc::new(move || Some(Space { total: 1 << 40, free: free.load(Ordering::Relaxed) }));
        let start = async || Node::start_with(settings.clone(), Arc::clone(&clock), Arc::clone(&space)).await;
        let started = once_free(start).await.expect("a node");
        self.settings.insert(node, settings);
        self.nodes.insert(node, started);
    }

    pub(super) async fn stop(&mut self, node: u64) {
        self.nodes.remove(&node).expect("a node").stop().await.expect("a clean end");
    }

    /// Stops all nodes, and starts them again.
    pub(super) async fn restart_all(&mut self) {
        let nodes: Vec<u64> = self.nodes.keys().copied().collect();
        for node in &nodes {
            self.stop(*node).await;
        }
        for node in nodes {
            self.start(node).await;
        }
    }

    /// Adds a node, to all groups if none are given, by a command to node `to`.
    pub(super) async fn add(&self, node: u64, to: u64, groups: Option<&[u32]>) -> Result<u64> {
        self.control.add(&self.address(node), &self.address(to), groups, |_, _| ()).await
    }

    /// Removes the node that has this number or address, by a command to node `from`.
    pub(super) async fn remove(&self, node: impl ToString, from: u64, groups: Option<&[u32]>) -> Result<Removed> {
        self.control.remove(&node.to_string(), &self.address(from), groups, false).await
    }

    /// The cluster, as this node describes it.
    pub(super) async fn status(&self, node: u64) -> Status {
        self.control.status(&self.address(node)).await.expect("a node of a cluster")
    }

    /// The node's address for other nodes.
    pub(super) fn address(&self, node: u64) -> String {
        self.settings[&node].cluster_listen.clone()
    }

    /// The node's address for clients.
    pub(super) fn clients(&self, node: u64) -> String {
        self.settings[&node].listen.clone()
    }

    pub(super) fn groups(&self, node: u64) -> Arc<Groups> {
        self.nodes[&node].local().groups().expect("it belongs to a cluster")
    }

    /// The leader of a group; waits until there is one.
    pub(super) async fn leader(&self, group: u32) -> u64 {
        wait_for("a leader", async || {
            let leads = |node: &u64| {
                let groups = self.nodes[node].local().groups();
                groups.is_some_and(|groups| groups.leads(group).is_ok())
            };
            let node = self.nodes.keys().copied().find(leads)?;
            // The barrier shows that this node has a majority, and so is the leader.
            self.groups(node).get(group)?.settle().await.ok().map(|()| node)
        })
        .await
    }

    /// Makes a node the leader of group 0.
    pub(super) async fn make_leader(&self, node: u64) {
        wait_for("the leader that was asked for", async || {
            let leader = self.leader(0).await;
            if leader == node {
                return Some(());
            }
            self.groups(leader).get(0)?.raft().trigger().transfer_leader(node).await.expect("it runs");
            None
        })
        .await;
    }

    pub(super) async fn client(&self, node: u64) -> Client {
        Client::connect(&self.clients(node)).await
    }

    /// A client that reads at this node, even if it follows.
    pub(super) async fn reader(&self, node: u64) -> Client {
        let mut client = self.client(node).await;
        client.talk("READONLY => +OK").await;
        client
    }

    /// Sends a request like a cluster client: follows redirections, and repeats requests that were certainly not carried out.
    pub(super) async fn ask(&self, request: &str) -> String {
        let node = *self.nodes.keys().next().expect("a node");
        let mut address = self.clients(node);
        wait_for(request, async || {
            let reply = Client::connect(&address).await.ask(request).await;
            // The output is shown if the test fails.
            eprintln!("{address}: {request}: {reply}");
            match reply.strip_prefix("-MOVED ") {
                Some(moved) => {
                    let to = moved.split(' ').nth(1).expect("an address").to_owned();
                    // The redirection may still lead to a node that was stopped.
                    address = match self.nodes.keys().any(|node| self.clients(*node) == to) {
                        true => to,
                        false => self.clients(node),
                    };
                    None
                }
                None if reply.starts_with("-CLUSTERDOWN ") => None,
                None => Some(reply),
            }
        })
        .await
    }

    /// Sends the requests of a conversation like a cluster client, and compares the replies.
    pub(super) async fn talk(&self, conversation: &str) {
        for (request, expected) in parts(conversation) {
            let reply = self.ask(request).await;
            assert!(is_like(&reply, expected), "{request}: {reply}, not {expected}");
        }
    }

    /// Repeats a request until it has this reply.
    pub(super) async fn wait_for_reply(&self, request: &str, expected: &str) {
        wait_for(expected, async || is_like(&self.ask(request).await, expected).then_some(())).await;
    }

    /// Waits until a node has applied the entries after which it gives this reply to a stale read.
    pub(super) async fn wait_for_stale(&self, node: u64, request: &str, expected: &str) {
        self.reader(node).await.wait_for_reply(request, expected).await;
    }

    pub(super) async fn write_all(&self, value: &str) {
        for n in 0..KEYS {
            self.talk(&format!("SET key{n} {n}{value} => +OK")).await;
        }
    }

    /// Checks that the cluster has what `write_all` wrote.
    pub(super) async fn read_all(&self, value: &str) {
        for n in 0..KEYS {
            self.talk(&format!("GET key{n} => ${n}{value}")).await;
        }
    }
}

/// A connection to a node. Replies are shown as one line: `+OK`, `:1`, `$value`, `$-1`, `*[$a :1]`.
pub(super) struct Client {
    stream: BufReader<TcpStream>,
}

impl Client {
    pub(super) async fn connect(address: &str) -> Client {
        let stream = wait_for("a connection", async || TcpStream::connect(address).await.ok()).await;
        Client { stream: BufReader::new(stream) }
    }

    pub(super) async fn ask(&mut self, request: &str) -> String {
        self.send(request).await;
        self.receive().await
    }

    /// Sends the requests of a conversation, one after the other, and compares the replies.
    pub(super) async fn talk(&mut self, conversation: &str) {
        for (request, expected) in parts(conversation) {
            let reply = self.ask(request).await;
            assert!(is_like(&reply, expected), "{request}: {reply}, not {expected}");
        }
    }

    /// Repeats a request until it has this reply.
    pub(super) async fn wait_for_reply(&mut self, request: &str, expected: &str) {
        wait_for(&format!("{request} => {expected}"), async || {
            is_like(&self.ask(request).await, expected).then_some(())
        })
        .await;
    }

    /// Sends requests, one for each line.
    pub(super) async fn send(&mut self, requests: &str) {
        let requests = format!("{requests}\n");
        timeout(LONG, self.stream.write_all(requests.as_bytes())).await.expect("sent in time").expect("sent");
    }

    pub(super) async fn receive(&mut self) -> String {
        timeout(LONG, self.read_reply()).await.expect("a reply in time")
    }

    async fn read_reply(&mut self) -> String {
        let mut line = String::new();
        self.stream.read_line(&mut line).await.expect("a line");
        let line = line.trim_end().to_owned();
        let len = line.get(1..).unwrap_or_default().parse::<usize>();
        match (line.as_bytes().first(), len) {
            (Some(b'$'), Ok(len)) => {
                let mut value = vec![0; len + 2];
                self.stream.read_exact(&mut value).await.expect("a value");
                format!("${}", String::from_utf8_lossy(&value[..len]))
            }
            (Some(b'*'), Ok(len)) => {
                let mut parts = Vec::new();
                for _ in 0..len {
                    parts.push(Box::pin(self.read_reply()).await);
                }
                format!("*[{}]", parts.join(" "))
            }
            _ => line,
        }
    }
}
