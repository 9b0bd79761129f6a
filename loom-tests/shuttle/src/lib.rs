//! `fastskip` under random schedules: its production sources, compiled against shuttle's atomics and locks.
//!
//! loom, one folder up, runs every execution of programs that are small enough, weak memory included. Here memory is
//! sequentially consistent, and schedules are drawn: what is looked for are mistakes of logic among four threads that do
//! more than loom could follow. As there, `sync`, `storage`, `thread` and `tuning` are not those that ship, and every
//! other module is.
//!
//! The schedules are drawn evenly or by priorities (PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized
//! scheduler with probabilistic guarantees of finding bugs", 2010).

#[path = "../../../fastskip/src/arena/mod.rs"]
mod arena;
#[path = "../../../fastskip/src/bounds.rs"]
mod bounds;
#[path = "../../../fastskip/src/budget.rs"]
mod budget;
#[path = "../../../fastskip/src/builder.rs"]
mod builder;
#[path = "../../../fastskip/src/config.rs"]
mod config;
#[path = "../../../fastskip/src/cursor.rs"]
mod cursor;
#[path = "../../../fastskip/src/error.rs"]
mod error;
#[path = "../../../fastskip/src/frozen.rs"]
mod frozen;
#[path = "../../../fastskip/src/gate.rs"]
mod gate;
#[path = "../../../fastskip/src/height.rs"]
mod height;
#[path = "../../../fastskip/src/key.rs"]
mod key;
#[path = "../../../fastskip/src/list/mod.rs"]
mod list;
#[path = "../../../fastskip/src/memtable.rs"]
mod memtable;
#[path = "../../../fastskip/src/memtable_cursor.rs"]
mod memtable_cursor;
#[path = "../../../fastskip/src/node.rs"]
mod node;
#[path = "../../../fastskip/src/search.rs"]
mod search;
#[path = "../../../fastskip/src/skiplist/mod.rs"]
mod skiplist;
#[path = "../../../fastskip/src/snapshot.rs"]
mod snapshot;
#[path = "../../../fastskip/src/stamp.rs"]
mod stamp;
#[path = "../../../fastskip/src/stats.rs"]
mod stats;
#[path = "../../../fastskip/src/trail.rs"]
mod trail;
#[path = "../../../fastskip/src/validate.rs"]
mod validate;
#[path = "../../../fastskip/src/versions.rs"]
mod versions;
#[path = "../../../fastskip/src/walk.rs"]
mod walk;

pub mod models;
pub mod schedules;
#[path = "../../src/storage.rs"]
mod storage;
mod sync;
mod thread;
#[path = "../../src/tuning.rs"]
mod tuning;

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
