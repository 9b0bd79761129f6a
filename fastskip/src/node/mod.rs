//! Nodes: how they lie in the arena, the ids that name them, and one sorted list of them, which is the truth.
//!
//! ```text
//!   link | meta ... | klen key head (tag) value | padding
//!   8 bytes each      klen, head: varints         to 8 bytes
//! ```
//!
//! The head has the length of the value and the kind of the entry:
//!
//! ```text
//!   length << 1          a value, with tag 0
//!   1                    a tombstone, with tag 0 and no value
//!   length + 1 << 1 | 1  anything else: a byte follows, is replaceable << 7 | tag << 1 | is tombstone
//! ```
//!
//! A replaceable node has a word before its link: the node that replaces its value, kind and tag, or 0 (`read.rs`).
//!
//! `store` leads from ids to nodes and compares them, `walk` goes along the list, and `link` puts new nodes there.
//!
//! I1 order: keys, and within a key versions descending, strictly sorted along the list. The CAS replaces exactly the link
//!    whose two ends were compared with the new node.
//! I9 partial key: see `key.rs`.
//! I4 frozen bytes: everything right of the link is written before the node is linked and never again, except the meta
//! words of a list, which are its documented atomics (`skiplist/stamp.rs`).

mod id;
mod link;
mod read;
mod store;
mod walk;
mod write;

pub(crate) use id::{FIRST_NODE, Link, NodeId, Predecessor};
pub(crate) use read::{NodeRef, Record, Schema, prefetch_entry, write_latest};
pub(crate) use store::{Compared, Cost, Nodes, Side};
pub(crate) use walk::Splice;
pub use write::{Kind, MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN};
pub(crate) use write::{NewNode, Target};
