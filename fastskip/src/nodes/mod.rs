//! The nodes: one sorted list, which is the truth.
//!
//! `store` leads from ids to nodes and compares them, `walk` goes along the list, and `link` puts new nodes there. What tells the
//! two types of table apart is a `schema`.
//!
//! I1 order: keys, and within a key versions descending, strictly sorted along the list. The CAS replaces exactly the link
//!    whose two ends were compared with the new node.
//! I9 partial key: see `key.rs`.

mod link;
mod schema;
mod store;
mod walk;

pub(crate) use schema::{NodeRef, Schema};
pub(crate) use store::{Compared, Cost, Nodes, Side};
pub(crate) use walk::{Splice, Walked};
