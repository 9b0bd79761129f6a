//! Replies of commands, and their encoding in both versions of the protocol.
//!
//! The encoding is written by hand because the encoder of `redis-protocol` counts the digits of a number by a floating-point logarithm: from 10^15 -
//! 2 on it counts one too many for some numbers, and sends a zero byte in that place. Tests compare its decoder with the encoder of this file.

use std::io::ErrorKind;

use mini_engine::{Error, Slice};

use super::output::Output;
use super::request::CRLF;

/// The approximate bytes of a header or of a short value.
const OVERHEAD: usize = 16;

/// The protocol version that a client uses: 2 until it requests 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    Resp2,
    Resp3,
}

/// A reply to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// One or two words, such as `OK`.
    Simple(&'static str),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Slice),
    /// Text of several lines, for people to read.
    Text(String),
    /// No value.
    Null,
    /// No array: the same as `Null`, except in version 2.
    NullArray,
    /// An error code in capitals, a space, and a sentence.
    Error(String),
    /// Replies in order.
    Array(Vec<Reply>),
    /// Pairs: a map in version 3, a flat array in version 2.
    Map(Vec<(Reply, Reply)>),
    /// Nothing is sent: the reply comes later, or the connection ends.
    Nothing,
}

impl Reply {
    /// The reply that something was done.
    pub const OK: Reply = Reply::Simple("OK");

    /// Text, as bytes.
    pub fn text(text: impl AsRef<str>) -> Reply {
        Reply::Bulk(Slice::from(text.as_ref().as_bytes()))
    }

    pub(crate) fn count(n: usize) -> Reply {
        Reply::Integer(i64::try_from(n).unwrap_or(i64::MAX))
    }

    pub(crate) fn value(value: Option<Slice>) -> Reply {
        value.map_or(Reply::Null, Reply::Bulk)
    }

    /// The approximate number of bytes of the encoded reply.
    pub(crate) fn size(&self) -> usize {
        match self {
            Self::Bulk(bytes) => bytes.len() + OVERHEAD,
            Self::Text(text) | Self::Error(text) => text.len() + OVERHEAD,
            Self::Array(parts) => parts.iter().map(Self::size).sum::<usize>() + OVERHEAD,
            Self::Map(pairs) => pairs.iter().map(|(key, value)| key.size() + value.size()).sum::<usize>() + OVERHEAD,
            Self::Simple(_) | Self::Integer(_) | Self::Null | Self::NullArray | Self::Nothing => OVERHEAD,
        }
    }

    /// Appends the reply to `out`.
    pub(crate) fn encode(&self, version: Version, out: &mut Output) {
        match (self, version) {
            (Self::Nothing, _) => {}
            (Self::Simple(text), _) => line(b'+', text.as_bytes(), out),
            (Self::Error(text), _) => line(b'-', text.as_bytes(), out),
            (Self::Integer(n), _) => line(b':', itoa::Buffer::new().format(*n).as_bytes(), out),
            (Self::Bulk(value), _) => {
                header(b'$', value.len(), out);
                out.put_value(value);
                out.put(CRLF);
            }
            (Self::Text(text), Version::Resp2) => {
                header(b'$', text.len(), out);
                out.put_all(&[text.as_bytes(), CRLF]);
            }
            (Self::Text(text), Version::Resp3) => {
                // A verbatim string begins with the type of its text.
                header(b'=', text.len() + 4, out);
                out.put_all(&[b"txt:", text.as_bytes(), CRLF]);
            }
            (Self::Null, Version::Resp2) => out.put(b"$-1\r\n"),
            (Self::NullArray, Version::Resp2) => out.put(b"*-1\r\n"),
            (Self::Null | Self::NullArray, Version::Resp3) => out.put(b"_\r\n"),
            (Self::Array(parts), _) => {
                header(b'*', parts.len(), out);
                parts.iter().for_each(|part| part.encode(version, out));
            }
            (Self::Map(pairs), _) => {
                match version {
                    Version::Resp2 => header(b'*', pairs.len() * 2, out),
                    Version::Resp3 => header(b'%', pairs.len(), out),
                }
                pairs.iter().flat_map(|(key, value)| [key, value]).for_each(|part| part.encode(version, out));
            }
        }
    }
}

/// Appends the header of a string, an array or a map with `len` bytes or parts.
pub(crate) fn header(kind: u8, len: usize, out: &mut Output) {
    line(kind, itoa::Buffer::new().format(len).as_bytes(), out);
}

fn line(kind: u8, text: &[u8], out: &mut Output) {
    out.put_all(&[&[kind], text, CRLF]);
}

/// The result of a command or a job. `Counters::reply` makes a reply of this result.
pub(crate) type Outcome = Result<Reply, Refusal>;

/// The reason why a command was not carried out.
#[derive(Debug)]
pub(crate) struct Refusal {
    text: String,
    /// The engine's error, if it is the reason.
    cause: Option<Error>,
}

impl Refusal {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), cause: None }
    }

    pub(crate) fn syntax() -> Self {
        Self::new("ERR syntax error")
    }

    /// The refusal of the EXEC that was refused for this reason, as in Redis.
    pub(crate) fn of_exec(self) -> Self {
        let reason = self.text.strip_prefix("ERR ").unwrap_or(&self.text);
        Self { text: format!("EXECABORT Transaction discarded because of: {reason}"), ..self }
    }

    /// The engine's error, if it is the reason.
    pub(crate) fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }

    /// The reply for the client.
    pub(crate) fn into_reply(self) -> Reply {
        // An error must be one line.
        Reply::Error(self.text.replace(['\r', '\n'], " "))
    }
}

/// The error code shows clients the kind of failure: wrong use, refused writes, or storage.
impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        let code = match &error {
            Error::InvalidArgument(_) => "ERR",
            Error::ReadOnly { .. } | Error::Stalled { .. } | Error::Full(_) => "MISCONF",
            Error::Io { source, .. } if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
                "MISCONF no space:"
            }
            _ => "IOERR",
        };
        Self { text: format!("{code} {error}"), cause: Some(error) }
    }
}

#[cfg(test)]
#[path = "test_reply.rs"]
mod tests;
