//! The types that every layer uses: sequence numbers, kinds of entries, limits, durability.
//!
//! An entry is `(key, seqno, kind, value)`. Entries are ordered by key ascending (bytewise) and, within a key, by sequence number descending, so that
//! the newest version of a key comes first. [`entry_order`] implements that order.

mod batch;
mod compare_and_swap;
mod expiry;
mod key_bounds;
mod key_prefix;
mod lines;
mod mapped;
mod open_keyspace;
mod range_tombstone;
mod range_tombstones;
mod slice;

use std::cmp::Ordering;

use crate::error::Error;

pub(crate) use batch::{BatchOp, BatchOps, check_bounds, check_expiring_value, check_key, check_ranges, check_value};
pub use batch::{MAX_BATCH_LEN, MAX_BATCH_RANGES, WriteBatch};
pub use compare_and_swap::CompareAndSwapError;
pub(crate) use expiry::{EXPIRY_LEN, Millis, millis, shown, shown_slice, split_expiry, system_time};
pub use key_bounds::KeyBounds;
pub(crate) use key_bounds::{OwnedBounds, is_above, is_below, overlaps, owned, prefix_bounds};
pub(crate) use key_prefix::{
    DEFAULT_KEYSPACE, KeyPrefix, KeyspaceId, is_same_keyspace, is_stored_plain, split_range, split_stored,
};
pub(crate) use lines::{Shown, ShownKey, counted};
pub use mapped::MappedBytes;
pub(crate) use open_keyspace::{KeyspaceRef, OpenKeyspace};
pub(crate) use range_tombstone::{MAX_END_LEN, RangeTombstone, is_before_end, is_end, place_after, start_and_end};
pub(crate) use range_tombstones::{RangeTombstones, Span};
pub use slice::Slice;

/// A sequence number: the position of a write in the history of one database. It is less than 2^56.
pub type SeqNo = u64;

/// The largest sequence number: a snapshot at this number sees all versions.
pub(crate) const MAX_SEQNO: SeqNo = (1 << 56) - 1;

/// Fails if `last` is greater than the largest number that may be assigned.
#[inline]
pub(crate) fn check_seqno(last: SeqNo) -> crate::error::Result<()> {
    match last > MAX_SEQNO {
        true => Err(Error::Full(format!("sequence numbers are used up: at most {MAX_SEQNO} are allowed"))),
        false => Ok(()),
    }
}

/// The maximum length of a key, in bytes (64 KiB - 1), in every keyspace.
pub const MAX_KEY_LEN: usize = 65_535;

/// The maximum length of a stored key, in bytes: a key after the longest prefix of a keyspace.
pub(crate) const MAX_STORED_KEY_LEN: usize = MAX_KEY_LEN + key_prefix::MAX_PREFIX_LEN;

/// The maximum length of a value, in bytes (1 GiB).
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The kind of an entry. The numbers are those of operations in logs; in blocks, an entry that expires is stored as a tombstone that has a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub(crate) enum Kind {
    /// The key was removed.
    Tombstone = 0,
    /// The key has the entry's value.
    Value = 1,
    /// The key has a value until an instant, which is stored before the value; from then on it is absent.
    Expiring = 3,
}

impl TryFrom<u8> for Kind {
    type Error = u8;

    fn try_from(byte: u8) -> Result<Self, u8> {
        match byte {
            0 => Ok(Self::Tombstone),
            1 => Ok(Self::Value),
            3 => Ok(Self::Expiring),
            other => Err(other),
        }
    }
}

/// Orders two entries: by key ascending, then by sequence number descending.
pub(crate) fn entry_order(a: (&[u8], SeqNo), b: (&[u8], SeqNo)) -> Ordering {
    a.0.cmp(b.0).then_with(|| b.1.cmp(&a.1))
}

/// The kinds of failure that an acknowledged write survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// The write was passed to the operating system: it survives a killed process, but not a power failure.
    #[default]
    Buffered,
    /// The write, and every write before it, is on stable storage: it survives a power failure.
    Synced,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn newer_versions_come_first_within_a_key() {
        // Catches an order by ascending seqno, which would make a read return the oldest version.
        assert_eq!(entry_order((b"a", 2), (b"a", 1)), Ordering::Less);
        assert_eq!(entry_order((b"a", 1), (b"b", 9)), Ordering::Less);
        assert_eq!(entry_order((b"ab", 1), (b"a", 1)), Ordering::Greater);
        assert_eq!(entry_order((b"a", 1), (b"a", 1)), Ordering::Equal);
    }

    #[test]
    fn every_kind_and_no_other_byte_is_a_kind() {
        // Catches a decoder that maps an unknown byte to a tombstone and so deletes data.
        for kind in [Kind::Tombstone, Kind::Value, Kind::Expiring] {
            assert_eq!(Kind::try_from(kind as u8), Ok(kind));
        }
        for byte in (4..=u8::MAX).chain([2]) {
            assert_eq!(Kind::try_from(byte), Err(byte));
        }
    }
}
