//! The tables that are measured, and what a table has to do for that.
//!
//! The traits are generic, not objects: the clock sees the table, not calls through a vtable. A table implements those
//! traits only whose work it can do; `round` picks the workloads by them.

mod btreemap;
mod crossbeam;
mod fastskip;
mod memtable;
mod published;
mod vec;

use clap::ValueEnum;

use super::workload::Workload;

pub(crate) use btreemap::LockedTree;
pub(crate) use crossbeam::CrossbeamList;
pub(crate) use fastskip::FastskipList;
pub(crate) use memtable::{BatchedMemtable, OneByOneMemtable};
pub(crate) use published::PublishedList;
pub(crate) use vec::LockedVec;

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
    /// An empty table for this many writing threads.
    fn new(threads: usize) -> Self;

    /// Stores the records; returns how many the table says it took.
    fn insert<'a>(&self, records: impl Iterator<Item = Record<'a>>) -> usize;
}

/// A table that can be searched and read in order.
pub(crate) trait Search: Insert {
    /// What `read` makes of the key's value, which it sees in place: a table that lends need not copy.
    fn get<R>(&self, key: &[u8], read: impl FnOnce(&[u8]) -> R) -> Option<R>;

    /// Calls `each` with every key and value, in order.
    fn scan(&self, each: impl FnMut(&[u8], &[u8]));
}

/// A table that can be read in order from its end as well.
pub(crate) trait ScanBack: Search {
    /// Calls `each` with every key and value, the last one first.
    fn scan_back(&self, each: impl FnMut(&[u8], &[u8]));
}

/// The tables' names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Subject {
    /// fastskip's ConcurrentSkipList
    Fastskip,
    /// fastskip's Memtable, put one by one
    Memtable,
    /// fastskip's Memtable, reserve and apply 256 at a time
    MemtableBatch,
    /// The published fastskip 0.1.1, another author's
    FastskipPublished,
    /// crossbeam's SkipMap
    CrossbeamSkiplist,
    /// The standard BTreeMap behind an RwLock
    Btreemap,
    /// A Vec behind a Mutex: appended to, then sorted
    Vec,
}

/// What a subject is compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of this workspace.
    Own,
    /// A peer that is a skip list.
    SkipListPeer,
    /// A peer of another kind.
    OtherPeer,
    /// No peer, since it finds nothing before it is sorted: what merely storing costs.
    Floor,
}

impl Subject {
    pub(crate) const ALL: [Self; 7] = [
        Self::Fastskip,
        Self::Memtable,
        Self::MemtableBatch,
        Self::FastskipPublished,
        Self::CrossbeamSkiplist,
        Self::Btreemap,
        Self::Vec,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Fastskip => "fastskip",
            Self::Memtable => "memtable",
            Self::MemtableBatch => "memtable-batch",
            Self::FastskipPublished => "fastskip-published",
            Self::CrossbeamSkiplist => "crossbeam-skiplist",
            Self::Btreemap => "btreemap",
            Self::Vec => "vec",
        }
    }

    pub(crate) fn role(self) -> Role {
        match self {
            Self::Fastskip | Self::Memtable | Self::MemtableBatch => Role::Own,
            Self::FastskipPublished | Self::CrossbeamSkiplist => Role::SkipListPeer,
            Self::Btreemap => Role::OtherPeer,
            Self::Vec => Role::Floor,
        }
    }

    /// Whether it can do this workload.
    pub(crate) fn can(self, workload: Workload) -> bool {
        match workload {
            Workload::Insert => true,
            Workload::Sort => self == Self::Vec,
            Workload::Get | Workload::Miss | Workload::Scan => self != Self::Vec,
            Workload::Reverse => !matches!(self, Self::Vec | Self::FastskipPublished),
        }
    }
}
