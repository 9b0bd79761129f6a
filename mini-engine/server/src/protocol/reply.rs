//! Replies of commands, and their encoding in both versions of the protocol.
//!
//! `redis-protocol` writes each value. The headers of arrays, maps and long strings are written here: because the library's frames would need the
//! parts in memory once more.

use std::io::ErrorKind;

use mini_engine::{Error, Slice};
use redis_protocol::resp2::encode::extend_encode_borrowed as encode2;
use redis_protocol::resp2::types::BorrowedFrame as Frame2;
use redis_protocol::resp3::encode::complete::extend_encode_borrowed as encode3;
use redis_protocol::resp3::types::{BorrowedFrame as Frame3, VerbatimStringFormat};

use super::output::{self, Output};

/// Bytes of a header or of a short value, for estimates.
const OVERHEAD: usize = 16;

/// The version of the protocol that a client speaks: 2 until it asks for 3.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Version {
    #[default]
    Resp2,
    Resp3,
}

/// A reply to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// A word or two, such as `OK`.
    Simple(&'static str),
    /// A number.
    Integer(i64),
    /// Bytes.
    Bulk(Slice),
    /// Text of many lines, for people.
    Text(String),
    /// Nothing, where there might be a value.
    Null,
    /// Nothing where an array was expected: as `Null`, but in version 2.
    NullArray,
    /// A code in capitals, a space, and a sentence.
    Error(String),
    /// Replies in order.
    Array(Vec<Reply>),
    /// Pairs: a map in version 3, a flat array in version 2.
    Map(Vec<(Reply, Reply)>),
    /// Nothing is sent: the answer comes later, or the connection ends.
    Nothing,
}

impl Reply {
    /// That something was done.
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

    /// About how many bytes are sent.
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
            (Self::NullArray, Version::Resp2) => out.put(b"*-1\r\n"),
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
            // The library would copy the value.
            (Self::Bulk(value), _) if output::is_long(value) => {
                header(b'$', value.len(), out);
                out.put_value(value);
                out.put(b"\r\n");
            }
            (value, Version::Resp2) => {
                let written = out.write(|out| encode2(out, &value.frame2(), false));
                debug_assert!(written.is_ok(), "the library makes room for what it writes");
            }
            (value, Version::Resp3) => {
                let written = out.write(|out| encode3(out, &value.frame3(), false));
                debug_assert!(written.is_ok(), "the library makes room for what it writes");
            }
        }
    }

    fn frame2(&self) -> Frame2<'_> {
        match self {
            Self::Simple(text) => Frame2::SimpleString(text.as_bytes()),
            Self::Integer(n) => Frame2::Integer(*n),
            Self::Bulk(bytes) => Frame2::BulkString(bytes),
            Self::Text(text) => Frame2::BulkString(text.as_bytes()),
            Self::Error(text) => Frame2::Error(text),
            Self::Null | Self::NullArray | Self::Array(_) | Self::Map(_) | Self::Nothing => Frame2::Null,
        }
    }

    fn frame3(&self) -> Frame3<'_> {
        match self {
            Self::Simple(text) => Frame3::SimpleString { data: text.as_bytes(), attributes: None },
            Self::Integer(n) => Frame3::Number { data: *n, attributes: None },
            Self::Bulk(bytes) => Frame3::BlobString { data: bytes, attributes: None },
            Self::Text(text) => {
                Frame3::VerbatimString { data: text.as_bytes(), format: VerbatimStringFormat::Text, attributes: None }
            }
            Self::Error(text) => Frame3::SimpleError { data: text, attributes: None },
            Self::Null | Self::NullArray | Self::Array(_) | Self::Map(_) | Self::Nothing => Frame3::Null,
        }
    }
}

/// Appends the beginning of a string, an array or a map of `len` parts.
pub(crate) fn header(kind: u8, len: usize, out: &mut Output) {
    out.put(&[kind]);
    out.put(len.to_string().as_bytes());
    out.put(b"\r\n");
}

/// The outcome of a command or a job. `Shared::reply` makes a reply of it.
pub(crate) type Outcome = Result<Reply, Refusal>;

/// The reason why a command was not carried out.
#[derive(Debug)]
pub(crate) struct Refusal {
    text: String,
    /// The engine's error, if it is one.
    cause: Option<Error>,
}

impl Refusal {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), cause: None }
    }

    pub(crate) fn syntax() -> Self {
        Self::new("ERR syntax error")
    }

    /// The engine's error, if it is one.
    pub(crate) fn cause(&self) -> Option<&Error> {
        self.cause.as_ref()
    }

    /// The reply for the client.
    pub(crate) fn into_reply(self) -> Reply {
        // An error is one line.
        Reply::Error(self.text.replace(['\r', '\n'], " "))
    }
}

/// The code tells clients what kind of failure it is: wrong use, writes refused, or storage.
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
