//! Work on a table or an engine while the clock runs.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::shape::Store;

/// Declares the workloads, each with its name in arguments and files, and its title.
macro_rules! workloads {
    ($($(#[$meta:meta])* $workload:ident $name:literal = $title:literal,)*) => {
        /// The workloads, in the order in which a round does them.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, ValueEnum, Serialize, Deserialize)]
        pub(crate) enum Workload {
            $($(#[$meta])* #[value(name = $name)] #[serde(rename = $name)] $workload,)*
        }

        impl Workload {
            /// Its name in titles.
            pub(crate) fn title(self) -> &'static str {
                match self { $(Self::$workload => $title,)* }
            }
        }
    };
}

workloads! {
    /// Store every key
    #[default]
    Insert "insert" = "Insert",
    /// Sort what was stored without order (vec only)
    Sort "sort" = "Sort",
    /// Find every stored key, in random order
    Get "get" = "Get",
    /// The same in batches of 256 (batch subjects only)
    GetMany "get-many" = "Get",
    /// Search as many keys that are not stored
    Miss "miss" = "Get of absent keys",
    /// Read all entries in order
    Scan "scan" = "Scan, an entry",
    /// Go to a random key and read 100 entries from there; a tenth as often as there are keys
    Seek "seek" = "Seek and read 100",
    /// Go to a random key and read it
    SeekOne "seek-one" = "Seek and read one",
    /// Read all entries in order, from the end
    Reverse "reverse" = "Scan from the end, an entry",
    /// As many operations as there are keys, half of them reads, half of them writes of new keys
    Mixed "mixed" = "Half reads, half writes",
    /// The same, 95 % of them reads
    Mixed95 "mixed-95" = "95 % reads, 5 % writes",
    /// Delete every key of the first insert, in random order
    Delete "delete" = "Delete",
    /// Freeze a fresh table, then read all its entries in order (fastskip and memtable only)
    FrozenScan "frozen-scan" = "Scan, an entry",
    /// Fill a fresh table, each insert timed by itself: percentiles, and the cost of the clock (not of batches and vec)
    InsertLatency "insert-latency" = "Insert, the median of single ones",
    /// Store every key in an empty database, one by one (from here on engines only)
    Put "put" = "Put",
    /// The same, until all of it is flushed and synced
    Load "load" = "Load, flushed and synced",
    /// The same as put, in batches of 100
    PutBatch "put-batch" = "Put in batches of 100, a record",
    /// The same as put, each write synced before it is acknowledged
    SyncedPut "synced-put" = "Put, each synced",
    /// Go to a random key and read 10 entries from there
    Scan10 "scan-10" = "Seek and read 10",
    /// Go to a random key and read 100 entries from there
    Scan100 "scan-100" = "Seek and read 100",
    /// Go to a random key and read 10,000 entries from there
    Scan10k "scan-10k" = "Seek and read 10,000",
    /// Find random keys while another thread overwrites others as fast as it can
    ReadWhileWriting "read-while-writing" = "Get while another thread writes",
    /// Overwrite three times as many keys as there are, drawn at random, then wait for compactions: the amplifications
    Overwrite "overwrite" = "Overwrite three times",
    /// YCSB A: half reads, half updates
    YcsbA "ycsb-a" = "YCSB A: half updates",
    /// YCSB B: 95 % reads, 5 % updates
    YcsbB "ycsb-b" = "YCSB B: 5 % updates",
    /// YCSB C: reads
    YcsbC "ycsb-c" = "YCSB C: reads",
    /// YCSB D: 95 % reads of the newest, 5 % inserts
    YcsbD "ycsb-d" = "YCSB D: reads of the newest",
    /// YCSB E: 95 % scans of 1 to 100 entries, 5 % inserts
    YcsbE "ycsb-e" = "YCSB E: short scans",
    /// YCSB F: half reads, half reads followed by an update of the same key
    YcsbF "ycsb-f" = "YCSB F: half read-modify-writes",
    /// Open the copy of a database that was not closed, as a killed process leaves it: all of it is in the log
    Replay "replay" = "Open with everything in the log",
    /// Open a database that was flushed and closed, and read a key
    Open "open" = "Open",
}

impl Workload {
    pub(crate) fn all() -> &'static [Self] {
        Self::value_variants()
    }

    /// Whether the workload belongs to the Yahoo Cloud Serving Benchmark.
    pub(crate) fn is_ycsb(self) -> bool {
        (Self::YcsbA..=Self::YcsbF).contains(&self)
    }

    /// Whether the workload needs an engine's full database at rest.
    pub(crate) fn is_at_rest(self) -> bool {
        !matches!(self, Self::Put | Self::Load | Self::PutBatch | Self::SyncedPut | Self::Replay)
    }

    /// Whether its operations are scans of a fixed number of entries.
    pub(crate) fn is_scan(self) -> bool {
        matches!(self, Self::Scan10 | Self::Scan100 | Self::Scan10k)
    }

    /// Whether operations may wait for flushes and compactions.
    pub(crate) fn has_stalls(self) -> bool {
        matches!(self, Self::Put | Self::PutBatch | Self::Overwrite | Self::ReadWhileWriting)
    }

    /// Whether threads may share the operations: no operation reads another one's write.
    pub(crate) fn takes_threads(self) -> bool {
        !self.is_ycsb() && !matches!(self, Self::Overwrite | Self::ReadWhileWriting)
    }

    /// The workloads of tables, or those of engines.
    pub(crate) fn of(store: Store) -> impl Iterator<Item = Self> {
        Self::all().iter().copied().filter(move |of| match store {
            Store::Table => *of < Self::Put,
            _ => *of >= Self::Put || matches!(of, Self::Get | Self::Miss),
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

    /// The workloads that are compared with this one, including itself.
    pub(crate) fn family(self) -> impl Iterator<Item = Self> {
        Self::all().iter().copied().filter(move |other| other.of_peers() == self)
    }
}
