//! What a node is started with.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use mini_engine_server::{Limits, TlsFiles};

use crate::error::{Error, Result};

/// Groups that a cluster may have at most. Each has a log, a database and a leader of its own.
pub const MAX_GROUPS: u32 = 64;

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's directory: `node.json`, `log`, `state-0`, ..
    pub dir: PathBuf,
    /// Address and port for clients.
    pub listen: String,
    /// The address that clients are told, if it is another one than [`Settings::listen`].
    pub advertise: Option<String>,
    /// Address and port for the other nodes.
    pub cluster_listen: String,
    /// The address that the other nodes are told, if it is another one than [`Settings::cluster_listen`].
    pub cluster_advertise: Option<String>,
    /// How nodes know each other.
    pub security: Security,
    /// How clients are let in, and what they may use.
    pub clients: Clients,
    /// A node that has heard nothing of a leader for so long, up to a third longer, wants to be the leader.
    pub election_timeout: Duration,
}

/// How clients are let in, and what they may use.
#[derive(Clone, Default)]
pub struct Clients {
    /// The password that clients must send before anything else.
    pub password: Option<Vec<u8>>,
    /// Whether to listen without a password on addresses that other machines can reach.
    pub without_password: bool,
    /// With them, clients must speak TLS.
    pub tls: Option<TlsFiles>,
    /// Bounds. A request has at most [`MAX_REQUEST_BYTES`](mini_engine_server::replicated::MAX_REQUEST_BYTES), whatever they say.
    pub limits: Limits,
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

/// Without the password.
impl fmt::Debug for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut clients = f.debug_struct("Clients");
        clients.field("tls", &self.tls).field("limits", &self.limits).finish_non_exhaustive()
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
        // Catches a password or a secret in a log.
        let clients = Clients { password: Some(b"secret".to_vec()), ..Clients::default() };
        let security = Security { secret: Some(b"secret".to_vec()), tls: None };
        let shown = format!("{clients:?} {security:?}");
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}
