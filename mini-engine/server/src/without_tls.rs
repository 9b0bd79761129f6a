//! Replaces `tls.rs` if the feature `tls` is off: no configuration can be created, so there is no TLS connection either.

use std::io;
use std::sync::Arc;

use mio::net::TcpStream;

use crate::error::{Error, Result};
use crate::settings::TlsFiles;
use crate::transport::Stream;

/// A configuration that cannot be created.
#[derive(Debug)]
pub(crate) enum ServerConfig {}

/// # Errors
/// Always returns [`Error::Tls`].
pub(crate) fn for_clients(files: &TlsFiles) -> Result<Arc<ServerConfig>> {
    let reason = "this program was built without TLS, which `--features tls` adds: \
                  cargo install --path mini-engine/program --features tls"
        .to_owned();
    Err(Error::Tls { file: files.certificates.clone(), reason })
}

/// Cannot be called.
pub(crate) fn accept(config: &Arc<ServerConfig>, _: TcpStream) -> io::Result<Box<dyn Stream>> {
    match **config {}
}
