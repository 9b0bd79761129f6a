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
//!   length + 1 << 1 | 1  anything else: a byte follows, is replaceable << 7 | tag << 1 | is tombstone
//! ```
//!
//! A replaceable node has a word before its link: the node that replaces its value, kind and tag, or 0 (`read.rs`).
//!
//! I4 frozen bytes: everything right of the link is written before the node is linked and never again, except the meta
//! words of a list, which are its documented atomics (`skiplist/stamp.rs`).

mod id;
mod read;
mod write;

pub(crate) use id::{FIRST_NODE, Link, NodeId, Predecessor};
pub(crate) use read::{Node, Record};
pub use write::{Kind, MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN};
pub(crate) use write::{NewNode, Target};
