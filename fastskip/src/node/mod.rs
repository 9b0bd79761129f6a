//! Nodes: their layout in the arena, their ids, and the one sorted list of them, which alone decides which entries exist.
//!
//! ```text
//!   link | meta ... | klen key head (tag) value | padding
//!   8 bytes each      klen, head: varints         to 8 bytes
//! ```
//!
//! The node's header has the length of the value and the kind of the entry:
//!
//! ```text
//!   length << 1          a value, with tag 0
//!   1                    a tombstone, with tag 0 and no value
//!   length + 1 << 1 | 1  anything else: a byte follows, is replaceable << 7 | tag << 1 | is tombstone
//! ```
//!
//! A replaceable node has one more word before its link: the node that replaces its value, kind and tag, or 0 (`read.rs`).
//!
//! `store` finds nodes by their ids and compares them, `walk` moves along the list, and `link` adds new nodes to it.
//!
//! I1 order: nodes are strictly sorted along the list, by key, and within a key by descending version. The CAS replaces exactly the link whose two
//! ends were compared with the new node. I9 partial key: see `key.rs`. I4 frozen bytes: everything after the link is written before the node is
//! linked and never again. Only the meta words of a list are exempt: they are documented atomics (`skiplist/stamp.rs`).

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
