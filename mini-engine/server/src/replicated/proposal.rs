//! What is proposed to a group, and what comes back.

use std::fmt;

use mini_engine::Result;
use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::request::Request;
use crate::protocol::reply::Version;
use crate::state::clock::since_1970;
use crate::state::keyspace::Keyspace;

/// Writes that are carried out one after the other, at one instant; an entry of a group's log. Without writes it only raises the instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// Milliseconds since 1970, by the leader's clock.
    pub at: u64,
    /// Each has a reply.
    pub writes: Vec<Write>,
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} writes at {} ms", self.writes.len(), self.at)
    }
}

/// A request that writes, or a transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write(pub(super) Kind);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Kind {
    Request(Request),
    Transaction(Transaction),
}

impl From<Request> for Write {
    fn from(request: Request) -> Self {
        Self(Kind::Request(request))
    }
}

impl Write {
    /// About how many bytes it takes, in memory or encoded.
    pub fn size(&self) -> usize {
        match &self.0 {
            Kind::Request(request) => request.size(),
            Kind::Transaction(transaction) => transaction.size(),
        }
    }
}

/// Requests that are carried out all or none, if what they depend on is unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Transaction {
    pub(super) is_version_3: bool,
    pub(super) watched: Vec<Watched>,
    pub(super) requests: Vec<Request>,
}

impl Transaction {
    fn size(&self) -> usize {
        let watched = self.watched.iter().map(Watched::size);
        watched.chain(self.requests.iter().map(Request::size)).sum()
    }

    pub(super) fn version(&self) -> Version {
        if self.is_version_3 { Version::Resp3 } else { Version::Resp2 }
    }
}

/// A key that WATCH named, and its value then. EXEC compares values, where a server of one node notices writes: a key that was changed and changed back
/// is unchanged.
#[derive(Clone, Serialize, Deserialize)]
pub struct Watched {
    key: ByteBuf,
    /// Its value, and when it expires in milliseconds since 1970, if ever.
    seen: Option<(ByteBuf, Option<u64>)>,
}

impl Watched {
    /// The key as it is now.
    pub(super) fn read(keyspace: &Keyspace, key: &[u8]) -> Result<Self> {
        Ok(Self { key: ByteBuf::from(key), seen: seen(keyspace, key)? })
    }

    pub(super) fn is_unchanged(&self, keyspace: &Keyspace) -> Result<bool> {
        Ok(seen(keyspace, &self.key)? == self.seen)
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn size(&self) -> usize {
        size_of::<Self>() + self.key.len() + self.seen.as_ref().map_or(0, |(value, _)| value.len())
    }
}

fn seen(keyspace: &Keyspace, key: &[u8]) -> Result<Option<(ByteBuf, Option<u64>)>> {
    let found = keyspace.get_with_expiry(key)?;
    Ok(found.map(|(value, at)| (ByteBuf::from(&*value), at.map(|at| since_1970(at).as_millis() as u64))))
}

/// Without the value.
impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of {} bytes", self.key.len())
    }
}

/// The bytes of the reply to each write of a proposal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replies(pub Vec<Vec<u8>>);
