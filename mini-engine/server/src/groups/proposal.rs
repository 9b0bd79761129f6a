//! Proposals to a group, and their results.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;

use super::request::Request;
use crate::protocol::reply::Version;

/// An entry of a group's log: writes that are carried out one after the other, all at the same instant. A proposal without writes only raises the
/// instant.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Proposal {
    /// Milliseconds since 1970, by the leader's clock.
    pub at: u64,
    /// Each write has a reply.
    pub writes: Vec<Write>,
}

impl fmt::Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} writes at {} ms", self.writes.len(), self.at)
    }
}

/// A request that writes, or a transaction.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Write(pub(crate) Kind);

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) enum Kind {
    Request(Request),
    Transaction(Transaction),
    /// A WATCH. It is in the log so that it has a position among the writes.
    Watch {
        keys: Vec<ByteBuf>,
        #[serde(skip)]
        changed: Changed,
    },
    /// Changes nothing: at its position in the log, each node hashes the contents of the group.
    Check,
}

impl From<Request> for Write {
    fn from(request: Request) -> Self {
        Self(Kind::Request(request))
    }
}

impl Write {
    /// An entry that changes nothing, at which the replicas are compared.
    pub fn check() -> Self {
        Self(Kind::Check)
    }

    /// Whether this is such an entry.
    pub fn is_check(&self) -> bool {
        matches!(self.0, Kind::Check)
    }

    /// The approximate number of bytes that the write takes, in memory or encoded.
    pub fn size(&self) -> usize {
        match &self.0 {
            Kind::Request(request) => request.size(),
            Kind::Transaction(transaction) => transaction.size(),
            Kind::Watch { keys, .. } => keys.iter().map(|key| Watched::size_of(key)).sum(),
            Kind::Check => 0,
        }
    }
}

/// Requests of which either all or none are carried out; they are carried out if the keys on which they depend are unchanged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Transaction {
    pub(crate) is_version_3: bool,
    pub(crate) watched: Vec<Watched>,
    /// Whether the leader has seen a write of a watched key between the WATCH and this transaction.
    pub(crate) is_changed: bool,
    pub(crate) requests: Vec<Request>,
}

impl Transaction {
    fn size(&self) -> usize {
        let watched = self.watched.iter().map(Watched::size);
        watched.chain(self.requests.iter().map(Request::size)).sum()
    }

    pub(crate) fn version(&self) -> Version {
        if self.is_version_3 { Version::Resp3 } else { Version::Resp2 }
    }
}

/// Whether a key was written since a WATCH named it. The flag is shared by the client and the leader of the group, which are on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changed(pub(crate) Arc<AtomicBool>);

impl Changed {
    pub(crate) fn set(&self) {
        // ORDERING: Relaxed; the same task, which proposes the writes, sets it and reads it.
        self.0.store(true, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> bool {
        // ORDERING: Relaxed, as in `set`.
        self.0.load(Ordering::Relaxed)
    }
}

/// A key that WATCH named.
///
/// The key is unchanged if there is no write of it between WATCH and EXEC, which are both entries of the group's log. The leader sees all writes
/// between the two, in the order of the log, and sets `changed`. If there was another leader in between, the term shows this: every election begins a
/// new term, so one term has the entries of one leader. The expiry of a key is not a write, so the expiry time is compared too.
#[derive(Clone, Serialize, Deserialize)]
pub(crate) struct Watched {
    pub(crate) key: ByteBuf,
    /// The term of the log entry of WATCH.
    pub(crate) term: u64,
    /// The expiry time of the key, in milliseconds since 1970; 0 if it had none.
    pub(crate) expires_at: u64,
    #[serde(skip)]
    pub(crate) changed: Changed,
}

impl Watched {
    pub(crate) fn size(&self) -> usize {
        Self::size_of(&self.key)
    }

    /// The memory that a watched key takes, in bytes.
    pub(crate) fn size_of(key: &[u8]) -> usize {
        size_of::<Self>() + key.len()
    }
}

/// The output leaves out the key.
impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a key of {} bytes", self.key.len())
    }
}

/// The bytes of the reply to WATCH: a byte that shows that it is no error, the term, and the expiry time of each key.
pub(crate) fn encode_watched(term: u64, expiries: impl Iterator<Item = u64>) -> Vec<u8> {
    let numbers = [term].into_iter().chain(expiries);
    [b'+'].into_iter().chain(numbers.flat_map(u64::to_le_bytes)).collect()
}

/// The term and the expiry times of such a reply.
pub(crate) fn decode_watched(reply: &[u8]) -> Option<(u64, Vec<u64>)> {
    let (numbers, rest) = reply.strip_prefix(b"+")?.as_chunks();
    let mut numbers = numbers.iter().copied().map(u64::from_le_bytes);
    let term = numbers.next().filter(|_| rest.is_empty())?;
    Some((term, numbers.collect()))
}

/// The reply to each write of a proposal, as bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Replies(pub Vec<Vec<u8>>);
