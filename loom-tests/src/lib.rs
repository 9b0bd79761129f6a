//! Models of `fastskip`: its production sources, compiled against loom's atomics and a storage that checks its rules.
//!
//! The algorithm names only `crate::sync`, `crate::storage` and `crate::thread`; those three are this crate's own, and so are
//! `height`, which decides how tall a node's tower is, and `tuning`, which decides how much is done at once. Every other
//! module below is the file that ships. `models` holds the concurrent programs, `check` runs them, `weaken` makes one
//! ordering weaker, `sources` knows them all, `mutants` says which model notices. How to run all of it, and what was seen:
//! `docs/src/verification.md`.

#[path = "../../fastskip/src/arena/mod.rs"]
mod arena;
#[path = "../../fastskip/src/bounds.rs"]
mod bounds;
#[path = "../../fastskip/src/budget.rs"]
mod budget;
#[path = "../../fastskip/src/builder.rs"]
mod builder;
#[path = "../../fastskip/src/config.rs"]
mod config;
#[path = "../../fastskip/src/cursor.rs"]
mod cursor;
#[path = "../../fastskip/src/error.rs"]
mod error;
#[path = "../../fastskip/src/frozen.rs"]
mod frozen;
#[path = "../../fastskip/src/gate.rs"]
mod gate;
#[path = "../../fastskip/src/key.rs"]
mod key;
#[path = "../../fastskip/src/list/mod.rs"]
mod list;
#[path = "../../fastskip/src/memtable.rs"]
mod memtable;
#[path = "../../fastskip/src/memtable_cursor.rs"]
mod memtable_cursor;
#[path = "../../fastskip/src/node.rs"]
mod node;
#[path = "../../fastskip/src/search.rs"]
mod search;
#[path = "../../fastskip/src/skiplist/mod.rs"]
mod skiplist;
#[path = "../../fastskip/src/snapshot.rs"]
mod snapshot;
#[path = "../../fastskip/src/stamp.rs"]
mod stamp;
#[path = "../../fastskip/src/stats.rs"]
mod stats;
#[path = "../../fastskip/src/trail.rs"]
mod trail;
#[path = "../../fastskip/src/validate.rs"]
mod validate;
#[path = "../../fastskip/src/versions.rs"]
mod versions;
#[path = "../../fastskip/src/walk.rs"]
mod walk;

pub mod check;
mod height;
pub mod models;
pub mod mutants;
pub mod sources;
mod storage;
mod sync;
mod thread;
mod tuning;
pub mod weaken;

pub use bounds::{KeyBounds, OwnedBounds};
pub use builder::{Builder, MAX_SHARDS, Table};
pub use cursor::{Cursor, Entry, Iter};
pub use error::{BatchError, InsertError};
pub use frozen::{FrozenMemtable, SealError};
pub use memtable::{FrozenVersions, Lookup, Memtable, Op, Reservation};
pub use memtable_cursor::{Hold, MemtableCursor, OwnedCursor};
pub use node::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use skiplist::ConcurrentSkipList;
pub use snapshot::Snapshot;
pub use stats::Stats;
pub use versions::{AllVersions, Version, Versions};
