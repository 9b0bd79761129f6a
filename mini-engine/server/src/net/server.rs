//! [`Server`]: creates, runs and stops a server.

use std::io::Write;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::time::SystemTime;

use mini_engine::Db;
use mio::net::UnixStream;

use super::address;
use super::event_loop::{EventLoop, Listeners};
use super::limits;
use super::listener::{Address, Listener, TlsReloader};
use crate::error::{Result, io};
use crate::groups::Cluster;
use crate::settings::Settings;
use crate::state::clock::since_1970;
use crate::state::shared::Shared;

/// A server that listens for clients, and serves them once it [runs](Server::run).
///
/// # Examples
/// ```
/// use mini_engine::Db;
/// use mini_engine_server::{Server, Settings};
///
/// # let directory = tempfile::tempdir()?;
/// let db = Db::open(directory.path())?;
/// let server = Server::bind("127.0.0.1:0", Settings::default())?;
/// println!("serving on {}", server.address());
/// let stopper = server.stopper()?;
/// let serving = std::thread::spawn(move || server.run(db));
/// // Elsewhere, once it is to end:
/// stopper.stop();
/// serving.join().unwrap()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Server {
    clients: (Listener, Address),
    metrics: Option<(Listener, Address)>,
    tls: Option<TlsReloader>,
    settings: Settings,
    /// The two ends of the socket pair through which a byte makes the server end.
    stop: (UnixStream, StdUnixStream),
}

impl Server {
    /// Listens on `listen`: an address and a port, where port 0 chooses a free one; or `unix:` and the path of a Unix socket. Clients that connect
    /// wait until the server runs.
    ///
    /// The file of a Unix socket has the permissions of the process's umask, and is removed at the end. The file of a killed server is replaced.
    ///
    /// # Errors
    /// [`Error::InvalidSettings`](crate::Error::InvalidSettings), [`Error::Address`](crate::Error::Address),
    /// [`Error::Exposed`](crate::Error::Exposed) and [`Error::NoPasswords`](crate::Error::NoPasswords);
    /// [`Error::Tls`](crate::Error::Tls); [`Error::Io`](crate::Error::Io).
    pub fn bind(listen: &str, settings: Settings) -> Result<Self> {
        limits::check(&settings)?;
        let tls = settings.tls.as_ref().map(TlsReloader::new).transpose()?;
        let addressed = |listener: Listener, listen: &str| match listener.address() {
            Ok(address) => Ok((listener, address)),
            Err(error) => Err(io("ask for the address of", listen)(error)),
        };
        let clients = addressed(address::bind(listen, &settings)?, listen)?;
        let metrics = settings.metrics.as_deref();
        let metrics = metrics.map(|listen| addressed(address::bind_metrics(listen)?, listen)).transpose()?;
        let stop = || {
            let (receiver, sender) = StdUnixStream::pair()?;
            receiver.set_nonblocking(true)?;
            // One byte is enough; further bytes must not block the sender.
            sender.set_nonblocking(true)?;
            Ok((UnixStream::from_std(receiver), sender))
        };
        let stop = stop().map_err(io("make a socket for", "the server"))?;
        Ok(Self { clients, metrics, tls, settings, stop })
    }

    /// The address on which the server listens.
    pub fn address(&self) -> &Address {
        &self.clients.1
    }

    /// The address at which the server serves its metrics, if there is one.
    pub fn metrics_address(&self) -> Option<&Address> {
        self.metrics.as_ref().map(|(_, address)| address)
    }

    /// If the server uses TLS: reads its certificate and key again, from another thread.
    pub fn tls_reloader(&self) -> Option<TlsReloader> {
        self.tls.clone()
    }

    /// A [`Stopper`] to end the server from another thread.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io): there is no free file handle.
    pub fn stopper(&self) -> Result<Stopper> {
        let socket = self.stop.1.try_clone().map_err(io("make a socket for", "the server"))?;
        Ok(Stopper { socket })
    }

    /// Serves until a client sends SHUTDOWN, or a [`Stopper`] ends it. Then it carries out the received requests, sends the replies, and closes the
    /// database after everything is written and synced. Replies that a client has not received after ten seconds are given up.
    ///
    /// Other events, such as writes refused for lack of space, are logged as warnings and errors.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) of the event loop itself, not of single clients; [`Error::Engine`](crate::Error::Engine) if the database could
    /// not be [closed](Db::close): even then all acknowledged writes are in the log.
    pub fn run(self, db: Db) -> Result<()> {
        let mut event_loop = self.event_loop(db.clone(), None)?;
        let outcome = event_loop.run();
        // Whatever ended the loop, all writes must become durable. The database is closed before the threads are joined: a thread may wait for it.
        let closed = db.close();
        drop(event_loop);
        if let (Err(_), Err(error)) = (&outcome, &closed) {
            tracing::error!(%error, "could not close the database");
        }
        outcome.and(closed.map_err(Into::into))
    }

    /// Serves clients of a cluster, and passes their requests to the cluster's groups, until a [`Stopper`] ends it. The settings for the database and
    /// for its durability are ignored. Other events are logged.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) of the event loop itself, not of single clients.
    pub fn run_in_cluster(mut self, groups: Box<dyn Cluster>) -> Result<()> {
        self.settings = self.settings.in_cluster();
        let db = groups.db();
        self.event_loop(db, Some(groups))?.run()
    }

    pub(super) fn event_loop(self, db: Db, groups: Option<Box<dyn Cluster>>) -> Result<EventLoop> {
        let mut shared = Shared::new(db, self.settings, since_1970(SystemTime::now()).as_nanos() as u64);
        shared.cluster = groups;
        shared.address = self.clients.1.to_string();
        if let Address::Tcp(address) = self.clients.1 {
            shared.port = address.port();
        }
        let metrics = self.metrics.map(|(listener, _)| listener);
        EventLoop::new(Listeners { clients: self.clients.0, metrics, tls: self.tls }, self.stop, shared)
    }
}

/// Ends a server from another thread, or from a signal handler.
#[derive(Debug)]
pub struct Stopper {
    socket: StdUnixStream,
}

impl Stopper {
    /// Makes the server end. The server still handles the received requests; [`Server::run`] returns when that is done.
    pub fn stop(&self) {
        // This fails if the server has ended, or if the socket is full because of earlier calls.
        (&self.socket).write_all(&[1]).ok();
    }

    /// Returns a socket: the server ends when a byte is written to it, which even a signal handler may do.
    pub fn into_socket(self) -> StdUnixStream {
        self.socket
    }
}
