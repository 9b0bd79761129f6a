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
    /// Fill a fresh table, each insert timed by itself: percentiles, and the cost of the clock (not of batches and vec)
    InsertLatency,
}

impl Workload {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// The workload of the peers that this one is compared with: they have neither batches of reads nor frozen tables.
    pub(crate) fn of_peers(self) -> Self {
        match self {
            Self::GetMany => Self::Get,
            Self::FrozenScan => Self::Scan,
            same => same,
        }
    }

    /// The workloads that are compared with this one, itself among them.
    pub(crate) fn family(self) -> impl Iterator<Item = Self> {
        Self::all().iter().copied().filter(move |other| other.of_peers() == self)
    }

    /// What a title calls it.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Insert => "Insert",
            Self::InsertLatency => "Insert, the median of single ones",
            Self::Sort => "Sort",
            Self::Get | Self::GetMany => "Get",
            Self::Miss => "Get of absent keys",
            Self::Scan | Self::FrozenScan => "Scan, an entry",
            Self::Reverse => "Scan from the end, an entry",
            Self::Seek => "Seek and read 100",
            Self::SeekOne => "Seek and read one",
            Self::Mixed => "Half reads, half writes",
            Self::Mixed95 => "95 % reads, 5 % writes",
            Self::Delete => "Delete",
        }
    }
}
