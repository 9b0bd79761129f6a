//! [`Stream`]: the nonblocking socket of a client, of TCP or Unix; `tls.rs` has another one.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use mio::event::Source;
use mio::net::{TcpStream, UnixStream};
use rustix::net::sockopt;

/// The length of silence after which the system probes whether the other side is still there, as in Redis. Three unanswered probes, each after a
/// third of that time, end the connection.
const SILENCE: Duration = Duration::from_secs(300);

/// The nonblocking socket of a client.
pub(crate) trait Stream: Read + Write + Send {
    /// The socket itself, whose events the loop waits for.
    fn source(&mut self) -> &mut dyn Source;

    /// The client's address and the server's address, in the form of CLIENT LIST.
    fn addresses(&self) -> [String; 2];

    /// Sets the options of the socket.
    fn prepare(&self) {}

    /// Sends the end of the server's side.
    fn shutdown(&self) -> io::Result<()>;

    /// Whether a read that returned fewer bytes than possible has read everything that has arrived.
    fn reads_whole(&self) -> bool {
        true
    }

    /// Whether bytes are to be sent, in addition to the output that was not taken yet.
    fn has_unsent(&self) -> bool {
        false
    }

    fn is_handshaking(&self) -> bool {
        false
    }

    /// Announces the end of the stream, if this needs bytes that are to be sent.
    fn say_end(&mut self) {}
}

impl Stream for TcpStream {
    fn source(&mut self) -> &mut dyn Source {
        self
    }

    fn addresses(&self) -> [String; 2] {
        [self.peer_addr(), self.local_addr()]
            .map(|address| address.map_or(String::new(), |address| address.to_string()))
    }

    fn prepare(&self) {
        // Replies are sent as a whole, so the kernel should not delay them to collect more.
        self.set_nodelay(true).ok();
        keep_alive(self).ok();
    }

    fn shutdown(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

impl Stream for UnixStream {
    fn source(&mut self) -> &mut dyn Source {
        self
    }

    /// The form is that of Redis. A client's socket has no name, so the path of the server's socket is used for both.
    fn addresses(&self) -> [String; 2] {
        let address = self.local_addr().ok();
        let path = address.as_ref().and_then(|address| address.as_pathname()).unwrap_or(Path::new(""));
        [(); 2].map(|()| format!("{}:0", path.display()))
    }

    fn shutdown(&self) -> io::Result<()> {
        self.shutdown(Shutdown::Write)
    }
}

/// Makes the system detect that the other side of a TCP connection has disappeared silently, for example a machine that has lost power.
///
/// # Errors
/// Returns an error if the system does not support the option.
pub(crate) fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, SILENCE)?;
    sockopt::set_tcp_keepintvl(socket, SILENCE / 3)?;
    Ok(sockopt::set_tcp_keepcnt(socket, 3)?)
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn a_silent_connection_is_asked_whether_it_is_alive() {
        // Catches a client whose machine has disappeared, and whose place, watches and memory are kept for ever.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
        assert!(!sockopt::socket_keepalive(&socket).expect("an option"));
        keep_alive(&socket).expect("an option");
        assert!(sockopt::socket_keepalive(&socket).expect("an option"));
        assert_eq!(sockopt::tcp_keepidle(&socket).expect("an option"), SILENCE);
    }
}
