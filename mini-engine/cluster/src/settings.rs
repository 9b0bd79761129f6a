//! The settings with which a node is started.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{Error, Result};

/// The maximum number of groups of a cluster. Each group has its own log, database and leader.
pub const MAX_GROUPS: u32 = 64;

/// The settings of a node.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The node's directory: `node.json`, `log`, `state-0`, ..
    pub dir: PathBuf,
    /// The address for clients, in the form of [`Server::bind`](mini_engine_server::Server::bind).
    pub listen: String,
    /// The address that is told to clients, if it differs from [`Settings::listen`].
    pub advertise: Option<String>,
    /// Address and port for the other nodes.
    pub cluster_listen: String,
    /// The address that is told to other nodes, if it differs from [`Settings::cluster_listen`].
    pub cluster_advertise: Option<String>,
    /// The credentials that nodes use with each other.
    pub security: Security,
    /// The settings of the server; a request has at most [`MAX_REQUEST_BYTES`](mini_engine_server::replicated::MAX_REQUEST_BYTES) in any case.
    pub clients: mini_engine_server::Settings,
    /// A node that has received nothing from a leader for this time, plus up to a third, becomes a candidate.
    pub election_timeout: Duration,
    /// About the most bytes of log that the node keeps for nodes that are away or catch up; by default a tenth of the disk, at most 8 GiB; never more
    /// than half of what is free. Each group has its share, at least 32 MiB. A node that lacks more gets a snapshot.
    pub keep_log: Option<u64>,
    /// While less is free on the node's disk, it accepts no writes that add data; 0 turns this off. By default a fiftieth of the disk, from 1 to 8 GiB, but
    /// at most a tenth of the disk.
    pub min_free_bytes: Option<u64>,
    /// While the tables of a group have more bytes on this node, the node accepts no writes that add data to the group, as its leader; by default, and with 0,
    /// there is no limit. What a memtable has does not count.
    pub max_bytes: Option<u64>,
}

/// The credentials that nodes use with each other, and that commands use to change a cluster.
#[derive(Clone, Default)]
pub struct Security {
    /// The shared secret of all nodes of the cluster; during its change the new one and the old one, both of which are accepted. At most two.
    pub secrets: Vec<Vec<u8>>,
    /// If given, nodes use TLS, and each presents its certificate.
    pub tls: Option<NodeTls>,
}

/// Files in PEM form for TLS between nodes.
#[derive(Clone, Debug)]
pub struct NodeTls {
    /// The node's certificate, followed by those of the authorities between it and the root. The node presents it both as a client and as a server.
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
            return Err(Error::setting("election timeout", expected, format!("{timeout:?}")));
        }
        Ok(())
    }
}

impl Security {
    pub(crate) fn check(&self) -> Result<()> {
        let invalid = |found: &str| Err(Error::setting("secrets", "at most 2, none of them empty", found));
        match self.secrets.iter().any(Vec::is_empty) {
            true => invalid("an empty one"),
            false if self.secrets.len() > 2 => invalid(&self.secrets.len().to_string()),
            false => Ok(()),
        }
    }
}

/// The output leaves out the secrets.
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
        let security = Security { secrets: vec![b"secret".to_vec()], tls: None };
        let shown = format!("{security:?}");
        assert!(!shown.contains("secret") && !shown.contains("115"), "{shown}");
    }
}
