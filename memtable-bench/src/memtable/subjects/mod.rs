//! The tables that are measured, and what a table has to do for that.
//!
//! The traits are generic, not objects: the clock sees the table, not calls through a vtable. A table implements those
//! traits only whose work it can do; `round` picks the workloads by them.

mod btreemap;
mod crossbeam;
mod fastskip;
mod hashmap;
mod memtable;
mod names;
mod published;
mod sharded;
mod skl;
mod treeindex;
mod vec;

use super::shape::Shape;

pub(crate) use btreemap::LockedTree;
pub(crate) use crossbeam::CrossbeamList;
pub(crate) use fastskip::{BatchedList, FastskipList};
pub(crate) use hashmap::LockedHashMap;
pub(crate) use memtable::{BatchedMemtable, OneByOneMemtable};
pub(crate) use names::{Role, Subject};
pub(crate) use published::PublishedList;
pub(crate) use sharded::ShardedTree;
pub(crate) use skl::SklList;
pub(crate) use treeindex::Tree;
pub(crate) use vec::LockedVec;

/// Operations of a batch.
const BATCH: usize = 256;

/// What is stored under a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    /// Its place in the order of inserts, from 0.
    pub(crate) number: u64,
    pub(crate) key: &'a [u8],
    pub(crate) value: &'a [u8],
}

/// A table that many threads insert into.
pub(crate) trait Insert: Sync {
    /// An empty table for rounds of this shape.
    fn new(shape: &Shape) -> Self;

    /// Stores the records; returns how many the table says it took.
    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize;

    /// The bytes it uses by its own account, if it keeps one: keys, values and all that comes with them.
    fn memory_used(&self) -> Option<u64> {
        None
    }

    /// How often a compare-and-swap found its link changed since the writer looked, if the table counts it.
    fn cas_failures(&self) -> Option<u64> {
        None
    }
}

/// A table that finds keys.
pub(crate) trait Get: Insert {
    /// What `read` makes of the key's value, which it sees in place: a table that lends need not copy.
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R>;
}

/// A table that finds many keys at once.
pub(crate) trait GetMany: Insert {
    /// Calls `each` with the value of every key that is there, in the order of the keys.
    fn get_many<'k>(&self, keys: impl Iterator<Item = &'k [u8]>, each: impl FnMut(&[u8]));
}

/// A table that can be read in order.
pub(crate) trait Ordered: Insert {
    /// Calls `each` with every key and value, in order.
    fn scan(&self, each: impl FnMut(&[u8], &[u8]));
}

/// A table that can be read in order from any key.
pub(crate) trait Seek: Ordered {
    /// Calls `each` with the first `most` keys that are not below `from`, and their values, in order.
    fn seek(&self, from: &[u8], most: usize, each: impl FnMut(&[u8], &[u8]));
}

/// A table that can be read in order from its end as well.
pub(crate) trait ScanBack: Ordered {
    /// Calls `each` with every key and value, the last one first.
    fn scan_back(&self, each: impl FnMut(&[u8], &[u8]));
}

/// A table that keys can be taken out of.
pub(crate) trait Delete: Insert {
    /// Deletes the key. It was there before `seqno`. True if the table says that it was.
    fn delete(&self, key: &[u8], seqno: u64) -> bool;
}

/// A table that can be closed for writes, and is then read as a flush reads it.
pub(crate) trait Freeze: Ordered {
    /// Refuses all further writes, then calls `each` with every key and value, in order.
    fn freeze_and_scan(&self, each: impl FnMut(&[u8], &[u8]));
}
