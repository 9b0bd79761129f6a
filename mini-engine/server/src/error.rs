//! Why a server does not start, or ends early.

use std::io::Error as IoError;
use std::net::SocketAddr;

/// The result of starting or running a server.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a server does not start, or ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting is not within its limits.
    #[error("{name}: expected {expected}, found {found}")]
    InvalidSettings {
        /// The setting.
        name: &'static str,
        /// What it may be.
        expected: String,
        /// What it is.
        found: usize,
    },
    /// What was given to listen on is no address.
    #[error("{listen}: expected an address and a port, such as 127.0.0.1:6379: {source}")]
    Address {
        /// What was given.
        listen: String,
        /// What is wrong with it.
        source: IoError,
    },
    /// Other machines can reach the address, and neither a password nor [`without_password`](crate::Settings::without_password) was set.
    #[error("refused to listen on {0}: other machines can reach it, and there is no password")]
    Exposed(SocketAddr),
    /// There is a password, and the protocol has no way to tell it.
    #[error("this protocol has no passwords: nobody could tell this one")]
    NoPasswords,
    /// The network, or a thread that does not start.
    #[error("cannot {action} {place}: {source}")]
    Io {
        /// What was tried.
        action: &'static str,
        /// With what.
        place: String,
        /// Why it failed.
        source: IoError,
    },
    /// The database.
    #[error(transparent)]
    Engine(#[from] mini_engine::Error),
}

/// A failure of the network.
pub(crate) fn io(action: &'static str, place: &str) -> impl FnOnce(IoError) -> Error {
    let place = place.to_owned();
    move |source| Error::Io { action, place, source }
}
