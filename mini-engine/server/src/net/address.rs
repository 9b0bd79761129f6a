//! Addresses on which the server may listen.
//!
//! An address of this machine alone is allowed. Anyone on the network can reach the others, so they need a password, or the operator's explicit
//! setting that none is wanted.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};

use mio::net::TcpListener;

use crate::error::{Error, Result, io};
use crate::settings::{Protocol, Settings};

/// Listens on the first available address of `listen`.
pub(crate) fn bind(listen: &str, settings: &Settings) -> Result<TcpListener> {
    let mut last = None;
    for address in resolve(listen, settings)? {
        match TcpListener::bind(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(io("listen on", &address.to_string())(error)),
        }
    }
    let none = || Error::Address { listen: listen.into(), source: ErrorKind::AddrNotAvailable.into() };
    Err(last.unwrap_or_else(none))
}

/// The addresses of `listen`, if the server may listen on all of them.
fn resolve(listen: &str, settings: &Settings) -> Result<Vec<SocketAddr>> {
    let resolved = listen.to_socket_addrs().map_err(|source| Error::Address { listen: listen.into(), source })?;
    let addresses: Vec<SocketAddr> = resolved.collect();
    let has_password = settings.password.is_some();
    if has_password && settings.protocol == Protocol::Lines {
        return Err(Error::NoPasswords);
    }
    let exposed = addresses.iter().find(|address| !address.ip().is_loopback());
    match exposed {
        Some(address) if !has_password && !settings.without_password => Err(Error::Exposed(*address)),
        _ => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_loopback_needs_no_password() {
        // Catches a server that is open to the network by default.
        let password = || Some(b"secret".to_vec());
        for listen in ["127.0.0.1:0", "127.0.0.2:1", "[::1]:0"] {
            assert!(resolve(listen, &Settings::default()).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:6379"] {
            let refused = resolve(listen, &Settings::default());
            assert!(matches!(refused, Err(Error::Exposed(_))), "{listen}: {refused:?}");
            assert!(resolve(listen, &Settings { password: password(), ..Settings::default() }).is_ok(), "{listen}");
            assert!(resolve(listen, &Settings { without_password: true, ..Settings::default() }).is_ok(), "{listen}");
        }
        let lines = Settings { password: password(), protocol: Protocol::Lines, ..Settings::default() };
        assert!(matches!(resolve("127.0.0.1:0", &lines), Err(Error::NoPasswords)));
        assert!(matches!(resolve("6379", &Settings::default()), Err(Error::Address { .. })));
    }
}
