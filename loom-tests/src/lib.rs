//! Models of `fastskip`, and of the engine's epochs, publication and syncs of writes. The production sources are compiled against loom's atomics and a
//! storage that checks its rules.
//!
//! The algorithm reaches atomics, locks and threads only through `crate::sync`, and memory only through `crate::mem::storage`. This crate has its
//! own version of these two modules, and of `tuning`, which sets sizes and thresholds. Every other module below is the shipped file. `models`
//! holds the concurrent programs, `check` runs them, `weaken` makes one ordering weaker, `sources` lists all orderings, `mutants` names the model
//! that fails for each weaker one. `docs/src/verification.md` describes how to run all of it, and past results.

extern crate alloc;

#[path = "../../fastskip/src/bounds.rs"]
mod bounds;
#[path = "../../fastskip/src/builder.rs"]
mod builder;
/// A module of the engine, which does not depend on the others.
#[path = "../../mini-engine/src/epoch.rs"]
#[allow(dead_code, reason = "the models free at once what may be freed; only the engine collects")]
mod epoch;
#[path = "../../fastskip/src/error.rs"]
mod error;
#[path = "../../fastskip/src/index/mod.rs"]
mod index;
#[path = "../../fastskip/src/iter/mod.rs"]
mod iter;
#[path = "../../fastskip/src/key.rs"]
mod key;
#[path = "../../fastskip/src/list/mod.rs"]
mod list;
#[path = "../../fastskip/src/mem"]
mod mem {
    pub(crate) mod arena;
    pub(crate) mod budget;
    mod chunk;
    pub(crate) mod lanes;
    pub(crate) mod quota;
    mod spares;
    #[path = "../../../loom-tests/src/storage.rs"]
    pub(crate) mod storage;
}
/// Also a module of the engine.
#[path = "../../mini-engine/src/wal/group_commit.rs"]
#[allow(dead_code, reason = "the models take turns; only the engine tries for one")]
mod group_commit;
#[path = "../../fastskip/src/memtable/mod.rs"]
mod memtable;
#[path = "../../fastskip/src/node/mod.rs"]
mod node;
#[path = "../../fastskip/src/order.rs"]
mod order;
/// Also a module of the engine.
#[path = "../../mini-engine/src/db/core/publication.rs"]
mod publication;
#[path = "../../fastskip/src/skiplist/mod.rs"]
mod skiplist;

pub mod check;
pub mod models;
pub mod mutants;
pub mod sources;
mod sync;
mod tuning;
mod types {
    pub(crate) type SeqNo = u64;
}
pub mod weaken;

pub use bounds::KeyBounds;
pub use builder::{BuildTable, Builder, Duplicates, MAX_SHARDS};
pub use error::{BatchError, InsertError};
pub use iter::cursor::TableCursor;
pub use iter::owned::{OwnedBytes, OwnedItem};
pub use iter::range::TableIter;
pub use iter::source::{TableHandle, TableSource};
pub use list::stats::{SearchCost, Stats};
pub use mem::budget::MemoryBudget;
pub use mem::storage::TablePool;
pub use memtable::{
    FrozenMemtable, Lookup, Memtable, MemtableCursor, Op, OwnedMemtableCursor, OwnedVersion, OwnedVersions,
    Reservation, Room, Version, Versions, Written,
};
pub use node::{Kind, MAX_KEY_LEN, MAX_TAG, MAX_VALUE_LEN};
pub use skiplist::{
    ConcurrentSkipList, Cursor, Entries, Entry, FrozenList, OwnedCursor, OwnedEntries, OwnedEntry, OwnedSnapshot,
    SealError, Snapshot,
};
