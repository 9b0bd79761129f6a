//! The socket that clients connect to.

use std::io;
use std::net::SocketAddr;

use mio::net::TcpListener;

use super::super::failure::Failure;

/// Listens on the first of `addresses` that can be had.
pub(crate) fn bind(addresses: &[SocketAddr]) -> Result<TcpListener, Failure> {
    let mut last = Failure::Usage("the address to listen on means none".into());
    for &address in addresses {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = failure("listen on", &address.to_string())(error),
        }
    }
    Err(last)
}

/// A failure of the network.
pub(crate) fn failure(action: &'static str, place: &str) -> impl FnOnce(io::Error) -> Failure {
    let place = place.to_owned();
    move |source| Failure::Io { action, place, source }
}
