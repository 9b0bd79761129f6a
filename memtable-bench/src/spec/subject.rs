//! The names of tables and engines, their kind in comparisons, and the workloads that each of them can do.
//!
//! A new subject is a file in `subjects`, which wraps it by `store!`, and a line in `subjects!`.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::{Shape, Store};
use super::workload::Workload;

/// The most entries for skl. Its inserts take O(n): to fill a table of 100,000 takes minutes, one of 3 M days.
const MOST_OF_SKL: usize = 20_000;

/// Passes every subject to the macro `$with`: its help text, the feature that it needs (if any), its role, its ability, its colour
/// in plots, and its kind with the type that `round` runs. The kind is a table, an engine, or both: a table that is measured among
/// engines too.
///
/// In plots our subjects are blue and green, skip lists and LSM trees have warm colours, trees are olive and amber, floors grey.
#[rustfmt::skip]
macro_rules! subjects {
    ($with:ident) => { $with! {
        /// fastskip's ConcurrentSkipList
        Fastskip: Own, Freeze, 0x0c9484, table(subjects::own::Fastskip);
        /// The same through insert_batch and get_many, 256 at a time
        FastskipBatch: Own, Batch, 0x07604f, table(subjects::own::Fastskip);
        /// fastskip's Memtable, put one by one
        Memtable: Own, Freeze, 0x1769e0, both(subjects::own::Memtable);
        /// The same through reserve, apply and get_many, 256 at a time
        MemtableBatch: Own, Batch, 0x0b3f9c, table(subjects::own::Memtable);
        /// The published fastskip 0.1.1, another author's
        FastskipPublished "peers": ClosePeer, Forward, 0xd9480f, table(subjects::lists::PublishedList);
        /// crossbeam's SkipMap
        CrossbeamSkiplist "peers": ClosePeer, Ordered, 0xc2255c, table(subjects::lists::CrossbeamList);
        /// skl's SkipMap (build with --features skl)
        Skl "skl": ClosePeer, Ordered, 0x9c36b5, table(subjects::skl::SklList);
        /// scc's TreeIndex, a B+ tree
        Treeindex "peers": OtherPeer, Ordered, 0xc77700, table(subjects::lists::Tree);
        /// masstree's MassTree15, a trie of B+ trees
        Masstree "peers": OtherPeer, Ends, 0xd4a017, table(subjects::lists::Masstree);
        /// The standard BTreeMap behind an RwLock
        Btreemap: OtherPeer, Ordered, 0x5c8a0d, table(subjects::maps::LockedTree);
        /// 16 of those, keys spread over them by hash
        ShardedBtreemap: OtherPeer, Ordered, 0x8a7a1c, table(subjects::maps::ShardedTree);
        /// The standard HashMap behind a Mutex
        Hashmap: Floor, Find, 0x868e96, both(subjects::maps::LockedHashMap);
        /// A Vec behind a Mutex: appended to, then sorted
        Vec: Floor, Append, 0x495057, both(subjects::maps::LockedVec);
        /// This workspace's engine
        MiniEngine: Own, Lsm, 0x1864ab, engine(subjects::mini::Mini);
        /// The same with its tables mapped into memory: reads only
        MiniEngineMmap: Own, Read, 0x228be6, engine(subjects::mini::Mini);
        /// The same with its vector memtable: writes only
        MiniEngineVector: Own, Write, 0x1098ad, engine(subjects::mini::Mini);
        /// The same with tiered compaction: overwrite only
        MiniEngineTiered: Own, Overwrite, 0x4263eb, engine(subjects::mini::Mini);
        /// The same with lazy-leveled compaction: overwrite only
        MiniEngineLazyLeveled: Own, Overwrite, 0x3b5bdb, engine(subjects::mini::Mini);
        /// The same with compactions of single tables: overwrite only
        MiniEnginePartial: Own, Overwrite, 0x15aabf, engine(subjects::mini::Mini);
        /// fjall, an LSM tree
        Fjall "peers": ClosePeer, Lsm, 0xe8590c, engine(subjects::fjall::Fjall);
        /// RocksDB, an LSM tree (build with --features rocksdb)
        Rocksdb "rocksdb": ClosePeer, Lsm, 0xa61e4d, engine(subjects::rocksdb::Rocksdb);
        /// LevelDB, an LSM tree (build with --features leveldb)
        Leveldb "leveldb": ClosePeer, Lsm, 0x862e9c, engine(subjects::leveldb::Leveldb);
        /// LMDB through heed, a B+ tree in a memory map
        Lmdb "peers": OtherPeer, Tree, 0x2b8a3e, engine(subjects::lmdb::Lmdb);
        /// redb, a B+ tree that copies on write
        Redb "peers": OtherPeer, Tree, 0xe67700, engine(subjects::redb::Redb);
        /// sled, a tree of pages in a log
        Sled "peers": OtherPeer, Tree, 0x74b816, engine(subjects::sled::Sled);
        /// A file that records are appended to, no engine: writes only
        Log: Floor, Write, 0xadb5bd, engine(subjects::log::Log);
    } };
}
pub(crate) use subjects;

macro_rules! declare {
    ($($(#[$doc:meta])* $subject:ident $($feature:literal)?: $role:ident, $can:ident, $colour:literal, $kind:ident($type:ty);)*) => {
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

            /// Red, green and blue.
            pub(crate) fn colour(self) -> u32 {
                match self { $(Self::$subject => $colour,)* }
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
    Overwrite,
    /// An engine without a log to replay.
    Tree,
    Lsm,
}

impl Subject {
    /// All subjects, built or not.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The subjects for records in this store.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::all().iter().copied().filter(move |subject| match store {
            Store::Table => !subject.is_engine(),
            _ => subject.is_engine() || subject.is_floor_of_engines(),
        })
    }

    /// Whether the subject keeps records in files.
    fn is_engine(self) -> bool {
        self.ability() >= Ability::Read
    }

    /// The subject of the same table with 256 operations a call.
    pub(crate) fn batched(self) -> Option<Self> {
        match self {
            Self::Fastskip => Some(Self::FastskipBatch),
            Self::Memtable => Some(Self::MemtableBatch),
            _ => None,
        }
    }

    /// The subject of the same table with one operation a call.
    pub(crate) fn one_by_one(self) -> Option<Self> {
        Self::all().iter().copied().find(|of| of.batched() == Some(self))
    }

    pub(crate) fn is_batched(self) -> bool {
        self.ability() == Ability::Batch
    }

    pub(crate) fn can(self, workload: Workload) -> bool {
        use Ability::{Append, Batch, Ends, Find, Forward, Freeze, Lsm, Ordered, Overwrite, Read, Tree, Write};
        let can = self.ability();
        match workload {
            Workload::Insert => !self.is_engine(),
            Workload::Sort => can == Append,
            Workload::GetMany => can == Batch,
            Workload::Get | Workload::Miss => !matches!(can, Append | Batch | Write | Overwrite),
            Workload::Mixed | Workload::Mixed95 | Workload::Delete | Workload::InsertLatency => {
                (Find..=Freeze).contains(&can)
            }
            Workload::Scan => (Ends..=Freeze).contains(&can),
            Workload::Seek | Workload::SeekOne => (Forward..=Freeze).contains(&can),
            Workload::Reverse => matches!(can, Ends | Ordered | Freeze),
            Workload::FrozenScan => can == Freeze,
            Workload::Put => self.is_floor_of_engines() || matches!(can, Write | Tree | Lsm),
            Workload::Load | Workload::PutBatch | Workload::SyncedPut => matches!(can, Write | Tree | Lsm),
            Workload::Scan10 | Workload::Scan100 | Workload::Scan10k => matches!(can, Read | Tree | Lsm),
            Workload::Overwrite => can >= Overwrite,
            Workload::Replay => can == Lsm,
            _ => can >= Tree,
        }
    }

    pub(crate) fn can_any(self, workloads: &[Workload]) -> bool {
        workloads.iter().any(|&workload| self.can(workload))
    }

    /// Whether a round of this shape ends within a reasonable time.
    pub(crate) fn is_quick_enough(self, shape: &Shape) -> bool {
        self != Self::Skl || shape.entries <= MOST_OF_SKL
    }
}
