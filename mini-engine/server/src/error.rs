//! The reason why a server does not start, or why it ends early.

use std::io::Error as IoError;
use std::net::SocketAddr;
use std::path::PathBuf;

/// The result of starting or running a server.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a server does not start, or why it ends early.
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
        found: usize,
    },
    /// The text passed as `listen` is not an address.
    #[error("{listen}: expected an address and a port, such as 127.0.0.1:6379: {source}")]
    Address {
        /// The given text.
        listen: String,
        /// The error that parsing it gave.
        source: IoError,
    },
    /// Other machines can reach the address, and neither a password nor [`without_password`](crate::Settings::without_password) was set.
    #[error("refused to listen on {0}: other machines can reach it, and there is no password")]
    Exposed(SocketAddr),
    /// There is a password, but the protocol has no way to send it.
    #[error("this protocol has no passwords: nobody could tell this one")]
    NoPasswords,
    /// A certificate or key that TLS cannot use.
    #[error("cannot use {file} for TLS: {reason}")]
    Tls {
        /// The file.
        file: PathBuf,
        /// The reason why it cannot be used.
        reason: String,
    },
    /// A failure of the network, or of starting a thread.
    #[error("cannot {action} {place}: {source}")]
    Io {
        /// The attempted action.
        action: &'static str,
        /// Its object.
        place: String,
        /// The reason of the failure.
        source: IoError,
    },
    /// An error of the database.
    #[error(transparent)]
    Engine(#[from] mini_engine::Error),
}

/// A failure of the network.
pub(crate) fn io(action: &'static str, place: &str) -> impl FnOnce(IoError) -> Error {
    let place = place.to_owned();
    move |source| Error::Io { action, place, source }
}
