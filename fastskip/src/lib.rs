//! A lock-free skip list in an arena, made to be the memtable of an LSM storage engine.
//!
//! * [`ConcurrentSkipList`]: byte keys, the first write of a key wins, tombstones, snapshots, cursors, freezing.
//! * [`Memtable`]: versions by sequence number, overwrite, delete of absent keys, reserve-then-apply, live freeze.
//!
//! Both stand on one core. Keys are ordered bytewise; other orders are order-preserving encodings, such as big-endian
//! integers with the sign bit flipped:
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
//! # What is promised
//!
//! * **Any threads.** Both types are `Send + Sync`. Any number of threads may read and write at once, and come and go. No
//!   read or write waits for another thread; only `freeze` waits, for the writers inside.
//! * **One commit.** One successful compare-and-swap on a level-0 link makes an entry part of the table. Bytes never change
//!   afterwards.
//! * **Lifetimes.** Every slice borrows from its table. Nothing is freed before the whole table is.
//! * **Errors, not panics.** A table that is full or frozen says so and stays usable. Limits: keys up to [`MAX_KEY_LEN`],
//!   values up to [`MAX_VALUE_LEN`], 32 GiB a table.
//!
//! # Cost
//!
//! A link holds, beside its successor's offset, a partial key of the successor's key, so that about half of a search's
//! comparisons touch no node; threads are spread over shards, and those on different shards share no cache line but the
//! links they write and, in a list, its clock.
//! Beyond key and value an entry takes two links of 8 bytes in the mean, 8 (memtable) or 16 bytes (list) of version or
//! stamps, its lengths, and padding to 8 bytes.

#![doc(test(attr(deny(warnings))))]

#[cfg(not(target_pointer_width = "64"))]
compile_error!("fastskip reserves address ranges of many gigabytes and needs a 64-bit target");

mod bounds;
mod builder;
mod error;
mod key;
mod list;
mod mem;
mod memtable;
mod node;
mod skiplist;
mod sync;
mod tuning;

pub use bounds::{KeyBounds, OwnedBounds};
pub use builder::{Builder, MAX_SHARDS, Table};
pub use error::{BatchError, InsertError};
pub use list::stats::Stats;
pub use memtable::{
    AllVersions, FrozenVersions, Hold, Lookup, Memtable, MemtableCursor, Op, OwnedCursor, Reservation, Version,
    Versions,
};
pub use node::{Kind, MAX_KEY_LEN, MAX_VALUE_LEN};
pub use skiplist::{ConcurrentSkipList, Cursor, Entry, FrozenMemtable, Iter, SealError, Snapshot};
