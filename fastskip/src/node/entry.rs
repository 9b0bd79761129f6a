//! Entries: their kinds, their limits, and the target of a search for one.

/// The longest key, in bytes: 64 KiB - 1 of a caller's own, and 8 for what an engine stores with it, such as the number of a column family.
pub const MAX_KEY_LEN: usize = u16::MAX as usize + 8;
/// The longest value: 1 GiB.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// The greatest tag: six bits.
pub const MAX_TAG: u8 = 63;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Kind {
    /// The key is deleted.
    Tombstone,
    /// The key has a value.
    Value,
}

/// The bit above a tag: the node has a word before its link, for the node that replaces it.
pub(super) const REPLACEABLE: u8 = MAX_TAG + 1;

/// What is searched for: the first entry with this key and a version not greater, or the first one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) version: u64,
}
