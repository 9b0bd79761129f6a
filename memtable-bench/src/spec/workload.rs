//! What is done to a table or to an engine while the clock runs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::store::Store;

/// The workloads, in the order in which a round does them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Workload {
    /// Store every key
    #[default]
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
    /// Store every key in an empty database, one by one (from here on engines only)
    Put,
    /// The same, until all of it is flushed and synced
    Load,
    /// The same as put, in batches of 100
    PutBatch,
    /// The same as put, each write synced before it is acknowledged
    SyncedPut,
    /// Go to a random key and read 10 entries from there
    #[value(name = "scan-10")]
    #[serde(rename = "scan-10")]
    Scan10,
    /// Go to a random key and read 100 entries from there
    #[value(name = "scan-100")]
    #[serde(rename = "scan-100")]
    Scan100,
    /// Go to a random key and read 10,000 entries from there
    #[value(name = "scan-10k")]
    #[serde(rename = "scan-10k")]
    Scan10k,
    /// Find random keys while another thread overwrites others as fast as it can
    ReadWhileWriting,
    /// Overwrite three times as many keys as there are, drawn at random, then wait for merges: the amplifications
    Overwrite,
    /// YCSB A: half reads, half updates
    YcsbA,
    /// YCSB B: 95 % reads, 5 % updates
    YcsbB,
    /// YCSB C: reads
    YcsbC,
    /// YCSB D: 95 % reads of the newest, 5 % inserts
    YcsbD,
    /// YCSB E: 95 % scans of 1 to 100 entries, 5 % inserts
    YcsbE,
    /// YCSB F: half reads, half reads followed by an update of the same key
    YcsbF,
    /// Open the copy of a database that was not closed, as a killed process leaves it: all of it is in the log
    Replay,
    /// Open a database that was flushed and closed, and read a key
    Open,
}

impl Workload {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Whether it is one of the Yahoo Cloud Serving Benchmark.
    pub(crate) fn is_ycsb(self) -> bool {
        (Self::YcsbA as usize..=Self::YcsbF as usize).contains(&(self as usize))
    }

    /// Whether an engine does it with a full database at rest.
    pub(crate) fn is_at_rest(self) -> bool {
        !matches!(self, Self::Put | Self::Load | Self::PutBatch | Self::SyncedPut | Self::Replay)
    }

    /// Whether operations may wait for flushes and merges.
    pub(crate) fn has_stalls(self) -> bool {
        matches!(self, Self::Put | Self::PutBatch | Self::Overwrite | Self::ReadWhileWriting)
    }

    /// Whether its operations may be divided among threads: none reads what another one writes.
    pub(crate) fn takes_threads(self) -> bool {
        !self.is_ycsb() && !matches!(self, Self::Overwrite | Self::ReadWhileWriting)
    }

    /// Whether no table can do it.
    pub(crate) fn is_of_engines(self) -> bool {
        self as usize >= Self::Put as usize
    }

    /// Those of tables, or those of engines.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        let is_shared = |of: Self| matches!(of, Self::Get | Self::Miss);
        Self::all().iter().copied().filter(move |of| match store {
            Store::Table => !of.is_of_engines(),
            _ => of.is_of_engines() || is_shared(*of),
        })
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
            Self::Put => "Put",
            Self::Load => "Load, flushed and synced",
            Self::PutBatch => "Put in batches of 100, a record",
            Self::SyncedPut => "Put, each synced",
            Self::Scan10 => "Seek and read 10",
            Self::Scan100 => "Seek and read 100",
            Self::Scan10k => "Seek and read 10,000",
            Self::ReadWhileWriting => "Get while another thread writes",
            Self::Overwrite => "Overwrite three times",
            Self::YcsbA => "YCSB A: half updates",
            Self::YcsbB => "YCSB B: 5 % updates",
            Self::YcsbC => "YCSB C: reads",
            Self::YcsbD => "YCSB D: reads of the newest",
            Self::YcsbE => "YCSB E: short scans",
            Self::YcsbF => "YCSB F: half read-modify-writes",
            Self::Replay => "Open with everything in the log",
            Self::Open => "Open",
        }
    }
}
