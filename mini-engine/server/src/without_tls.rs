//! Replaces `tls.rs` if the feature `tls` is off: no configuration can be created, so there is no TLS connection either.

use std::io::{self, IoSlice, Read, Write};
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::settings::TlsFiles;

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

/// A connection that cannot be created.
pub(crate) enum Tls {}

impl Tls {
    pub(crate) fn new(config: &Arc<ServerConfig>) -> io::Result<Self> {
        match **config {}
    }

    pub(crate) fn read(&mut self, _: &mut (impl Read + Write), _: &mut [u8]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn write(&mut self, _: &mut impl Write, _: &[IoSlice<'_>]) -> io::Result<usize> {
        match *self {}
    }

    pub(crate) fn flush(&mut self, _: &mut impl Write) -> io::Result<()> {
        match *self {}
    }

    pub(crate) fn has_unsent(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_handshaking(&self) -> bool {
        match *self {}
    }

    pub(crate) fn say_end(&mut self) {
        match *self {}
    }
}
