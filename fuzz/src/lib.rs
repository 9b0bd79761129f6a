//! The bodies of the fuzz targets: any bytes are read as a list of operations, which a table and an ordinary map both
//! carry out. The bodies panic where the two differ, and return which operations they met.
//!
//! They are plain functions, so a test replays every committed input on a stable compiler.

mod input;
mod memtable;
mod skiplist;

pub use memtable::{MemtableOp, memtable_ops};
pub use skiplist::{SkipListOp, skiplist_ops};
