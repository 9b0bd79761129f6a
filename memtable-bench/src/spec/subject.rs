//! The names of tables and engines, what they are compared as, and what each of them can do.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Shape;
use super::store::Store;
use super::workload::Workload;

/// skl's inserts take O(n): filling a table of 100,000 takes minutes, one of 3 M days.
const MOST_OF_SKL: usize = 20_000;

/// The names of tables and engines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Subject {
    /// fastskip's ConcurrentSkipList
    Fastskip,
    /// The same through insert_batch and get_many, 256 at a time
    FastskipBatch,
    /// fastskip's Memtable, put one by one
    Memtable,
    /// The same through reserve, apply and get_many, 256 at a time
    MemtableBatch,
    /// The published fastskip 0.1.1, another author's
    FastskipPublished,
    /// crossbeam's SkipMap
    CrossbeamSkiplist,
    /// skl's SkipMap (build with --features skl)
    Skl,
    /// scc's TreeIndex, a B+ tree
    Treeindex,
    /// The standard BTreeMap behind an RwLock
    Btreemap,
    /// 16 of those, keys spread over them by hash
    ShardedBtreemap,
    /// The standard HashMap behind a Mutex
    Hashmap,
    /// A Vec behind a Mutex: appended to, then sorted
    Vec,
    /// This workspace's engine
    MiniEngine,
    /// The same with its tables mapped into memory: reads only
    MiniEngineMmap,
    /// The same with its vector memtable: writes only
    MiniEngineVector,
    /// The same with tiered merges: overwrite only
    MiniEngineTiered,
    /// The same with lazy-leveled merges: overwrite only
    MiniEngineLazyLeveled,
    /// The same with merges of single tables: overwrite only
    MiniEnginePartial,
    /// fjall, an LSM tree
    Fjall,
    /// RocksDB, an LSM tree (build with --features rocksdb)
    Rocksdb,
    /// LevelDB, an LSM tree (build with --features leveldb)
    Leveldb,
    /// LMDB through heed, a B+ tree in a memory map
    Lmdb,
    /// redb, a B+ tree that copies on write
    Redb,
    /// sled, a tree of pages in a log
    Sled,
    /// A file that records are appended to, no engine: writes only
    Log,
}

/// What a subject is compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of this workspace.
    Own,
    /// Built alike: a skip list beside tables, an LSM tree beside engines.
    ClosePeer,
    OtherPeer,
    /// Not a peer, since it has no order before it is sorted, or none at all, or no files: it shows what merely storing costs.
    Floor,
}

impl Subject {
    /// All subjects, built or not.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Those that take part where records are in this store.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::all().iter().copied().filter(move |subject| match store {
            Store::Table => !subject.is_engine(),
            _ => subject.is_engine() || subject.is_floor_of_engines(),
        })
    }

    /// Whether it keeps records in files.
    pub(crate) fn is_engine(self) -> bool {
        self as usize >= Self::MiniEngine as usize
    }

    /// Tables without a log, which show what an engine could reach at most.
    fn is_floor_of_engines(self) -> bool {
        matches!(self, Self::Memtable | Self::Hashmap | Self::Vec)
    }

    /// The feature that this program lacks to measure the subject, if there is one.
    pub(crate) fn missing_feature(self) -> Option<&'static str> {
        match self {
            Self::Skl => (!cfg!(feature = "skl")).then_some("skl"),
            Self::Rocksdb => (!cfg!(feature = "rocksdb")).then_some("rocksdb"),
            Self::Leveldb => (!cfg!(feature = "leveldb")).then_some("leveldb"),
            _ => None,
        }
    }

    pub(crate) fn role(self) -> Role {
        match self {
            Self::Fastskip | Self::FastskipBatch | Self::Memtable | Self::MemtableBatch => Role::Own,
            Self::MiniEngine | Self::MiniEngineMmap | Self::MiniEngineVector | Self::MiniEngineTiered => Role::Own,
            Self::MiniEngineLazyLeveled | Self::MiniEnginePartial => Role::Own,
            Self::FastskipPublished | Self::CrossbeamSkiplist | Self::Skl => Role::ClosePeer,
            Self::Fjall | Self::Rocksdb | Self::Leveldb => Role::ClosePeer,
            Self::Treeindex | Self::Btreemap | Self::ShardedBtreemap => Role::OtherPeer,
            Self::Lmdb | Self::Redb | Self::Sled => Role::OtherPeer,
            Self::Hashmap | Self::Vec | Self::Log => Role::Floor,
        }
    }

    /// The same table, 256 operations at a time.
    pub(crate) fn batched(self) -> Option<Self> {
        match self {
            Self::Fastskip => Some(Self::FastskipBatch),
            Self::Memtable => Some(Self::MemtableBatch),
            _ => None,
        }
    }

    pub(crate) fn is_batched(self) -> bool {
        matches!(self, Self::FastskipBatch | Self::MemtableBatch)
    }

    /// Whether it can do this workload. Batch subjects only do what comes in batches; the one-by-one subject of the same
    /// table shows the rest.
    pub(crate) fn can(self, workload: Workload) -> bool {
        if self.is_engine() {
            return self.can_as_engine(workload);
        }
        let finds = !self.is_batched() && self != Self::Vec;
        match workload {
            Workload::Put => self.is_floor_of_engines(),
            Workload::Insert => true,
            Workload::Sort => self == Self::Vec,
            Workload::GetMany => self.is_batched(),
            Workload::Get | Workload::Miss | Workload::Mixed | Workload::Mixed95 => finds,
            Workload::Delete | Workload::InsertLatency => finds,
            Workload::Scan | Workload::Seek | Workload::SeekOne => finds && self != Self::Hashmap,
            Workload::Reverse => finds && !matches!(self, Self::Hashmap | Self::FastskipPublished),
            Workload::FrozenScan => matches!(self, Self::Fastskip | Self::Memtable),
            _ => false,
        }
    }

    /// Logs, and memtables that differ in what they take, only write; mapped tables only differ in reads; policies of merges differ in what overwriting costs.
    fn can_as_engine(self, workload: Workload) -> bool {
        use Workload::{Get, Load, Miss, Overwrite, Put, PutBatch, Replay, Scan10, Scan10k, Scan100, SyncedPut};
        match self {
            Self::MiniEngineTiered | Self::MiniEngineLazyLeveled | Self::MiniEnginePartial => workload == Overwrite,
            Self::MiniEngineMmap => matches!(workload, Get | Miss | Scan10 | Scan100 | Scan10k),
            Self::MiniEngineVector | Self::Log => matches!(workload, Put | PutBatch | SyncedPut | Load),
            _ if workload == Replay => self == Self::MiniEngine || self.role() == Role::ClosePeer,
            _ => workload.is_of_engines() || matches!(workload, Get | Miss),
        }
    }

    pub(crate) fn can_any(self, workloads: &[Workload]) -> bool {
        workloads.iter().any(|&workload| self.can(workload))
    }

    /// Whether this program has it, and a round of this shape ends in a reasonable time.
    pub(crate) fn is_measurable(self, shape: &Shape) -> bool {
        self.missing_feature().is_none() && (self != Self::Skl || shape.entries <= MOST_OF_SKL)
    }
}
