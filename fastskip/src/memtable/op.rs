//! Write operations, and what writes return.

use core::slice;

use crate::error::InsertError;
use crate::node::{Kind, MAX_TAG, NewNode};

/// A write operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Op<'a> {
    /// Stores a value for `key`.
    Put {
        /// The key.
        key: &'a [u8],
        /// The value.
        value: &'a [u8],
    },
    /// Stores a tombstone for `key`, whether or not the key is in this table.
    Delete {
        /// The key.
        key: &'a [u8],
    },
    /// Stores a value or tombstone for `key`, with a tag.
    Tagged {
        /// The key.
        key: &'a [u8],
        /// The value, given in parts that are joined. A tombstone may have a value too.
        value: &'a [&'a [u8]],
        /// Whether this is a value or a tombstone.
        kind: Kind,
        /// Six bits for the engine's use, at most [`MAX_TAG`](crate::MAX_TAG). For example, they can mark a value as a pointer to a blob or as a
        /// merge operand, or a tombstone as weak. The table stores the tag and never interprets it. A tag other than 0 takes one byte.
        tag: u8,
    },
    /// The same as [`Tagged`](Self::Tagged), with a value of two parts, such as a header and the bytes behind it. A batch of these needs no list of
    /// parts for each value.
    Joined {
        /// The key.
        key: &'a [u8],
        /// The two parts of the value, which are joined.
        value: [&'a [u8]; 2],
        /// Whether this is a value or a tombstone.
        kind: Kind,
        /// See [`Tagged`](Self::Tagged).
        tag: u8,
    },
}

impl<'a> Op<'a> {
    /// The key that the operation writes.
    #[must_use]
    pub fn key(&self) -> &'a [u8] {
        match *self {
            Self::Put { key, .. } | Self::Delete { key } | Self::Tagged { key, .. } | Self::Joined { key, .. } => key,
        }
    }

    /// The value that the operation writes, in parts.
    #[must_use]
    pub fn value(&self) -> &[&'a [u8]] {
        match self {
            Self::Put { value, .. } => slice::from_ref(value),
            Self::Delete { .. } => &[],
            Self::Tagged { value, .. } => value,
            Self::Joined { value, .. } => value,
        }
    }

    /// Whether the operation writes a value or a tombstone.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match *self {
            Self::Put { .. } => Kind::Value,
            Self::Delete { .. } => Kind::Tombstone,
            Self::Tagged { kind, .. } | Self::Joined { kind, .. } => kind,
        }
    }

    #[inline]
    fn tag(&self) -> u8 {
        if let Self::Tagged { tag, .. } | Self::Joined { tag, .. } = *self { tag } else { 0 }
    }

    #[inline]
    pub(super) fn new_node(&self, version: u64) -> NewNode<'_> {
        NewNode::new(self.key(), self.value(), self.kind(), self.tag(), version)
    }

    /// The reason why no table can encode the operation.
    #[cold]
    pub(super) fn limit_passed(&self) -> InsertError {
        if self.tag() > MAX_TAG { InsertError::InvalidTag } else { InsertError::TooLarge }
    }
}

/// The result of a write or a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Written {
    /// The number of writes that were stored.
    pub stored: usize,
    /// The number of stored writes that replaced an earlier write with the same key and sequence number; only the others increase `len`. Always 0
    /// unless the table has [`Duplicates::Replace`](crate::Duplicates::Replace).
    pub replaced: usize,
    /// The bytes of the table's memory that the writes took. [`memory_usage`](crate::Memtable::memory_usage) grows by at least this number: blocks of
    /// the index and ends of chunks are added.
    pub bytes: usize,
}

/// Whether a table has room for a batch; see [`Memtable::room_for`](crate::Memtable::room_for).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Room {
    /// There is room.
    Now,
    /// There is no room now. Reservations are open or other threads are writing, and they may give room back; or the system refused memory; or the
    /// table has a [budget](crate::MemoryBudget), of which other tables may return memory.
    Later,
    /// There is no room, and nothing is in progress that could give any back; or the batch is too large, or the table is frozen.
    Never,
}
