//! Which addresses the server may listen on.
//!
//! An address of this machine alone is fine. Others are reached by whoever is on the network, so they need a password, or the
//! explicit word of the operator that none is wanted.

use std::net::{SocketAddr, ToSocketAddrs};

use super::super::failure::Failure;

/// What protects an address.
#[derive(Clone, Copy)]
pub(crate) struct Exposure {
    pub(crate) has_password: bool,
    /// Whether the protocol has a way to tell the password.
    pub(crate) speaks_passwords: bool,
    /// Whether the operator wants no password.
    pub(crate) is_accepted: bool,
}

/// The addresses that `listen` means, if all of them may be listened on.
pub(crate) fn resolve(listen: &str, exposure: Exposure) -> Result<Vec<SocketAddr>, Failure> {
    let resolved = listen.to_socket_addrs().map_err(|error| {
        Failure::Usage(format!("--listen {listen}: expected an address and a port, such as 127.0.0.1:6379: {error}"))
    })?;
    let addresses: Vec<SocketAddr> = resolved.collect();
    if exposure.has_password && !exposure.speaks_passwords {
        return Err(Failure::Usage("--protocol lines has no passwords: nobody could tell this one".into()));
    }
    let exposed = addresses.iter().find(|address| !address.ip().is_loopback());
    match exposed {
        Some(address) if !exposure.has_password && !exposure.is_accepted => Err(Failure::Usage(format!(
            "refused to listen on {address}: other machines can reach it, and there is no password; give one with \
             --password-file or MINI_ENGINE_PASSWORD (not with --protocol lines), or say --without-password if whoever reaches the \
             port may read, change and delete everything"
        ))),
        _ => Ok(addresses),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: Exposure = Exposure { has_password: false, speaks_passwords: true, is_accepted: false };

    #[test]
    fn only_loopback_needs_no_password() {
        // Catches a server that is open to the network since nobody said otherwise.
        for listen in ["127.0.0.1:0", "127.0.0.2:1", "[::1]:0"] {
            assert!(resolve(listen, NOTHING).is_ok(), "{listen}");
        }
        for listen in ["0.0.0.0:0", "[::]:0", "192.0.2.1:6379"] {
            let Err(Failure::Usage(text)) = resolve(listen, NOTHING) else { panic!("{listen} was accepted") };
            assert!(text.contains("--password-file") && text.contains("--without-password"), "{text}");
            assert!(resolve(listen, Exposure { has_password: true, ..NOTHING }).is_ok(), "{listen}");
            assert!(resolve(listen, Exposure { is_accepted: true, ..NOTHING }).is_ok(), "{listen}");
        }
        let lines = Exposure { has_password: true, speaks_passwords: false, ..NOTHING };
        assert!(resolve("127.0.0.1:0", lines).is_err());
        assert!(resolve("6379", NOTHING).is_err());
    }
}
