//! What is done to a table while the clock runs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// The workloads, in the order in which a round does them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// Store every key
    Insert,
    /// Sort what was stored without order (vec only)
    Sort,
    /// Find every stored key, in random order
    Get,
    /// The same in batches of 256 (batch subjects only)
    GetMany,
    /// Search as many keys that are not stored
    Miss,
    /// Read all entries in order
    Scan,
    /// Go to a random key and read 100 entries from there; a tenth as often as there are keys
    Seek,
    /// Go to a random key and read it
    SeekOne,
    /// Read all entries in order, from the end
    Reverse,
    /// As many operations as there are keys, half of them reads, half of them writes of new keys
    Mixed,
    /// The same, 95 % of them reads
    #[value(name = "mixed-95")]
    #[serde(rename = "mixed-95")]
    Mixed95,
    /// Delete every key of the first insert, in random order
    Delete,
    /// Freeze a fresh table, then read all its entries in order (fastskip and memtable only)
    FrozenScan,
}

impl Workload {
    pub(crate) const ALL: [Self; 13] = [
        Self::Insert,
        Self::Sort,
        Self::Get,
        Self::GetMany,
        Self::Miss,
        Self::Scan,
        Self::Seek,
        Self::SeekOne,
        Self::Reverse,
        Self::Mixed,
        Self::Mixed95,
        Self::Delete,
        Self::FrozenScan,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Sort => "sort",
            Self::Get => "get",
            Self::GetMany => "get-many",
            Self::Miss => "miss",
            Self::Scan => "scan",
            Self::Reverse => "reverse",
            Self::Seek => "seek",
            Self::SeekOne => "seek-one",
            Self::Mixed => "mixed",
            Self::Mixed95 => "mixed-95",
            Self::Delete => "delete",
            Self::FrozenScan => "frozen-scan",
        }
    }

    /// What peers do instead, where they have nothing of the kind: it is what the figures are compared with.
    pub(crate) fn of_peers(self) -> Self {
        match self {
            Self::GetMany => Self::Get,
            Self::FrozenScan => Self::Scan,
            same => same,
        }
    }
}
