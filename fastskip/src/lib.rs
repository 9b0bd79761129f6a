//! A lock-free skip list in an arena, designed as the memtable of an LSM storage engine.
//!
//! * [`ConcurrentSkipList`]: byte keys, the first write of a key wins, tombstones, snapshots, cursors, freezing.
//! * [`Memtable`]: versions by sequence number, overwrite, delete of absent keys, reserve-then-apply, live freeze; as an option, the last write of a
//!   key and sequence number wins ([`Duplicates`]).
//!
//! Use these types for sorted data that many threads write and read, and that is dropped or written out as a whole: a memtable, an index that is
//! built once, a sorted buffer. Do not use them if the memory of single entries must be freed: memory is freed only with the whole table. For small
//! data in one thread `BTreeMap` is the better choice, and for lookups without order a hash map.
//!
//! Keys are ordered bytewise. For other orders use an order-preserving encoding, such as big-endian integers with the sign bit flipped, or a table
//! with an [`Order`] of your own. The book's page "Orders of your own" shows more encodings, and when to use which:
//!
//! ```
//! use fastskip::ConcurrentSkipList;
//!
//! let encode = |number: i64| (number ^ i64::MIN).to_be_bytes();
//! let decode = |key: &[u8]| key.try_into().map(|bytes| i64::from_be_bytes(bytes) ^ i64::MIN);
//!
//! let list = ConcurrentSkipList::new();
//! for number in [3, -7, 0, i64::MAX, i64::MIN] {
//!     list.insert(&encode(number), b"");
//! }
//! let sorted: Vec<i64> = list.iter().map(|entry| decode(entry.key)).collect::<Result<_, _>>()?;
//! assert_eq!(sorted, [i64::MIN, -7, 0, 3, i64::MAX]);
//! # Ok::<(), std::array::TryFromSliceError>(())
//! ```
//!
//! The crate's folder `examples` has programs of less than 80 lines: `basic`, `concurrent_writers`, `snapshots`, `batches`, `key_encoding`,
//! `orders`, `lsm_memtable` and `mvcc`.
//!
//! # Guarantees
//!
//! * **Threads.** Both types are `Send + Sync`. Any number of threads may read and write at the same time, and threads may come and go. No read or
//!   write waits for another thread, except while the first write reserves the table's memory. `freeze` waits for the writers inside; the last of
//!   them takes a lock for a moment to wake the freezing thread.
//! * **Atomicity.** One successful compare-and-swap on a link makes an entry part of the table. The bytes of an entry never change afterwards. With
//!   [`Duplicates::Replace`], one atomic swap makes the value of a later write replace the value of the entry.
//! * **Lifetimes.** Every slice borrows from its table or keeps it alive ([`OwnedVersion`], [`OwnedBytes`]). Memory is freed only with the whole
//!   table.
//! * **Errors, not panics.** A write to a full or frozen table, or beyond a limit, returns an error, and the table stays
//!   usable. Limits: keys up to [`MAX_KEY_LEN`], values up to [`MAX_VALUE_LEN`], 32 GiB per table; on 32-bit targets 2 GiB for all tables.
//!
//! # Cost
//!
//! Entries form one sorted list. Above the list is a tree of blocks; each block has thirty hints, which lead to entries. In a large table a search
//! misses the cache on one block and on the entry itself; the blocks above fit into the cache. A hint is verified before use, so a block may be out
//! of date. Threads are spread over shards. Threads on different shards share no cache lines except the links and blocks that they write and, in a
//! list, its clock.
//!
//! Beyond key and value, an entry takes a link of 8 bytes, 8 (memtable) or 16 bytes (list) for its version or stamps, its lengths, padding to 8
//! bytes, and about 11 bytes of blocks. In some orders of writes blocks are less full: they take 16 bytes for each entry if eight writers ascend
//! concurrently, and up to 26 if writes alternate between two gaps.
//!
//! # Features
//!
//! * `std`, by default: memory from the system, a shard for each thread, and a `freeze` that sleeps. Without it the crate is `no_std` with `alloc`: all
//!   memory is from the allocator, `freeze` spins, the first write takes a lock that spins, and a table has one shard unless more are set.
//! * `portable-atomic`: for targets without atomics of 64 bits. Takes them from the crate of this name, which locks.
//! * `scramble`: for tests.

#![doc(test(attr(deny(warnings))))]
#![cfg_attr(not(test), no_std)]

#[macro_use]
extern crate alloc;
#[cfg(feature = "std")]
extern crate std;

#[cfg(not(any(target_has_atomic = "64", feature = "portable-atomic")))]
compile_error!("fastskip needs atomics of 64 bits, which this target does not have: see its feature `portable-atomic`");

mod bounds;
mod builder;
mod error;
mod index;
mod iter;
mod key;
mod list;
mod mem;
mod memtable;
mod node;
mod order;
mod skiplist;
mod sync;
#[cfg(feature = "scramble")]
mod test_scramble;
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
pub use order::{Bytewise, Order};
pub use skiplist::{
    ConcurrentSkipList, Cursor, Entries, Entry, FrozenList, OwnedCursor, OwnedEntries, OwnedEntry, OwnedSnapshot,
    SealError, Snapshot,
};

/// The examples of the README and of pages of the book, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[doc = include_str!("../../docs/src/engine-tour.md")]
#[doc = include_str!("../../docs/src/in-an-engine.md")]
#[doc = include_str!("../../docs/src/orders.md")]
#[doc = include_str!("../../docs/src/keys.md")]
struct Pages;
