//! What is done to a table while the clock runs.

use clap::ValueEnum;

/// The workloads, in the order in which a round does them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Workload {
    /// Store every key
    Insert,
    /// Sort what was stored without order (vec only)
    Sort,
    /// Find every stored key, in random order
    Get,
    /// Search as many keys that are not stored
    Miss,
    /// Read all entries in order
    Scan,
    /// Read all entries in order, from the end
    Reverse,
}

impl Workload {
    pub(crate) const ALL: [Self; 6] = [Self::Insert, Self::Sort, Self::Get, Self::Miss, Self::Scan, Self::Reverse];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Sort => "sort",
            Self::Get => "get",
            Self::Miss => "miss",
            Self::Scan => "scan",
            Self::Reverse => "reverse",
        }
    }

    /// The workload of this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|workload| workload.name() == name)
    }
}
