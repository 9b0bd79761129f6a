//! TLS for clients of a TCP address: the configuration from files, and a connection. `rustls` encrypts and decrypts in memory; the event loop reads
//! and writes the bytes. `without_tls.rs` replaces this file in a server that is built without the feature `tls`.
//!
//! Bounds: `rustls` holds at most one incomplete record of 16 KiB (64 KiB during the handshake), and 64 KiB of records to be sent. Further output
//! stays in the connection until these are sent.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::path::Path;
use std::sync::Arc;

use mio::event::Source;
use mio::net::TcpStream;
pub(crate) use rustls::ServerConfig;
use rustls::ServerConnection;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use crate::error::{Error, Result};
use crate::settings::TlsFiles;
use crate::transport::Stream;

/// The server's TLS configuration for clients: reads the files, and checks that they belong together.
///
/// # Errors
/// [`Error::Tls`].
pub(crate) fn for_clients(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let (certificates, key) = (certificates(&files.certificates)?, private_key(&files.key)?);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let config = config.and_then(|builder| builder.with_no_client_auth().with_single_cert(certificates, key));
    config.map(Arc::new).map_err(unusable(&files.certificates))
}

/// The certificates of a file; at least one.
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

/// The server's side of one TLS connection.
struct Tls {
    socket: TcpStream,
    connection: ServerConnection,
}

/// Begins TLS on the socket of a new client.
///
/// # Errors
/// Returns an error if the configuration does not work for any client.
pub(crate) fn accept(config: &Arc<ServerConfig>, socket: TcpStream) -> io::Result<Box<dyn Stream>> {
    let connection = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
    Ok(Box::new(Tls { socket, connection }))
}

impl Read for Tls {
    /// Reads decrypted bytes of the client; returns 0 at the end of its side. Returns `WouldBlock` only if the socket has no more bytes.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.connection.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The client has closed the connection without announcing the end. An incomplete request is not carried out.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            self.connection.read_tls(&mut self.socket)?;
            if let Err(error) = self.connection.process_new_packets() {
                // The last record contains the reason for the client.
                self.flush().ok();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }
}

impl Write for Tls {
    fn write(&mut self, output: &[u8]) -> io::Result<usize> {
        self.write_vectored(&[IoSlice::new(output)])
    }

    /// Takes the part of the output that fits, and sends the bytes that the socket accepts. Returns the number of bytes taken.
    fn write_vectored(&mut self, output: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush()?;
        let taken = self.connection.writer().write_vectored(output)?;
        match self.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends all records, including those of the handshake.
    fn flush(&mut self) -> io::Result<()> {
        while self.connection.wants_write() {
            if self.connection.write_tls(&mut self.socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }
}

impl Stream for Tls {
    fn source(&mut self) -> &mut dyn Source {
        &mut self.socket
    }

    fn addresses(&self) -> [String; 2] {
        self.socket.addresses()
    }

    fn prepare(&self) {
        self.socket.prepare();
    }

    fn shutdown(&self) -> io::Result<()> {
        Stream::shutdown(&self.socket)
    }

    /// The records that were read may hold more.
    fn reads_whole(&self) -> bool {
        false
    }

    fn has_unsent(&self) -> bool {
        self.connection.wants_write()
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    /// Creates, once, the record that announces the end to the client.
    fn say_end(&mut self) {
        self.connection.send_close_notify();
    }
}
