//! Options for sockets of clients.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

/// The length of silence after which the system probes whether the other side is still there, as in Redis. Three unanswered probes, each after a
/// third of that time, end the connection.
const SILENCE: Duration = Duration::from_secs(300);

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
