//! A request as the log of a group stores it, with the protocol version of its reply.

use std::fmt;

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

use crate::protocol::output::Output;
use crate::protocol::reply::{Refusal, Reply, Version};
use crate::protocol::request::{Args, OwnedArgs};

/// The number of bytes of a command's name that the debug output shows.
const SHOWN: usize = 32;

/// A request: its parts, beginning with the name of the command, and the protocol version of its reply.
#[derive(Clone)]
pub struct Request {
    pub(crate) version: Version,
    args: OwnedArgs,
}

impl Request {
    /// A request whose reply is in version 2 of the protocol.
    pub fn new<P: AsRef<[u8]>>(parts: impl IntoIterator<Item = P>) -> Self {
        let parts: Vec<P> = parts.into_iter().collect();
        Self::of_args(Version::Resp2, OwnedArgs::of_parts(parts.iter().map(AsRef::as_ref)))
    }

    pub(crate) fn of_args(version: Version, args: OwnedArgs) -> Self {
        Self { version, args }
    }

    pub(crate) fn args(&self) -> Args<'_> {
        self.args.args()
    }

    /// The parts of the request.
    pub fn parts(&self) -> impl ExactSizeIterator<Item = &[u8]> {
        self.args().from(0)
    }

    /// The approximate number of bytes that the request takes, in memory or encoded.
    pub fn size(&self) -> usize {
        self.args.size()
    }
}

/// A reply, encoded as bytes.
pub(crate) fn encode(reply: &Reply, version: Version) -> Vec<u8> {
    let (mut output, mut bytes) = (Output::default(), Vec::new());
    reply.encode(version, &mut output);
    output.copy_into(&mut bytes);
    bytes
}

/// The encoded reply for an error, in either version of the protocol: a code in capitals, a space, and a sentence.
pub fn encode_error(text: &str) -> Vec<u8> {
    encode(&Refusal::new(text).into_reply(), Version::Resp2)
}

/// The output leaves out the arguments, which may be long and secret.
impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.parts().next().unwrap_or_default();
        write!(f, "{} of {} parts", name[..name.len().min(SHOWN)].escape_ascii(), self.parts().len())
    }
}

/// The encoding of a request. The lengths of the parts come first.
#[derive(Serialize, Deserialize)]
struct Encoded<B> {
    is_version_3: bool,
    lengths: Vec<u32>,
    bytes: B,
}

impl Serialize for Request {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (bytes, lengths) = self.args.lengths();
        let lengths: Result<Vec<u32>, _> = lengths.map(u32::try_from).collect();
        let lengths = lengths.map_err(S::Error::custom)?;
        Encoded { is_version_3: self.version == Version::Resp3, lengths, bytes: Bytes::new(bytes) }
            .serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Request {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Encoded { is_version_3, lengths, bytes } = Encoded::<ByteBuf>::deserialize(deserializer)?;
        let version = if is_version_3 { Version::Resp3 } else { Version::Resp2 };
        let len = bytes.len();
        let args = OwnedArgs::of_lengths(bytes.into_vec(), &lengths).ok_or_else(|| {
            D::Error::custom(format!("the parts of a request: expected {len} bytes in all, found other lengths"))
        })?;
        Ok(Self { version, args })
    }
}
