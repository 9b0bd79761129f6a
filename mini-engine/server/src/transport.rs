//! What this server and the nodes of a cluster do alike with the sockets of clients and the files of TLS.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::net::sockopt;
use rustls::ServerConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, Result};
use crate::settings::TlsFiles;

/// The silence behind which the system asks whether the other side is still there, as in Redis; three unanswered questions, each a third of that later,
/// end the connection.
const SILENCE: Duration = Duration::from_secs(300);

/// Lets the system find out when the other side of a TCP connection is gone without a word, as a machine that has lost its power.
///
/// # Errors
/// The system does not know the option.
pub fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_socket_keepalive(socket, true)?;
    sockopt::set_tcp_keepidle(socket, SILENCE)?;
    sockopt::set_tcp_keepintvl(socket, SILENCE / 3)?;
    Ok(sockopt::set_tcp_keepcnt(socket, 3)?)
}

/// How the server speaks TLS with clients: the files are read, and belong together.
///
/// # Errors
/// [`Error::Tls`].
pub fn for_clients(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let (certificates, key) = (certificates(&files.certificates)?, private_key(&files.key)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
    config.map(Arc::new).map_err(unusable(&files.certificates))
}

/// The certificates of a file, of which there is one at least.
///
/// # Errors
/// [`Error::Tls`].
pub fn certificates(file: &Path) -> Result<Vec<CertificateDer<'static>>> {
    let found: Vec<_> = CertificateDer::pem_file_iter(file).and_then(Iterator::collect).map_err(unusable(file))?;
    match found.is_empty() {
        false => Ok(found),
        true => Err(unusable(file)("expected certificates in PEM form (BEGIN CERTIFICATE), found none")),
    }
}

/// The private key of a file.
///
/// # Errors
/// [`Error::Tls`].
pub fn private_key(file: &Path) -> Result<PrivateKeyDer<'static>> {
    let is_encrypted = || std::fs::read(file).is_ok_and(|text| text.windows(9).any(|word| word == b"ENCRYPTED"));
    PrivateKeyDer::from_pem_file(file).map_err(|error| match error {
        _ if is_encrypted() => {
            let advice =
                "nobody is there to be asked for its password: store it without one (openssl pkey -in FILE -out NEW)";
            unusable(file)(format!("the key is encrypted, and {advice}"))
        }
        pem::Error::NoItemsFound => {
            unusable(file)("expected a private key in PEM form (BEGIN PRIVATE KEY), found none")
        }
        error => unusable(file)(error),
    })
}

/// The error for a file that TLS cannot use.
pub fn unusable<E: ToString>(file: &Path) -> impl FnOnce(E) -> Error {
    move |reason| Error::Tls { file: file.to_owned(), reason: reason.to_string() }
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
