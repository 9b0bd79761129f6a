//! The bodies of the fuzz targets: any bytes are read as a list of operations, which a table and an ordinary map both
//! carry out. The bodies panic where the two differ, and return what they met: operations, and how they were refused.
//!
//! They are plain functions, so a test replays every committed input on a stable compiler.

mod input;
mod limits;
mod memtable;
mod record;
mod skiplist;

use std::collections::BTreeSet;

pub use memtable::{MemtableOp, memtable_ops};
pub use skiplist::{SkipListOp, skiplist_ops};

/// What inputs met: an operation by its name, or `operation: refusal`.
pub type Met = BTreeSet<String>;

/// A target's body.
pub type Body = fn(&[u8]) -> Met;

/// Every target: its name and its body.
pub const TARGETS: [(&str, Body); 2] = [("skiplist_ops", skiplist_ops), ("memtable_ops", memtable_ops)];
