//! `fastskip` under random schedules: its production sources, compiled against shuttle's atomics and locks.
//!
//! The loom models, one folder up, run every execution of small programs, weak memory included. Here memory is sequentially consistent, and the
//! schedules are random: they search for logic errors in programs of four threads, which are too large for loom. As with loom, `sync`, `storage`
//! and `tuning` are not the shipped modules; every other module is.
//!
//! The schedules are drawn evenly or by priorities (PCT: Burckhardt, Kothari, Musuvathi and Nagarakatte, "A randomized
//! scheduler with probabilistic guarantees of finding bugs", 2010).

extern crate alloc;

#[path = "../../../fastskip/src/bounds.rs"]
mod bounds;
#[path = "../../../fastskip/src/builder.rs"]
mod builder;
#[path = "../../../fastskip/src/error.rs"]
mod error;
#[path = "../../../fastskip/src/index/mod.rs"]
mod index;
#[path = "../../../fastskip/src/iter/mod.rs"]
mod iter;
#[path = "../../../fastskip/src/key.rs"]
mod key;
#[path = "../../../fastskip/src/list/mod.rs"]
mod list;
#[path = "../../../fastskip/src/mem"]
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
#[path = "../../../fastskip/src/memtable/mod.rs"]
mod memtable;
#[path = "../../../fastskip/src/node/mod.rs"]
mod node;
#[path = "../../../fastskip/src/order.rs"]
mod order;
#[path = "../../../fastskip/src/skiplist/mod.rs"]
mod skiplist;

pub mod models;
pub mod schedules;
mod sync;
#[path = "../../src/tuning.rs"]
#[expect(dead_code, reason = "loom hints some models sparsely; here all nodes have hints")]
mod tuning;

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
