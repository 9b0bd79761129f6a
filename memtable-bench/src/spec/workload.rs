//! Work on a table or an engine while the clock runs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Store;

/// The workloads, in the order in which a round does them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, ValueEnum, Serialize, Deserialize)]
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
    /// Walk over all entries in order: the sum of their lengths
    Scan,
    /// Read every byte of all entries in order
    ScanBytes,
    /// Go to a random key and read 100 entries from there; a tenth as often as there are keys
    Seek,
    /// Go to a random key and read it
    SeekOne,
    /// Walk over all entries in order, from the end
    Reverse,
    /// As many operations as there are keys, half of them reads, half of them writes of new keys
    Mixed,
    /// The same, 95 % of them reads
    #[value(name = "mixed-95")]
    #[serde(rename = "mixed-95")]
    Mixed95,
    /// Delete every key of the first insert, in random order
    Delete,
    /// Freeze a fresh table, then walk over all its entries in order (fastskip and memtable only)
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
    /// Go to a random key and walk over 10 entries from there
    #[value(name = "scan-10")]
    #[serde(rename = "scan-10")]
    Scan10,
    /// Go to a random key and walk over 100 entries from there
    #[value(name = "scan-100")]
    #[serde(rename = "scan-100")]
    Scan100,
    /// Go to a random key and walk over 10,000 entries from there
    #[value(name = "scan-10k")]
    #[serde(rename = "scan-10k")]
    Scan10k,
    /// Find random keys while another thread overwrites others as fast as it can
    ReadWhileWriting,
    /// Overwrite three times as many keys as there are, drawn at random, then wait for compactions: the amplifications
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
    /// Transfers between two random accounts, each a transaction that reads and writes both (engines with transactions)
    Transactions,
    /// Open the copy of a database that was not closed, as a killed process leaves it: all of it is in the log
    Replay,
    /// Open a database that was flushed and closed, and read a key
    Open,
}

impl Workload {
    /// Whether the workload belongs to the Yahoo Cloud Serving Benchmark.
    pub(crate) fn is_ycsb(self) -> bool {
        (Self::YcsbA..=Self::YcsbF).contains(&self)
    }

    /// Whether the workload needs an engine's full database at rest.
    pub(crate) fn is_at_rest(self) -> bool {
        !matches!(self, Self::Put | Self::Load | Self::PutBatch | Self::SyncedPut | Self::Transactions | Self::Replay)
    }

    /// Whether its operations are scans.
    pub(crate) fn is_scan(self) -> bool {
        matches!(self, Self::Scan | Self::ScanBytes | Self::Scan10 | Self::Scan100 | Self::Scan10k)
    }

    /// Whether each thread reads everything.
    pub(crate) fn is_done_by_each(self) -> bool {
        matches!(self, Self::Scan | Self::ScanBytes | Self::Reverse)
    }

    /// Whether threads may share the operations: no operation reads another one's write.
    pub(crate) fn takes_threads(self) -> bool {
        !self.is_ycsb() && !matches!(self, Self::Overwrite | Self::ReadWhileWriting)
    }

    /// The workloads of tables, or those of engines.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::value_variants().iter().copied().filter(move |of| match store {
            Store::Table => *of < Self::Put,
            _ => *of >= Self::Put || matches!(of, Self::Get | Self::Miss | Self::Scan | Self::ScanBytes),
        })
    }

    /// The workload of the peers to which this one is compared: peers have neither batches of reads nor frozen tables.
    pub(crate) fn of_peers(self) -> Self {
        match self {
            Self::GetMany => Self::Get,
            Self::FrozenScan => Self::Scan,
            same => same,
        }
    }
}
