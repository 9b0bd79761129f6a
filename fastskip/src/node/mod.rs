//! Nodes: how they lie in the arena, and the ids that name them.
//!
//! ```text
//!   link | meta ... | klen key vlen+kind value | padding
//!   8 bytes each      lengths as varints         to 8 bytes
//! ```
//!
//! The last bit of the value's length tells a tombstone.
//!
//! I4 frozen bytes: everything right of the link is written before the node is linked and never again, except the meta
//! words of a list, which are its documented atomics (`list/stamp.rs`).

mod id;
mod link;
mod read;
mod write;

pub(crate) use id::{FIRST_NODE, NodeId, Predecessor};
pub(crate) use link::Link;
pub(crate) use read::Node;
pub(crate) use write::NewNode;

/// The longest key: 64 KiB - 1.
pub const MAX_KEY_LEN: usize = u16::MAX as usize;
/// The longest value: 1 GiB.
pub const MAX_VALUE_LEN: usize = 1 << 30;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
