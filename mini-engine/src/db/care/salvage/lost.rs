//! [`LostKeys`]: an unreadable part of a table, described by its range of keys.

use std::fmt;
use std::ops::{Bound, Range};
use std::path::PathBuf;

use crate::error::Error;
use crate::types::{SeqNo, ShownKey, Slice, is_above, is_below};

/// A range of keys of a damaged table that has lost versions. Other tables and the logs may hold further versions of these keys. The keys are stored
/// keys: with the prefix of their keyspace, which keys of the default keyspace have only if they begin with the byte 0xff.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct LostKeys {
    /// The table's file.
    pub file: PathBuf,
    /// The bytes of the file that cannot be read.
    pub bytes: Range<u64>,
    /// The lower bound of the keys that may be lost.
    pub from: Bound<Slice>,
    /// The upper bound of the keys that may be lost.
    pub to: Bound<Slice>,
    /// The greatest sequence number that a lost version may have: a remaining version above it is the newest of its key.
    pub newest: SeqNo,
    /// The error of reading the lost bytes.
    pub cause: Error,
}

impl LostKeys {
    /// Whether versions of `key` may be lost.
    pub fn contains(&self, key: impl AsRef<[u8]>) -> bool {
        let key = key.as_ref();
        !self.begins_after(key) && !self.ends_before(key)
    }

    /// Whether a version of `key` that is newer than `seqno` may be lost.
    pub(crate) fn may_hide(&self, key: &[u8], seqno: SeqNo) -> bool {
        seqno <= self.newest && self.contains(key)
    }

    /// Whether keys within these bounds may be lost.
    pub(crate) fn overlaps(&self, (lower, upper): (Bound<&[u8]>, Bound<&[u8]>)) -> bool {
        let ends_below = match lower {
            Bound::Included(lower) | Bound::Excluded(lower) => self.ends_before(lower),
            Bound::Unbounded => false,
        };
        let begins_above = match upper {
            Bound::Included(upper) | Bound::Excluded(upper) => self.begins_after(upper),
            Bound::Unbounded => false,
        };
        !ends_below && !begins_above
    }

    /// Whether the whole range lies below `key`.
    pub(crate) fn ends_before(&self, key: &[u8]) -> bool {
        !is_below(key, self.to.as_ref().map(|to| &**to))
    }

    /// Whether the whole range lies above `key`.
    fn begins_after(&self, key: &[u8]) -> bool {
        !is_above(key, self.from.as_ref().map(|from| &**from))
    }
}

impl fmt::Display for LostKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "versions of keys ")?;
        match &self.from {
            Bound::Included(from) => write!(f, "from {}", ShownKey(from))?,
            Bound::Excluded(from) => write!(f, "after {}", ShownKey(from))?,
            Bound::Unbounded => write!(f, "from the first one")?,
        }
        match &self.to {
            Bound::Included(to) => write!(f, " to {}", ShownKey(to))?,
            Bound::Excluded(to) => write!(f, " to before {}", ShownKey(to))?,
            Bound::Unbounded => write!(f, " to the last one")?,
        }
        write!(f, " (bytes {} to {}): {}", self.bytes.start, self.bytes.end, self.cause)
    }
}
