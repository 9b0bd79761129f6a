//! Listeners: TCP, with or without TLS, and Unix.

use std::fmt;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};

use mio::event::Source;
use mio::net::{TcpListener, UnixListener};

use crate::error::Result;
use crate::settings::TlsFiles;
use crate::tls::{self, ServerConfig};
use crate::transport::Stream;

/// The address on which a server listens.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The path of a Unix socket.
    Unix(PathBuf),
}

/// The form that [`Server::bind`](crate::Server::bind) accepts.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Reads the certificate and the key for clients again while the server runs.
#[derive(Clone, Debug)]
pub struct TlsReloader {
    files: TlsFiles,
    config: Arc<RwLock<Arc<ServerConfig>>>,
}

impl TlsReloader {
    pub(crate) fn new(files: &TlsFiles) -> Result<Self> {
        Ok(Self { files: files.clone(), config: Arc::new(RwLock::new(tls::for_clients(files)?)) })
    }

    /// Reads the files again. New connections use what is in them; the present ones stay.
    ///
    /// # Errors
    /// [`Error::Tls`](crate::Error::Tls). Nothing has changed then.
    pub fn reload(&self) -> Result<()> {
        let new = tls::for_clients(&self.files)?;
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = new;
        Ok(())
    }

    fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A socket on which clients connect.
#[derive(Debug)]
pub(crate) enum Listener {
    Tcp(TcpListener),
    /// The file of the socket is removed when the listener is dropped.
    Unix(UnixListener, PathBuf),
}

impl Listener {
    pub(crate) fn tcp(address: SocketAddr) -> io::Result<Self> {
        TcpListener::bind(address).map(Self::Tcp)
    }

    /// Creates the socket file `path` and listens on it. The socket of a killed server is replaced; a socket in use, or any other file, is not.
    pub(crate) fn unix(path: &Path) -> io::Result<Self> {
        let is_socket = path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket());
        let is_left = |error: io::Error| error.kind() == ErrorKind::ConnectionRefused;
        if is_socket && StdUnixStream::connect(path).is_err_and(is_left) {
            std::fs::remove_file(path)?;
        }
        UnixListener::bind(path).map(|listener| Self::Unix(listener, path.to_owned()))
    }

    pub(crate) fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?),
            Self::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// Accepts a client. On a Unix socket there is no TLS: no data leaves the machine.
    pub(crate) fn accept(&self, tls: Option<&TlsReloader>) -> io::Result<Box<dyn Stream>> {
        Ok(match (self, tls) {
            (Self::Tcp(listener), Some(tls)) => tls::accept(&tls.config(), listener.accept()?.0)?,
            (Self::Tcp(listener), None) => Box::new(listener.accept()?.0),
            (Self::Unix(listener, _), _) => Box::new(listener.accept()?.0),
        })
    }

    pub(crate) fn source(&mut self) -> &mut dyn Source {
        match self {
            Self::Tcp(listener) => listener,
            Self::Unix(listener, _) => listener,
        }
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            // If this fails, the next server replaces the file.
            std::fs::remove_file(path).ok();
        }
    }
}
