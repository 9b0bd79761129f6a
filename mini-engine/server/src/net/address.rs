//! Addresses on which the server may listen.
//!
//! An address that only this machine can reach is allowed, and so is a Unix socket, whose file has permissions. Anyone on the network can reach the
//! other addresses, so these need a password, or an explicit setting that no password is wanted.

use std::io::ErrorKind;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::Path;

use super::listener::Listener;
use crate::error::{Error, Result, io};
use crate::settings::{Protocol, Settings};

/// Listens on the Unix socket of `unix:PATH`, or on the first available address of `listen`.
pub(crate) fn bind(listen: &str, settings: &Settings) -> Result<Listener> {
    if settings.password.is_some() && settings.protocol == Protocol::Lines {
        return Err(Error::NoPasswords);
    }
    match listen.strip_prefix("unix:") {
        Some(path) => Listener::unix(Path::new(path)).map_err(io("listen on", listen)),
        None => bind_first(listen, &clients_addresses(listen, settings)?),
    }
}

/// Listens on the first available address of `listen` for Prometheus, which only reads metrics. So any address is allowed.
pub(crate) fn bind_metrics(listen: &str) -> Result<Listener> {
    bind_first(listen, &resolve(listen)?)
}

fn bind_first(listen: &str, addresses: &[SocketAddr]) -> Result<Listener> {
    let mut last = None;
    for &address in addresses {
        match Listener::tcp(address) {
            Ok(listener) => return Ok(listener),
            Err(error) => last = Some(io("listen on", &address.to_string())(error)),
        }
    }
    let none = || Error::Address { listen: listen.into(), source: ErrorKind::AddrNotAvailable.into() };
    Err(last.unwrap_or_else(none))
}

fn resolve(listen: &str) -> Result<Vec<SocketAddr>> {
    let resolved = listen.to_socket_addrs().map_err(|source| Error::Address { listen: listen.into(), source })?;
    Ok(resolved.collect())
}

/// The addresses of `listen`; an error unless the server may listen for clients on all of them.
fn clients_addresses(listen: &str, settings: &Settings) -> Result<Vec<SocketAddr>> {
    let addresses = resolve(listen)?;
    let has_password = settings.password.is_some();
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
            assert!(clients_addresses(listen, &Settings::default()).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:6379"] {
            let refused = clients_addresses(listen, &Settings::default());
            assert!(matches!(refused, Err(Error::Exposed(_))), "{listen}: {refused:?}");
            let with_password = Settings { password: password(), ..Settings::default() };
            let without_password = Settings { without_password: true, ..Settings::default() };
            for settings in [with_password, without_password] {
                assert!(clients_addresses(listen, &settings).is_ok(), "{listen}");
            }
        }
        let lines = Settings { password: password(), protocol: Protocol::Lines, ..Settings::default() };
        assert!(matches!(bind("127.0.0.1:0", &lines), Err(Error::NoPasswords)));
        assert!(matches!(bind("6379", &Settings::default()), Err(Error::Address { .. })));
    }
}
