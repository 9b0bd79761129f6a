//! What a node is started with.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

/// Groups that a cluster may have at most. Each has a log, a database and a leader of its own.
pub const MAX_GROUPS: u32 = 64;

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's directory: `node.json`, `log`, `state-0`, ..
    pub dir: PathBuf,
    /// The address for clients, as [`Server::bind`](mini_engine_server::Server::bind) takes it.
    pub listen: String,
    /// The address that clients are told, if it is another one than [`Settings::listen`].
    pub advertise: Option<String>,
    /// Address and port for the other nodes.
    pub cluster_listen: String,
    /// The address that the other nodes are told, if it is another one than [`Settings::cluster_listen`].
    pub cluster_advertise: Option<String>,
    /// How nodes know each other.
    pub security: Security,
    /// The server of clients. A request has at most [`MAX_REQUEST_BYTES`](mini_engine_server::replicated::MAX_REQUEST_BYTES), whatever it says.
    pub clients: mini_engine_server::Settings,
    /// A node that has heard nothing of a leader for so long, up to a third longer, wants to be the leader.
    pub election_timeout: Duration,
}

/// How nodes know each other, and how the commands that change a cluster are known to nodes.
#[derive(Clone, Default)]
pub struct Security {
    /// What every node of the cluster knows.
    pub secret: Option<Vec<u8>>,
    /// With them, nodes speak TLS, and each shows its certificate.
    pub tls: Option<NodeTls>,
}

/// Files in PEM form for TLS between nodes.
#[derive(Clone, Debug)]
pub struct NodeTls {
    /// The node's certificate, followed by those of the authorities between it and the root. It is shown in both directions.
    pub certificates: PathBuf,
    /// The private key of the first certificate.
    pub key: PathBuf,
    /// The authorities that have signed the certificates of all nodes.
    pub authorities: PathBuf,
}

impl Settings {
    /// The shortest allowed [`Settings::election_timeout`].
    pub const MIN_ELECTION_TIMEOUT: Duration = Duration::from_millis(100);
    /// The longest allowed [`Settings::election_timeout`].
    pub const MAX_ELECTION_TIMEOUT: Duration = Duration::from_secs(60);
    /// The default of [`Settings::election_timeout`].
    pub const ELECTION_TIMEOUT: Duration = Duration::from_millis(600);

    pub(crate) fn check(&self) -> Result<()> {
        let timeout = self.election_timeout;
        if timeout < Self::MIN_ELECTION_TIMEOUT || timeout > Self::MAX_ELECTION_TIMEOUT {
            let expected = format!("{:?} to {:?}", Self::MIN_ELECTION_TIMEOUT, Self::MAX_ELECTION_TIMEOUT);
            return Err(Error::InvalidSettings { name: "election timeout", expected, found: format!("{timeout:?}") });
        }
        Ok(())
    }
}

/// Without the secret.
impl fmt::Debug for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Security").field("tls", &self.tls).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_not_shown() {
        // Catches a secret in a log.
        let security = Security { secret: Some(b"secret".to_vec()), tls: None };
        let shown = format!("{security:?}");
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}
