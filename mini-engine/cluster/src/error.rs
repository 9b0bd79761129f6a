//! The reason why a node does not start, why it ends early, or why a request to a cluster is refused.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::SetOnce;

/// The result of a call to a node or a cluster.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a node does not start, why it ends early, or why a request to a cluster is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is not within its limits.
    #[error("{name}: expected {expected}, found {found}")]
    InvalidSettings {
        /// The setting.
        name: &'static str,
        /// The allowed values.
        expected: String,
        /// The actual value.
        found: String,
    },
    /// Other machines can reach the address for nodes, but TLS or the secret is missing.
    #[error(
        "refused to listen on {0} for other nodes: other machines can reach it, and there is not both TLS and a shared secret"
    )]
    ExposedToNodes(SocketAddr),
    /// An error of the server that serves clients, or a certificate or key that TLS cannot use.
    #[error(transparent)]
    Server(#[from] mini_engine_server::Error),
    /// The file with the node's identity cannot be used.
    #[error("{file}: {reason}")]
    Identity {
        /// The file.
        file: PathBuf,
        /// The expected and the actual contents.
        reason: String,
    },
    /// A failure of the network, or of files outside the databases.
    #[error("cannot {action} {place}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// Its object.
        place: String,
        /// The reason of the failure.
        source: IoError,
    },
    /// An error of a database.
    #[error(transparent)]
    Engine(#[from] mini_engine::Error),
    /// The directory is an older copy, as another node remembers, or a copy of it takes part. Contains the reason, and what to do.
    #[error("{0}")]
    Outdated(String),
    /// A group can no longer store or apply entries.
    #[error("group {group} has ended: {reason}")]
    Ended {
        /// The group's number.
        group: u32,
        /// The error of openraft.
        reason: String,
    },
    /// A node refused a request.
    #[error("{address}: {reason}")]
    Refused {
        /// The node's address.
        address: String,
        /// The reason that the node gave.
        reason: String,
    },
}

impl Error {
    pub(crate) fn setting(name: &'static str, expected: impl Into<String>, found: impl ToString) -> Self {
        Self::InvalidSettings { name, expected: expected.into(), found: found.to_string() }
    }

    /// The error for a file or a directory whose contents cannot be used.
    pub(crate) fn unusable(file: impl Into<PathBuf>, reason: impl Into<String>) -> Self {
        Self::Identity { file: file.into(), reason: reason.into() }
    }

    /// The error for a node whose log is lost, although its directory has an identity or a state.
    pub(crate) fn forgotten(file: PathBuf) -> Self {
        let reason = "the node's log is lost, and with it the votes that it has given and entries that it has acknowledged; remove this node from its \
                      cluster and add it with an empty directory";
        Self::unusable(file, reason)
    }
}

/// The way in which a group tells its node that the node must end.
#[derive(Clone, Default)]
pub(crate) struct Failure {
    group: u32,
    /// The number of the group, and the reason; shared by all groups of a node.
    told: Arc<SetOnce<(u32, String)>>,
    /// Set when the group is stopped: errors of a group that the node leaves do not end the node.
    is_stopped: Arc<AtomicBool>,
}

impl Failure {
    pub(crate) fn new(group: u32, told: Arc<SetOnce<(u32, String)>>) -> Self {
        Self { group, told, is_stopped: Arc::default() }
    }

    pub(crate) fn tell(&self, reason: impl ToString) {
        // ORDERING: Relaxed, here and below; it publishes nothing.
        if !self.is_stopped.load(Ordering::Relaxed) {
            self.told.set((self.group, reason.to_string())).ok();
        }
    }

    /// Makes later errors of the group tell the node nothing.
    pub(crate) fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
    }
}

/// A failure of the network or of files. An engine error inside an I/O error is returned as the engine error.
pub(crate) fn io(action: &'static str, place: impl ToString) -> impl FnOnce(IoError) -> Error {
    let place = place.to_string();
    move |source| match source.downcast::<mini_engine::Error>() {
        Ok(error) => Error::Engine(error),
        Err(source) => Error::Io { action, place, source },
    }
}
