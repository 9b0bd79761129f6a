//! TLS for clients of a TCP address. `rustls` encrypts and decrypts in memory; the event loop moves the bytes.
//!
//! Bounds: `rustls` holds at most one record of 16 KiB that has not wholly arrived (64 KiB during the handshake), and
//! 64 KiB of records to be sent: further output stays with the connection until these are sent.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::sync::Arc;

use rustls::{ServerConfig, ServerConnection};

/// One client's side of TLS, without its socket.
pub(super) struct Tls(ServerConnection);

impl Tls {
    /// # Errors
    /// The configuration does not work for any client.
    pub(super) fn new(config: &Arc<ServerConfig>) -> io::Result<Self> {
        ServerConnection::new(Arc::clone(config)).map(Self).map_err(io::Error::other)
    }

    /// Reads what the client wrote; 0 at the end of its side. `WouldBlock` only if `socket` has nothing more.
    pub(super) fn read(&mut self, socket: &mut (impl Read + Write), buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.reader().read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The client has ended the connection without a word. A request that was cut is not carried out.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                done => return done,
            }
            self.0.read_tls(socket)?;
            if let Err(error) = self.0.process_new_packets() {
                // It says why in a last record.
                self.flush(socket).ok();
                return Err(io::Error::new(ErrorKind::InvalidData, error));
            }
        }
    }

    /// Takes as much of the output as there is room for, and sends what `socket` accepts. Returns the number of bytes taken.
    pub(super) fn write(&mut self, socket: &mut impl Write, output: &[IoSlice<'_>]) -> io::Result<usize> {
        self.flush(socket)?;
        let taken = self.0.writer().write_vectored(output)?;
        match self.flush(socket) {
            Err(error) if error.kind() != ErrorKind::WouldBlock => Err(error),
            _ => Ok(taken),
        }
    }

    /// Sends all records, of the handshake too.
    pub(super) fn flush(&mut self, socket: &mut impl Write) -> io::Result<()> {
        while self.0.wants_write() {
            if self.0.write_tls(socket)? == 0 {
                return Err(ErrorKind::WriteZero.into());
            }
        }
        Ok(())
    }

    pub(super) fn has_unsent(&self) -> bool {
        self.0.wants_write()
    }

    pub(super) fn is_handshaking(&self) -> bool {
        self.0.is_handshaking()
    }

    /// Makes the record that tells the client that nothing follows, once.
    pub(super) fn say_end(&mut self) {
        self.0.send_close_notify();
    }
}
