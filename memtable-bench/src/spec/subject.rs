//! The names of tables and engines, their kind in comparisons, and the workloads that each of them can do.
//!
//! A new subject is a file in `subjects`, which wraps it by `store!`, and a line in `subjects!`.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Store;
use super::workload::Workload::{self, *};

/// Passes every subject to the macro `$with`: its help text, the feature that it needs (if any), its role, its workloads, and its kind with the type
/// that `round` runs. The kind is a table, or an engine, which has files.
#[rustfmt::skip]
macro_rules! subjects {
    ($with:ident) => { $with! {
        /// fastskip's ConcurrentSkipList
        Fastskip: Own, [FIND, WALK, SEEK, BACK, FROZEN], table(subjects::own::Fastskip);
        /// The same through insert_batch and get_many, 256 at a time
        FastskipBatch: Own, [BATCH], table(subjects::own::Fastskip);
        /// fastskip's Memtable, put one by one
        Memtable: Own, [FIND, WALK, SEEK, BACK, FROZEN, PUT], table(subjects::own::Memtable);
        /// The same through reserve, apply and get_many, 256 at a time
        MemtableBatch: Own, [BATCH], table(subjects::own::Memtable);
        /// The published fastskip 0.1.1, another author's
        FastskipPublished "peers": ClosePeer, [FIND, WALK, SEEK], table(subjects::lists::PublishedList);
        /// crossbeam's SkipMap
        CrossbeamSkiplist "peers": ClosePeer, [FIND, WALK, SEEK, BACK], table(subjects::lists::CrossbeamList);
        /// skl's SkipMap (build with --features skl)
        Skl "skl": ClosePeer, [FIND, WALK, SEEK, BACK], table(subjects::skl::SklList);
        /// scc's TreeIndex, a B+ tree
        Treeindex "peers": OtherPeer, [FIND, WALK, SEEK, BACK], table(subjects::lists::Tree);
        /// masstree's MassTree15, a trie of B+ trees
        Masstree "peers": OtherPeer, [FIND, WALK, BACK], table(subjects::lists::Masstree);
        /// The standard BTreeMap behind an RwLock
        Btreemap: OtherPeer, [FIND, WALK, SEEK, BACK], table(subjects::maps::Trees);
        /// 16 of those, keys spread over them by hash
        ShardedBtreemap: OtherPeer, [FIND, WALK, SEEK, BACK], table(subjects::maps::Trees);
        /// The standard HashMap behind a Mutex
        Hashmap: Floor, [FIND, PUT], table(subjects::maps::LockedHashMap);
        /// A Vec behind a Mutex: appended to, then sorted
        Vec: Floor, [SORT, PUT], table(subjects::maps::LockedVec);
        /// This workspace's engine
        MiniEngine: Own, [WRITE, READ, WALK, CHANGE, REPLAY, TRANSACT], engine(subjects::mini::Mini);
        /// The same with its tables mapped into memory: reads only
        MiniEngineMmap: Own, [READ, WALK], engine(subjects::mini::Mini);
        /// The same with its vector memtable: writes only
        MiniEngineVector: Own, [WRITE], engine(subjects::mini::Mini);
        /// The same with tiered compaction: overwrite only
        MiniEngineTiered: Own, [OVERWRITE], engine(subjects::mini::Mini);
        /// The same with lazy-leveled compaction: overwrite only
        MiniEngineLazyLeveled: Own, [OVERWRITE], engine(subjects::mini::Mini);
        /// The same with compactions of single tables: overwrite only
        MiniEnginePartial: Own, [OVERWRITE], engine(subjects::mini::Mini);
        /// fjall, an LSM tree
        Fjall "peers": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::fjall::Fjall);
        /// RocksDB, an LSM tree (build with --features rocksdb)
        Rocksdb "rocksdb": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::rocksdb::original::Rocksdb);
        /// LevelDB, an LSM tree (build with --features leveldb)
        Leveldb "leveldb": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::leveldb::Leveldb);
        /// Speedb, a fork of RocksDB (build with --features speedb)
        Speedb "speedb": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::rocksdb::fork::Speedb);
        /// TidesDB, an LSM tree (build with --features tidesdb)
        Tidesdb "tidesdb": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::tidesdb::Tidesdb);
        /// SurrealKV, an LSM tree (build with --features surrealkv)
        Surrealkv "surrealkv": ClosePeer, [WRITE, READ, WALK, CHANGE, REPLAY, TRANSACT], engine(subjects::surrealkv::Surrealkv);
        /// WiredTiger, a B+ tree (build with --features wiredtiger)
        Wiredtiger "wiredtiger": OtherPeer, [WRITE, READ, WALK, CHANGE, REPLAY], engine(subjects::wiredtiger::Wiredtiger);
        /// fjall with optimistic transactions: transactions only
        FjallOptimistic "peers": ClosePeer, [TRANSACT], engine(subjects::fjall::Optimistic);
        /// fjall with one writing transaction at a time: transactions only
        FjallOneWriter "peers": ClosePeer, [TRANSACT], engine(subjects::fjall::OneWriter);
        /// LMDB through heed, a B+ tree in a memory map
        Lmdb "peers": OtherPeer, [WRITE, READ, WALK, CHANGE], engine(subjects::lmdb::Lmdb);
        /// redb, a B+ tree that copies on write
        Redb "peers": OtherPeer, [WRITE, READ, WALK, CHANGE, TRANSACT], engine(subjects::redb::Redb);
        /// sled, a tree of pages in a log
        Sled "peers": OtherPeer, [WRITE, READ, WALK, CHANGE], engine(subjects::sled::Sled);
        /// A file that records are appended to, no engine: writes only
        Log: Floor, [WRITE], engine(subjects::log::Log);
    } };
}
pub(crate) use subjects;

macro_rules! declare {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, [$($can:ident),*], $kind:ident($type:ty);)*) => {
        /// The names of tables and engines.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, ValueEnum, Serialize, Deserialize)]
        #[serde(rename_all = "kebab-case")]
        pub(crate) enum Subject {
            $($(#[$doc])* $subject,)*
        }

        impl Subject {
            pub(crate) fn role(self) -> Role {
                match self { $(Self::$subject => Role::$role,)* }
            }

            fn abilities(self) -> &'static [&'static [Workload]] {
                match self { $(Self::$subject => &[$($can),*],)* }
            }

            /// The feature that the subject needs and this build lacks, if any.
            pub(crate) fn missing_feature(self) -> Option<&'static str> {
                match self { $($(Self::$subject if !cfg!(feature = $feature) => Some($feature),)?)* _ => None }
            }

            /// Whether the subject keeps records in files.
            fn is_engine(self) -> bool {
                match self { $(Self::$subject => stringify!($kind) == "engine",)* }
            }
        }
    };
}
subjects!(declare);

/// The role of a subject in comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// A table or engine of this workspace.
    Own,
    /// A peer of the same structure: a skip list among tables, an LSM tree among engines.
    ClosePeer,
    OtherPeer,
    /// Not a peer, since it is unordered, ordered only after a sort, or has no files. It shows the cost of merely storing.
    Floor,
}

/// Workloads that a subject can do together.
const FIND: &[Workload] = &[Insert, Get, Miss, Mixed, Mixed95, Delete, InsertLatency];
/// A whole table or database.
const WALK: &[Workload] = &[Scan, ScanBytes];
const SEEK: &[Workload] = &[Seek, SeekOne];
const BACK: &[Workload] = &[Reverse];
const FROZEN: &[Workload] = &[FrozenScan];
/// A table that is used only through batched calls; the one-by-one subject of the same table does the other workloads.
const BATCH: &[Workload] = &[Insert, GetMany];
/// A table that only stores, and finds no key.
const SORT: &[Workload] = &[Insert, Sort];
/// A table without a log, which shows the upper bound for engines.
const PUT: &[Workload] = &[Put];
/// Engines. Variants of our engine differ in an option, and do only the workloads that the option affects.
const WRITE: &[Workload] = &[Put, Load, PutBatch, SyncedPut];
const READ: &[Workload] = &[Get, Miss, Scan10, Scan100, Scan10k];
const OVERWRITE: &[Workload] = &[Overwrite];
const CHANGE: &[Workload] = &[ReadWhileWriting, Overwrite, YcsbA, YcsbB, YcsbC, YcsbD, YcsbE, YcsbF, Open];
/// Engines with a log.
const REPLAY: &[Workload] = &[Replay];
const TRANSACT: &[Workload] = &[Transactions];

impl Subject {
    /// The subjects for records in this store.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(move |subject| match store {
            Store::Table => !subject.is_engine(),
            _ => subject.is_engine() || subject.can(Put),
        })
    }

    pub(crate) fn is_batched(self) -> bool {
        self.can(GetMany)
    }

    pub(crate) fn can(self, workload: Workload) -> bool {
        self.abilities().iter().any(|together| together.contains(&workload))
    }
}
