//! The names of tables and engines, their kind in comparisons, and the workloads that each of them can do.
//!
//! A new subject is a file in `subjects`, which wraps it by `store!`, and a line in `subjects!`.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Store;
use super::workload::Workload;

/// Passes every subject to the macro `$with`: its help text, the feature that it needs (if any), its role, its ability, and its kind with the type
/// that `round` runs. The kind is a table, an engine, or both: a table that is measured among engines too.
#[rustfmt::skip]
macro_rules! subjects {
    ($with:ident) => { $with! {
        /// fastskip's ConcurrentSkipList
        Fastskip: Own, Freeze, table(subjects::own::Fastskip);
        /// The same through insert_batch and get_many, 256 at a time
        FastskipBatch: Own, Batch, table(subjects::own::Fastskip);
        /// fastskip's Memtable, put one by one
        Memtable: Own, Freeze, both(subjects::own::Memtable);
        /// The same through reserve, apply and get_many, 256 at a time
        MemtableBatch: Own, Batch, table(subjects::own::Memtable);
        /// The published fastskip 0.1.1, another author's
        FastskipPublished "peers": ClosePeer, Forward, table(subjects::lists::PublishedList);
        /// crossbeam's SkipMap
        CrossbeamSkiplist "peers": ClosePeer, Ordered, table(subjects::lists::CrossbeamList);
        /// skl's SkipMap (build with --features skl)
        Skl "skl": ClosePeer, Ordered, table(subjects::skl::SklList);
        /// scc's TreeIndex, a B+ tree
        Treeindex "peers": OtherPeer, Ordered, table(subjects::lists::Tree);
        /// masstree's MassTree15, a trie of B+ trees
        Masstree "peers": OtherPeer, Ends, table(subjects::lists::Masstree);
        /// The standard BTreeMap behind an RwLock
        Btreemap: OtherPeer, Ordered, table(subjects::maps::LockedTree);
        /// 16 of those, keys spread over them by hash
        ShardedBtreemap: OtherPeer, Ordered, table(subjects::maps::ShardedTree);
        /// The standard HashMap behind a Mutex
        Hashmap: Floor, Find, both(subjects::maps::LockedHashMap);
        /// A Vec behind a Mutex: appended to, then sorted
        Vec: Floor, Append, both(subjects::maps::LockedVec);
        /// This workspace's engine
        MiniEngine: Own, All, engine(subjects::mini::Mini);
        /// The same with its tables mapped into memory: reads only
        MiniEngineMmap: Own, Read, engine(subjects::mini::Mini);
        /// The same with its vector memtable: writes only
        MiniEngineVector: Own, Write, engine(subjects::mini::Mini);
        /// The same with tiered compaction: overwrite only
        MiniEngineTiered: Own, Overwrite, engine(subjects::mini::Mini);
        /// The same with lazy-leveled compaction: overwrite only
        MiniEngineLazyLeveled: Own, Overwrite, engine(subjects::mini::Mini);
        /// The same with compactions of single tables: overwrite only
        MiniEnginePartial: Own, Overwrite, engine(subjects::mini::Mini);
        /// fjall, an LSM tree
        Fjall "peers": ClosePeer, Lsm, engine(subjects::fjall::Fjall);
        /// RocksDB, an LSM tree (build with --features rocksdb)
        Rocksdb "rocksdb": ClosePeer, Lsm, engine(subjects::rocksdb::original::Rocksdb);
        /// LevelDB, an LSM tree (build with --features leveldb)
        Leveldb "leveldb": ClosePeer, Lsm, engine(subjects::leveldb::Leveldb);
        /// Speedb, a fork of RocksDB (build with --features speedb)
        Speedb "speedb": ClosePeer, Lsm, engine(subjects::rocksdb::fork::Speedb);
        /// TidesDB, an LSM tree (build with --features tidesdb)
        Tidesdb "tidesdb": ClosePeer, Lsm, engine(subjects::tidesdb::Tidesdb);
        /// SurrealKV, an LSM tree (build with --features surrealkv)
        Surrealkv "surrealkv": ClosePeer, Lsm, engine(subjects::surrealkv::Surrealkv);
        /// WiredTiger, a B+ tree (build with --features wiredtiger)
        Wiredtiger "wiredtiger": OtherPeer, Lsm, engine(subjects::wiredtiger::Wiredtiger);
        /// fjall with optimistic transactions: transactions only
        FjallOptimistic "peers": ClosePeer, Transact, engine(subjects::fjall::Optimistic);
        /// fjall with one writing transaction at a time: transactions only
        FjallOneWriter "peers": ClosePeer, Transact, engine(subjects::fjall::OneWriter);
        /// LMDB through heed, a B+ tree in a memory map
        Lmdb "peers": OtherPeer, Tree, engine(subjects::lmdb::Lmdb);
        /// redb, a B+ tree that copies on write
        Redb "peers": OtherPeer, Tree, engine(subjects::redb::Redb);
        /// sled, a tree of pages in a log
        Sled "peers": OtherPeer, Tree, engine(subjects::sled::Sled);
        /// A file that records are appended to, no engine: writes only
        Log: Floor, Write, engine(subjects::log::Log);
    } };
}
pub(crate) use subjects;

macro_rules! declare {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, $can:ident, $kind:ident($type:ty);)*) => {
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

            fn ability(self) -> Ability {
                match self { $(Self::$subject => Ability::$can,)* }
            }

            /// The feature that the subject needs and this build lacks, if any.
            pub(crate) fn missing_feature(self) -> Option<&'static str> {
                match self { $($(Self::$subject if !cfg!(feature = $feature) => Some($feature),)?)* _ => None }
            }

            /// Whether this is a table without a log, which shows the upper bound for engines.
            fn is_floor_of_engines(self) -> bool {
                match self { $(Self::$subject => stringify!($kind) == "both",)* }
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

/// The workloads that a subject can do. Each table from `Find` to `Freeze` does the workloads of those before it,
/// and more. The exception is `Forward`, which cannot be read backwards, although `Ends` can.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Ability {
    /// A table that only stores, and finds no key.
    Append,
    /// A table that is used only through batched calls; the one-by-one subject of the same table does the other workloads.
    Batch,
    /// A table without order.
    Find,
    /// A table that can only be read as a whole, from either end.
    Ends,
    /// A table that cannot be read backwards.
    Forward,
    Ordered,
    /// A table that can be frozen.
    Freeze,
    /// Engines. Variants of our engine differ in an option, and do only the workloads that the option affects.
    Read,
    Write,
    Transact,
    Overwrite,
    /// An engine without a log to replay.
    Tree,
    Lsm,
    /// An engine with a log, and with transactions.
    All,
}

impl Subject {
    /// The subjects for records in this store.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(move |subject| match store {
            Store::Table => !subject.is_engine(),
            _ => subject.is_engine() || subject.is_floor_of_engines(),
        })
    }

    /// Whether the subject keeps records in files.
    fn is_engine(self) -> bool {
        self.ability() >= Ability::Read
    }

    pub(crate) fn is_batched(self) -> bool {
        self.ability() == Ability::Batch
    }

    pub(crate) fn can(self, workload: Workload) -> bool {
        use Ability::{
            All, Append, Batch, Ends, Find, Forward, Freeze, Lsm, Ordered, Overwrite, Read, Transact, Tree, Write,
        };
        let can = self.ability();
        match workload {
            Workload::Insert => !self.is_engine(),
            Workload::Sort => can == Append,
            Workload::GetMany => can == Batch,
            Workload::Get | Workload::Miss => !matches!(can, Append | Batch | Write | Overwrite | Transact),
            Workload::Mixed | Workload::Mixed95 | Workload::Delete | Workload::InsertLatency => {
                (Find..=Freeze).contains(&can)
            }
            Workload::Scan | Workload::ScanBytes => (Ends..=Read).contains(&can) || can >= Tree,
            Workload::Seek | Workload::SeekOne => (Forward..=Freeze).contains(&can),
            Workload::Reverse => matches!(can, Ends | Ordered | Freeze),
            Workload::FrozenScan => can == Freeze,
            Workload::Put => self.is_floor_of_engines() || can == Write || can >= Tree,
            Workload::Load | Workload::PutBatch | Workload::SyncedPut => can == Write || can >= Tree,
            Workload::Scan10 | Workload::Scan100 | Workload::Scan10k => can == Read || can >= Tree,
            Workload::Overwrite => can >= Overwrite,
            Workload::Transactions => matches!(can, All | Transact) || matches!(self, Self::Redb | Self::Surrealkv),
            Workload::Replay => can >= Lsm,
            _ => can >= Tree,
        }
    }
}
