//! Converts failures of a node to the program's failures.

use std::io;

use mini_engine_cluster::Error;

use crate::failure::Failure;

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Engine(error) => error.into(),
            Error::Io { action, place, source } => Self::Io { action, place, source },
            Error::Ended { group, reason } => {
                Self::Io { action: "go on with", place: format!("group {group}"), source: io::Error::other(reason) }
            }
            Error::Refused { address, reason } => {
                Self::Io { action: "use the node at", place: address, source: io::Error::other(reason) }
            }
            Error::ExposedToNodes(address) => Self::Usage(format!(
                "refused to listen on {address} for other nodes: other machines can reach it; give --cluster-secret-file, and \
                 --cluster-tls-cert, --cluster-tls-key and --cluster-tls-ca, so that only nodes are let in"
            )),
            Error::Server(error) => error.into(),
            Error::Outdated(reason) => Self::Outdated(reason),
            other => Self::Usage(other.to_string()),
        }
    }
}
