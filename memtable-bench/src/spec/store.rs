//! What holds the records: a sorted table in memory, or an engine with files of its own, and the memory that engines get.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

const MIB: u64 = 1 << 20;
/// Less than this no engine takes.
const LEAST: u64 = 64 << 10;

/// See the file's header.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Store {
    /// A table in memory
    #[default]
    #[value(skip)]
    Table,
    /// An engine with a cache of 128 MiB and memtables of 64 MiB
    Engine,
    /// The same with a cache of 32 MiB
    SmallCache,
    /// A cache of a tenth of the data, and memtables of a quarter of that
    TenTimesCache,
}

impl Store {
    pub(crate) fn is_table(&self) -> bool {
        *self == Self::Table
    }

    /// The bytes of the block cache, for so many bytes of keys and values.
    pub(crate) fn cache_bytes(self, payload: u64) -> u64 {
        match self {
            Self::Table | Self::Engine => 128 * MIB,
            Self::SmallCache => 32 * MIB,
            Self::TenTimesCache => (payload / 10).max(LEAST),
        }
    }

    /// The bytes of a memtable, of a full table on disk, and of the first level that has a bound.
    pub(crate) fn memtable_bytes(self, payload: u64) -> u64 {
        match self {
            Self::TenTimesCache => (payload / 40).max(LEAST),
            _ => 64 * MIB,
        }
    }
}
