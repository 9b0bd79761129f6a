//! The tables' names, what they are compared as, and what each of them can do.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Shape;
use super::workload::Workload;

/// skl's inserts take O(n): filling a table of 100,000 takes minutes, one of 3 M days.
const MOST_OF_SKL: usize = 20_000;

/// The tables' names.
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
}

/// What a subject is compared as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// One of this workspace.
    Own,
    SkipListPeer,
    OtherPeer,
    /// Not a peer, since it has no order before it is sorted, or none at all: it shows what merely storing costs.
    Floor,
}

impl Subject {
    /// All subjects, built or not.
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The feature that this program lacks to measure the subject, if there is one.
    pub(crate) fn missing_feature(self) -> Option<&'static str> {
        (self == Self::Skl && !cfg!(feature = "skl")).then_some("skl")
    }

    pub(crate) fn role(self) -> Role {
        match self {
            Self::Fastskip | Self::FastskipBatch | Self::Memtable | Self::MemtableBatch => Role::Own,
            Self::FastskipPublished | Self::CrossbeamSkiplist | Self::Skl => Role::SkipListPeer,
            Self::Treeindex | Self::Btreemap | Self::ShardedBtreemap => Role::OtherPeer,
            Self::Hashmap | Self::Vec => Role::Floor,
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
        let finds = !self.is_batched() && self != Self::Vec;
        match workload {
            Workload::Insert => true,
            Workload::Sort => self == Self::Vec,
            Workload::GetMany => self.is_batched(),
            Workload::Get | Workload::Miss | Workload::Mixed | Workload::Mixed95 => finds,
            Workload::Delete | Workload::InsertLatency => finds,
            Workload::Scan | Workload::Seek | Workload::SeekOne => finds && self != Self::Hashmap,
            Workload::Reverse => finds && !matches!(self, Self::Hashmap | Self::FastskipPublished),
            Workload::FrozenScan => matches!(self, Self::Fastskip | Self::Memtable),
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
