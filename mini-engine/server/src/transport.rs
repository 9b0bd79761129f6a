//! Sockets of clients.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::net::sockopt;

/// The silence behind which the system asks whether the other side is still there, as in Redis; three unanswered questions, each a third of that later,
/// end the connection.
const SILENCE: Duration = Duration::from_secs(300);

/// Lets the system find out when the other side of a TCP connection is gone without a word, as a machine that has lost its power.
///
/// # Errors
/// The system does not know the option.
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
        // Catches a client whose machine has gone, and whose place, WATCH and memory are kept for ever.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let socket = TcpStream::connect(listener.local_addr().expect("an address")).expect("connect");
        assert!(!sockopt::socket_keepalive(&socket).expect("an option"));
        keep_alive(&socket).expect("an option");
        assert!(sockopt::socket_keepalive(&socket).expect("an option"));
        assert_eq!(sockopt::tcp_keepidle(&socket).expect("an option"), SILENCE);
    }
}
