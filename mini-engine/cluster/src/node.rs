//! [`Node`]: starts and stops the node of a cluster that runs in this process.

use std::fs::File;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use futures_util::future::join_all;
use mini_engine::fs::{FileSystem, StdFs, in_open_directory};
use mini_engine_server::{Address, Server, Stopper, TlsReloader};
use openraft_mini_engine::Logs;
use tokio::net::{TcpListener, lookup_host};
use tokio::sync::watch;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::bridge::Bridge;
use crate::clock::{WallClock, system_clock};
use crate::error::{Error, Result, io};
use crate::gossip;
use crate::group::Parts;
use crate::identity::Record;
use crate::inbound;
use crate::local::Local;
use crate::network::{Credentials, Dialer};
use crate::settings::{Security, Settings};
use crate::space::{Space, SpaceSource, with_slack};
use crate::starts::Starts;
use crate::types::Member;

/// The time that a stopping node leaves for the requests under way, before it hands over the groups that it leads.
const LAST_REQUESTS: Duration = Duration::from_millis(300);

/// A node of a cluster, or a node that waits to join one. It runs in tasks of the tokio runtime that started it, which must have several threads.
///
/// If it is dropped without [`Node::stop`], it ends like a killed process when the runtime ends: nothing that was acknowledged is lost. It must be
/// dropped before the runtime, which otherwise waits for the thread that serves clients.
pub struct Node {
    local: Arc<Local>,
    stop: watch::Sender<bool>,
    stopper: Stopper,
    server: JoinHandle<mini_engine_server::Result<()>>,
    inbound: JoinHandle<()>,
    gossip: JoinHandle<()>,
    clients: Address,
    metrics: Option<Address>,
    nodes: SocketAddr,
    tls: Option<TlsReloader>,
}

impl Node {
    /// Starts a node. If the directory belongs to a node of a cluster, the node takes part in that cluster.
    ///
    /// # Errors
    /// Returns an error if a setting is not allowed, an address is in use, another process has the directory open, or files are damaged.
    pub async fn start(settings: Settings) -> Result<Node> {
        // Opened when it is first measured: the directory is there by then.
        let (dir, opened) = (settings.dir.clone(), OnceLock::new());
        let space = move || {
            if opened.get().is_none() {
                opened.set(File::open(&dir).ok()?).ok();
            }
            Space::of(opened.get()?)
        };
        Self::start_with(settings, system_clock(), Arc::new(space)).await
    }

    pub(crate) async fn start_with(settings: Settings, clock: WallClock, space: SpaceSource) -> Result<Node> {
        settings.check()?;
        let Settings { dir, listen, advertise, cluster_listen, cluster_advertise, .. } = settings;
        let mut dialer = Dialer::new(&settings.security)?;
        let buffer_bytes = settings.clients.limits.buffer_bytes;
        let server = Server::bind(&listen, settings.clients)?;
        let (clients, metrics, stopper) =
            (server.address().clone(), server.metrics_address().cloned(), server.stopper()?);
        let tls = server.tls_reloader();
        let (listener, nodes) = bind(&cluster_listen, |address| check_nodes(address, &settings.security)).await?;
        let member = Member {
            cluster: told("cluster advertise", cluster_advertise, &Address::Tcp(nodes))?,
            clients: told("advertise", advertise, &clients)?,
        };
        let dir = std::path::absolute(&dir).map_err(io("find", dir.display()))?;
        std::fs::create_dir_all(&dir).map_err(io("create", dir.display()))?;
        let files: Arc<dyn FileSystem> = Arc::new(StdFs);
        let files = in_open_directory(&files, &dir).map_err(io("open", dir.display()))?;
        // The lock of the log keeps other processes out of the whole directory.
        let log = dir.join("log");
        let record = Record::read(&*files, &dir)?;
        if record.is_some() && !files.exists(&log.join("CURRENT")).map_err(io("look for", log.display()))? {
            return Err(Error::forgotten(log));
        }
        let logs = Logs::open_with(&log, Logs::options(), Arc::clone(&files)).map_err(io("open", log.display()))?;
        if record.is_none() && logs.db().range(..).next().is_some() {
            return Err(Error::unusable(log, "expected no log, since no file node.json says which node this is"));
        }
        let election_timeout = settings.election_timeout;
        let of_disk = |part: fn(Space) -> u64| space().map_or(0, part);
        let keep_log = settings.keep_log.unwrap_or_else(|| of_disk(Space::for_log));
        let min_free = settings.min_free_bytes.unwrap_or_else(|| of_disk(Space::min_free));
        if let Some(space) = space().filter(|space| with_slack(min_free) > space.total) {
            let expected = format!("at most four fifths of the disk, which has {} bytes", space.total);
            return Err(Error::setting("min free bytes", expected, min_free));
        }
        dialer.starts = Starts::load(logs.db().clone(), record.as_ref().map(Record::identity))?;
        let (dialer, ended) = (Arc::new(dialer), Arc::default());
        let max_group = settings.max_bytes.filter(|bytes| *bytes > 0).unwrap_or(u64::MAX);
        let parts = Parts {
            dir,
            files,
            member,
            dialer,
            logs,
            clock,
            election_timeout,
            ended,
            keep_log,
            space,
            min_free,
            max_group,
        };
        let local = Arc::new(Local::new(parts, record));
        // Nodes that start together answer each other before they open their groups.
        let inbound = tokio::spawn(inbound::run(Arc::clone(&local), listener));
        local.go_on().await.inspect_err(|_| inbound.abort())?;
        let (stop, stopped) = watch::channel(false);
        let gossip = tokio::spawn(gossip::run(Arc::clone(&local), stopped));
        let groups = Box::new(Bridge::new(Arc::clone(&local), buffer_bytes));
        let server = spawn_blocking(move || server.run_in_cluster(groups));
        Ok(Node { local, stop, stopper, server, inbound, gossip, clients, metrics, nodes, tls })
    }

    /// The address for clients.
    pub fn clients_address(&self) -> &Address {
        &self.clients
    }

    /// The address at which the node serves its metrics, if there is one.
    pub fn metrics_address(&self) -> Option<&Address> {
        self.metrics.as_ref()
    }

    /// The address for other nodes.
    pub fn cluster_address(&self) -> SocketAddr {
        self.nodes
    }

    /// Replaces the credentials for other nodes, and reads the files of TLS again, also those for clients. They apply to new connections; the present
    /// ones stay.
    ///
    /// # Errors
    /// Returns the errors of [`Node::start`] for credentials and files. Nothing has changed then.
    pub fn reload(&self, security: &Security) -> Result<()> {
        check_nodes(self.nodes, security)?;
        let credentials = Credentials::read(security)?;
        self.tls.as_ref().map_or(Ok(()), TlsReloader::reload)?;
        self.local.parts.dialer.replace(credentials);
        Ok(())
    }

    #[cfg(test)]
    pub(crate) fn local(&self) -> &Local {
        &self.local
    }

    /// Waits until the node cannot continue: a group can no longer store or apply entries. The caller must still call [`Node::stop`].
    pub async fn failed(&mut self) -> Error {
        tokio::select! {
            (group, reason) = self.local.parts.ended.wait() => Error::Ended { group: *group, reason: reason.clone() },
            error = self.local.parts.dialer.starts.until_outdated() => error,
            ended = &mut self.server => match ended {
                Ok(Err(error)) => error.into(),
                Ok(Ok(())) | Err(_) => io("serve", "clients")(std::io::Error::other("their thread has ended")),
            },
        }
    }

    /// Replies to the requests under way, hands over the groups that the node leads, writes everything to disk, and ends.
    ///
    /// # Errors
    /// Returns errors of writing to disk. Even then nothing that was acknowledged is lost.
    pub async fn stop(mut self) -> Result<()> {
        self.stop.send_replace(true);
        self.stopper.stop();
        // Most requests have their replies by then. Clients that have not noticed the end must not delay the next leader.
        let is_ended = self.server.is_finished() || timeout(LAST_REQUESTS, &mut self.server).await.is_ok();
        let here = || self.local.groups().map(|groups| groups.here()).unwrap_or_default();
        let lacking = self.local.groups().map(|groups| groups.lacking()).unwrap_or_default();
        let hand_over = async || join_all(here().values().map(|group| group.hand_over(&lacking))).await;
        hand_over().await;
        // The gossip task may have to stop a group, and no group may be removed while all are being stopped.
        (&mut self.gossip).await.ok();
        hand_over().await;
        if !is_ended {
            (&mut self.server).await.ok();
        }
        self.inbound.abort();
        (&mut self.inbound).await.ok();
        join_all(here().values().map(|group| group.stop())).await;
        self.local.parts.dialer.starts.close().await;
        self.local.parts.logs.clone().close().map_err(io("close", "the log"))
    }
}

/// Without [`Node::stop`], clients are disconnected too: otherwise the runtime would wait for the thread that serves them.
impl Drop for Node {
    fn drop(&mut self) {
        self.stopper.stop();
    }
}

/// Listens on an address, if `check` accepts it.
async fn bind(listen: &str, check: impl Fn(SocketAddr) -> Result<()>) -> Result<(TcpListener, SocketAddr)> {
    let address = lookup_host(listen).await.and_then(|mut addresses| {
        addresses.next().ok_or_else(|| std::io::Error::other("expected an address and a port, found none"))
    });
    let address = address.map_err(io("find", listen))?;
    check(address)?;
    let listener = TcpListener::bind(address).await.map_err(io("listen on", address))?;
    let address = listener.local_addr().map_err(io("listen on", address))?;
    Ok((listener, address))
}

/// The address that is told to other nodes and clients: it is stored in the membership of every group.
fn told(name: &'static str, advertised: Option<String>, listening: &Address) -> Result<String> {
    let can_be_reached = matches!(listening, Address::Tcp(address) if !address.ip().is_unspecified());
    let expected = || format!("the address at which others reach this node, because {listening} is none");
    let address = advertised.or_else(|| can_be_reached.then(|| listening.to_string()));
    address.ok_or_else(|| Error::setting(name, expected(), "nothing"))
}

fn check_nodes(address: SocketAddr, security: &Security) -> Result<()> {
    match address.ip().is_loopback() || (!security.secrets.is_empty() && security.tls.is_some()) {
        true => Ok(()),
        false => Err(Error::ExposedToNodes(address)),
    }
}
