//! [`Frames`]: sends and receives values on a socket, each in a frame that begins with its length.
//!
//! A length beyond the bound is an error, before anything is allocated for it. The bound is small until the other side has proved that it has the
//! secret. Nothing in this file limits its own waiting time: callers set deadlines.

use std::io::{Error, ErrorKind, Result};

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use mini_engine_server::replicated::MAX_REQUEST_BYTES;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::codec::{Framed, LengthDelimitedCodec};

/// The bound before the proof, in bytes.
const UNPROVEN_BYTES: usize = 1024;
/// The bound after the proof: a message has log entries up to 1 MiB, but its last entry may have a whole batch of requests and the largest request.
/// Twice that size leaves room for additions of a later version.
const PROVEN_BYTES: usize = 2 * (MAX_REQUEST_BYTES + (4 << 20));

/// A connection, with TLS or without.
pub(crate) trait Socket: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Socket for T {}

/// A connection on which values are sent and received.
pub(crate) struct Frames {
    framed: Framed<Box<dyn Socket>, LengthDelimitedCodec>,
}

impl Frames {
    pub(crate) fn new(socket: Box<dyn Socket>) -> Self {
        let codec = LengthDelimitedCodec::builder().max_frame_length(UNPROVEN_BYTES).new_codec();
        Self { framed: Framed::new(socket, codec) }
    }

    /// Records that the other side has proved itself: from now on frames may be large.
    pub(crate) fn trust(&mut self) {
        self.framed.codec_mut().set_max_frame_length(PROVEN_BYTES);
    }

    /// Sends a value. If this future is dropped, the value is sent as a whole or not at all; later values are not affected.
    pub(crate) async fn send<T: Serialize>(&mut self, value: &T) -> Result<()> {
        let encoded = postcard::to_stdvec(value)
            .map_err(|error| Error::new(ErrorKind::InvalidInput, format!("cannot encode: {error}")))?;
        self.framed.send(Bytes::from(encoded)).await
    }

    /// Receives a value. If this future is dropped, nothing is lost.
    pub(crate) async fn receive<T: DeserializeOwned>(&mut self) -> Result<T> {
        let Some(frame) = self.framed.next().await else {
            return Err(Error::new(ErrorKind::UnexpectedEof, "the other side has closed the connection"));
        };
        let frame = frame.map_err(|error| self.explained(error))?;
        let invalid = |found: String| Error::new(ErrorKind::InvalidData, format!("cannot decode a frame: {found}"));
        match postcard::take_from_bytes(&frame) {
            Ok((value, [])) => Ok(value),
            Ok((_, rest)) => Err(invalid(format!("{} of {} bytes are left over", rest.len(), frame.len()))),
            Err(error) => Err(invalid(error.to_string())),
        }
    }

    /// A length beyond the bound mostly means that the other side speaks another protocol; its first bytes are still in the buffer.
    fn explained(&self, error: Error) -> Error {
        let Some(&head) = self.framed.read_buffer().first_chunk() else { return error };
        let (len, most) = (u32::from_be_bytes(head), self.framed.codec().max_frame_length());
        if error.kind() != ErrorKind::InvalidData || (len as usize) <= most {
            return error;
        }
        let found = match head {
            // A handshake or an alert of TLS.
            [0x15 | 0x16, 3, ..] => {
                "it speaks TLS, and this side does not: give all nodes and commands --cluster-tls-cert, or none"
                    .to_owned()
            }
            _ => format!("expected a node's frame of at most {most} bytes, found \"{}\"", head.escape_ascii()),
        };
        Error::new(ErrorKind::InvalidData, format!("the other side is not understood: {found}"))
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncWriteExt, DuplexStream};

    use super::*;

    async fn receive(bytes: &[u8], is_trusted: bool) -> Result<String> {
        let (mut writer, reader): (DuplexStream, DuplexStream) = tokio::io::duplex(1 << 16);
        let mut frames = Frames::new(Box::new(reader));
        if is_trusted {
            frames.trust();
        }
        writer.write_all(bytes).await.unwrap();
        drop(writer);
        frames.receive().await
    }

    #[tokio::test]
    async fn a_frame_beyond_the_bound_and_rubbish_are_errors() {
        // Catches memory that is allocated because of a stranger's length, and bytes that are decoded as a value although some are left over.
        let said = receive(&[0x15, 3, 3, 0, 2, 2, 10], false).await.unwrap_err().to_string();
        assert!(said.contains("it speaks TLS, and this side does not"), "{said}");
        let said = receive(b"PING\r\n", false).await.unwrap_err().to_string();
        assert!(said.contains("at most 1024 bytes, found \"PING\""), "{said}");
        for (len, is_trusted) in [(UNPROVEN_BYTES + 1, false), (u32::MAX as usize, false), (PROVEN_BYTES + 1, true)] {
            let error = receive(&(len as u32).to_be_bytes(), is_trusted).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidData, "{len}: {error}");
        }
        for rubbish in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0, 0, 0, 2, 5, b'a'], &[0, 0, 0, 3, 1, b'a', b'b']] {
            let error = receive(rubbish, true).await.unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::InvalidData | ErrorKind::Other), "{error}");
        }
        assert_eq!(receive(b"", true).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        assert_eq!(receive(&[0, 0, 0, 2, 1, b'a'], false).await.unwrap(), "a");
    }

    #[tokio::test]
    async fn a_receive_that_is_given_up_loses_nothing() {
        // Catches a half-read frame that is dropped with the call that timed out: the next call would begin in the middle of that frame.
        let (mut writer, reader) = tokio::io::duplex(1 << 16);
        let mut frames = Frames::new(Box::new(reader));
        writer.write_all(&[0, 0, 0, 2, 1]).await.unwrap();
        tokio::select! {
            biased;
            _ = frames.receive::<String>() => panic!("half a frame is no value"),
            () = tokio::task::yield_now() => {}
        }
        writer.write_all(b"a").await.unwrap();
        assert_eq!(frames.receive::<String>().await.unwrap(), "a");
    }
}
