//! Listeners and sockets of clients: TCP, with or without TLS, and Unix.

use std::fmt;
use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mio::event::Source;
use mio::net::{TcpListener, TcpStream, UnixListener, UnixStream};
use mio::{Interest, Registry, Token};

use crate::tls::{ServerConfig, Tls};
use crate::transport::keep_alive;

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
    pub(crate) fn accept(&self, tls: Option<&Arc<ServerConfig>>) -> io::Result<Stream> {
        let socket = match self {
            Self::Tcp(listener) => Socket::Tcp(listener.accept()?.0),
            Self::Unix(listener, path) => Socket::Unix(listener.accept()?.0, path.clone()),
        };
        let tls = tls.filter(|_| matches!(socket, Socket::Tcp(_))).map(Tls::new).transpose()?.map(Box::new);
        Ok(Stream { socket, tls })
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

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    /// A Unix socket, with the path of the server's socket.
    Unix(UnixStream, PathBuf),
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.read(buffer),
            Self::Unix(socket, _) => socket.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write(bytes),
            Self::Unix(socket, _) => socket.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match self {
            Self::Tcp(socket) => socket.write_vectored(parts),
            Self::Unix(socket, _) => socket.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The nonblocking socket of a client.
pub(crate) struct Stream {
    socket: Socket,
    tls: Option<Box<Tls>>,
}

impl Stream {
    #[cfg(test)]
    pub(crate) fn tcp(socket: TcpStream) -> Self {
        Self { socket: Socket::Tcp(socket), tls: None }
    }

    /// The client's address and the server's address, in the form of CLIENT LIST.
    pub(crate) fn addresses(&self) -> [String; 2] {
        match &self.socket {
            Socket::Tcp(socket) => [socket.peer_addr(), socket.local_addr()]
                .map(|address| address.map_or(String::new(), |address| address.to_string())),
            // The form is that of Redis. A client's socket has no name, so the server's path is used for both.
            Socket::Unix(_, path) => [(); 2].map(|()| format!("{}:0", path.display())),
        }
    }

    /// Sets the options of a client's socket.
    pub(crate) fn prepare(&self) {
        if let Socket::Tcp(socket) = &self.socket {
            // Replies are sent as a whole, so the kernel should not delay them to collect more.
            socket.set_nodelay(true).ok();
            keep_alive(socket).ok();
        }
    }

    /// Whether a read that returned fewer bytes than possible has read everything that has arrived.
    pub(crate) fn reads_whole(&self) -> bool {
        self.tls.is_none()
    }

    /// Whether TLS holds bytes to be sent, in addition to the output that it has not taken yet.
    pub(crate) fn has_unsent(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.has_unsent())
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        self.tls.as_ref().is_some_and(|tls| tls.is_handshaking())
    }

    /// Announces the end of the stream in TLS, which creates more bytes to send.
    pub(crate) fn say_end(&mut self) {
        if let Some(tls) = &mut self.tls {
            tls.say_end();
        }
    }

    /// Sends the end of the server's side.
    pub(crate) fn shutdown(&self) -> io::Result<()> {
        match &self.socket {
            Socket::Tcp(socket) => socket.shutdown(Shutdown::Write),
            Socket::Unix(socket, _) => socket.shutdown(Shutdown::Write),
        }
    }
}

impl Read for Stream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.read(&mut self.socket, buffer),
            None => self.socket.read(buffer),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write(&mut self.socket, &[IoSlice::new(bytes)]),
            None => self.socket.write(bytes),
        }
    }

    fn write_vectored(&mut self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        match &mut self.tls {
            Some(tls) => tls.write(&mut self.socket, parts),
            None => self.socket.write_vectored(parts),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.tls.as_mut().map_or(Ok(()), |tls| tls.flush(&mut self.socket))
    }
}

impl Source for Stream {
    fn register(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.register(registry, token, interests),
            Socket::Unix(socket, _) => socket.register(registry, token, interests),
        }
    }

    fn reregister(&mut self, registry: &Registry, token: Token, interests: Interest) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.reregister(registry, token, interests),
            Socket::Unix(socket, _) => socket.reregister(registry, token, interests),
        }
    }

    fn deregister(&mut self, registry: &Registry) -> io::Result<()> {
        match &mut self.socket {
            Socket::Tcp(socket) => socket.deregister(registry),
            Socket::Unix(socket, _) => socket.deregister(registry),
        }
    }
}
