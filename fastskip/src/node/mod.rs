//! Nodes: how they lie in the arena, and the ids that name them.
//!
//! ```text
//!   link | meta ... | klen key head (tag) value | padding
//!   8 bytes each      klen, head: varints         to 8 bytes
//! ```
//!
//! The head tells the length of the value and what the entry is:
//!
//! ```text
//!   length << 1          a value, with tag 0
//!   1                    a tombstone, with tag 0 and no value
//!   length + 1 << 1 | 1  anything else: a byte follows, tag << 1 | is tombstone
//! ```
//!
//! I4 frozen bytes: everything right of the link is written before the node is linked and never again, except the meta
//! words of a list, which are its documented atomics (`list/stamp.rs`).

mod id;
mod link;
mod read;
mod write;

pub(crate) use id::{FIRST_NODE, NodeId, Predecessor};
pub(crate) use link::Link;
pub(crate) use read::{Node, Record};
pub(crate) use write::NewNode;

/// The longest key: 64 KiB - 1.
pub const MAX_KEY_LEN: usize = u16::MAX as usize;
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

/// What is searched for: the first entry with this key and a version not greater, or the first one after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target<'k> {
    pub(crate) key: &'k [u8],
    pub(crate) version: u64,
}
