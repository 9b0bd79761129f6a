//! [`Options`]: what a database can be tuned by, with defaults, units and ranges; [`Options::validate`] checks them.

mod choices;
mod setters;

use std::ops::RangeInclusive;

pub(crate) use setters::option_setters;

pub use choices::{Compaction, Compression, MemtableKind, RecoveryMode, TableReads};

use crate::error::{Error, Result};
use crate::types::Durability;

/// The options of a database, set by chaining; `Options::default()` suits an ordinary machine.
///
/// ```
/// use mini_engine::{Compression, Options};
///
/// let options = Options::default().memtable_bytes(1 << 20).compression(Compression::None);
/// assert!(options.validate().is_ok());
/// assert!(options.block_bytes(1).validate().is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub(crate) memtable_bytes: usize,
    pub(crate) memtable_kind: MemtableKind,
    pub(crate) immutable_memtables: usize,
    pub(crate) compaction: Option<Compaction>,
    pub(crate) size_ratio: u64,
    /// `None`: as [`Options::level_0_tables`] says.
    pub(crate) l0_trigger: Option<usize>,
    pub(crate) l0_slowdown: usize,
    pub(crate) l0_stop: usize,
    pub(crate) level1_bytes: u64,
    pub(crate) table_file_bytes: u64,
    /// `None` for a part of the data.
    pub(crate) max_compaction_bytes: Option<u64>,
    pub(crate) compaction_threads: usize,
    pub(crate) bytes_per_sync: u64,
    pub(crate) wait_for_space: bool,
    pub(crate) block_bytes: usize,
    pub(crate) partition_bytes: usize,
    pub(crate) filter_bits_per_key: u32,
    /// By level; the last one for all deeper levels too. Not empty once validated.
    pub(crate) compression: Vec<Compression>,
    pub(crate) cache_bytes: u64,
    pub(crate) table_reads: TableReads,
    pub(crate) max_open_files: Option<usize>,
    pub(crate) durability: Durability,
    pub(crate) log_compression: bool,
    pub(crate) recovery_mode: RecoveryMode,
    pub(crate) create_if_missing: bool,
    pub(crate) read_only: bool,
    pub(crate) replay_memory_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            memtable_kind: MemtableKind::SkipList,
            immutable_memtables: 1,
            compaction: None,
            size_ratio: 10,
            l0_trigger: None,
            l0_slowdown: 20,
            l0_stop: 36,
            level1_bytes: 64 << 20,
            table_file_bytes: 64 << 20,
            max_compaction_bytes: None,
            compaction_threads: 2,
            bytes_per_sync: 4 << 20,
            wait_for_space: false,
            block_bytes: 4096,
            partition_bytes: 8 << 10,
            filter_bits_per_key: 10,
            compression: vec![Compression::None, Compression::None, Compression::Lz4],
            cache_bytes: 32 << 20,
            table_reads: TableReads::Pread,
            max_open_files: None,
            durability: Durability::Buffered,
            log_compression: false,
            recovery_mode: RecoveryMode::Strict,
            create_if_missing: true,
            read_only: false,
            replay_memory_bytes: 1 << 30,
        }
    }
}

const MEMTABLE_BYTES: RangeInclusive<u64> = 4 << 10..=16 << 30;
const IMMUTABLE_MEMTABLES: RangeInclusive<u64> = 1..=64;
const SIZE_RATIO: RangeInclusive<u64> = 2..=32;
const L0_TABLES: RangeInclusive<u64> = 1..=1000;
const LEVEL1_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 50;
const TABLE_FILE_BYTES: RangeInclusive<u64> = 1 << 10..=16 << 30;
const MAX_COMPACTION_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 50;
const COMPACTION_THREADS: RangeInclusive<u64> = 1..=64;
const BYTES_PER_SYNC: RangeInclusive<u64> = 64 << 10..=16 << 30;
const BLOCK_BYTES: RangeInclusive<u64> = 512..=64 << 10;
const PARTITION_BYTES: RangeInclusive<u64> = 128..=1 << 20;
const FILTER_BITS_PER_KEY: RangeInclusive<u64> = 0..=32;
const CACHE_BYTES: RangeInclusive<u64> = 0..=1 << 50;
const MAX_OPEN_FILES: RangeInclusive<u64> = 1..=1 << 20;
const REPLAY_MEMORY_BYTES: RangeInclusive<u64> = 64 << 10..=1 << 50;
const COMPRESSION_LEVELS: RangeInclusive<u64> = 1..=8;
const ZSTD_LEVEL: RangeInclusive<i32> = 1..=22;

option_setters!(Options);

impl Options {
    /// How data blocks of `level` are compressed.
    pub(crate) fn compression_at(&self, level: usize) -> Compression {
        let own = self.compression.get(level).or(self.compression.last());
        own.copied().unwrap_or_default()
    }

    /// Tables that level 0 may hold before some are compacted. With tiered compactions it is a level like any other, but writers shall not
    /// be slowed down before compactions had a chance.
    pub(crate) fn level_0_tables(&self) -> usize {
        self.l0_trigger.unwrap_or(match self.compaction {
            Some(Compaction::Tiered) => (self.size_ratio as usize).min(self.l0_slowdown / 2).max(1),
            _ => 4,
        })
    }

    /// Tables on level 0 from which on writers are slowed down.
    pub(crate) fn slowdown_tables(&self) -> usize {
        self.l0_slowdown.max(self.level_0_tables() + 1)
    }

    /// Tables on level 0 at which writers wait.
    pub(crate) fn stop_tables(&self) -> usize {
        self.l0_stop.max(self.level_0_tables() + 1)
    }

    /// Checks every option against its range.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] with the first option that is out of range, its value and its range.
    pub fn validate(&self) -> Result<()> {
        let checks = [
            ("memtable_bytes", self.memtable_bytes as u64, MEMTABLE_BYTES),
            ("immutable_memtables", self.immutable_memtables as u64, IMMUTABLE_MEMTABLES),
            ("size_ratio", self.size_ratio, SIZE_RATIO),
            ("l0_trigger", self.level_0_tables() as u64, L0_TABLES),
            ("l0_slowdown", self.l0_slowdown as u64, L0_TABLES),
            ("l0_stop", self.l0_stop as u64, L0_TABLES),
            ("level1_bytes", self.level1_bytes, LEVEL1_BYTES),
            ("table_file_bytes", self.table_file_bytes, TABLE_FILE_BYTES),
            ("max_open_files", self.max_open_files.map_or(1, |files| files as u64), MAX_OPEN_FILES),
            ("max_compaction_bytes", self.max_compaction_bytes.unwrap_or(1 << 10), MAX_COMPACTION_BYTES),
            ("compaction_threads", self.compaction_threads as u64, COMPACTION_THREADS),
            ("bytes_per_sync", self.bytes_per_sync, BYTES_PER_SYNC),
            ("block_bytes", self.block_bytes as u64, BLOCK_BYTES),
            ("partition_bytes", self.partition_bytes as u64, PARTITION_BYTES),
            ("filter_bits_per_key", u64::from(self.filter_bits_per_key), FILTER_BITS_PER_KEY),
            ("cache_bytes", self.cache_bytes, CACHE_BYTES),
            ("replay_memory_bytes", self.replay_memory_bytes, REPLAY_MEMORY_BYTES),
            ("compression_per_level (levels)", self.compression.len() as u64, COMPRESSION_LEVELS),
        ];
        for (name, value, range) in checks {
            if !range.contains(&value) {
                return Err(out_of_range(name, i128::from(value), range.start().to_string(), range.end().to_string()));
            }
        }
        self.compression.iter().try_for_each(Compression::validate)
    }
}

fn out_of_range(name: &str, value: i128, low: String, high: String) -> Error {
    Error::InvalidArgument(format!("option {name} is {value}: it must be {low} to {high}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_0_holds_four_tables_or_a_tier_unless_told_otherwise() {
        // Catches tiered compactions that write more than they must, and a trigger that was set and does not count.
        let tables = |policy, set: fn(Options) -> Options| set(Options::default().compaction(policy)).level_0_tables();
        assert_eq!(
            [Compaction::Leveled, Compaction::LazyLeveled, Compaction::Partial].map(|p| tables(p, |o| o)),
            [4; 3]
        );
        assert_eq!(Options::default().level_0_tables(), 4);
        assert_eq!(tables(Compaction::Tiered, |o| o), 10);
        assert_eq!(tables(Compaction::Tiered, |o| o.size_ratio(4)), 4);
        assert_eq!(tables(Compaction::Tiered, |o| o.size_ratio(32)), 10, "half of what slows writers down");
        assert_eq!(tables(Compaction::Tiered, |o| o.size_ratio(32).l0_slowdown(100)), 32);
        assert_eq!(tables(Compaction::Tiered, |o| o.l0_slowdown(1)), 1);
        assert_eq!(tables(Compaction::Tiered, |o| o.l0_trigger(4)), 4);
    }

    #[test]
    fn an_option_out_of_range_is_named_with_its_value_and_range() {
        // Catches an option that is not checked, or an error that does not say which one it is.
        let d = Options::default;
        let cases = [
            (d().memtable_bytes(4095), "memtable_bytes", "4095", "4096 to 17179869184"),
            (d().immutable_memtables(0), "immutable_memtables", "0", "1 to 64"),
            (d().size_ratio(1), "size_ratio", "1", "2 to 32"),
            (d().size_ratio(33), "size_ratio", "33", "2 to 32"),
            (d().l0_trigger(1001), "l0_trigger", "1001", "1 to 1000"),
            (d().l0_slowdown(0), "l0_slowdown", "0", "1 to 1000"),
            (d().l0_stop(1001), "l0_stop", "1001", "1 to 1000"),
            (d().level1_bytes(1023), "level1_bytes", "1023", "1024 to 1125899906842624"),
            (d().table_file_bytes(1023), "table_file_bytes", "1023", "1024 to 17179869184"),
            (d().max_compaction_bytes(1023), "max_compaction_bytes", "1023", "1024 to 1125899906842624"),
            (d().compaction_threads(0), "compaction_threads", "0", "1 to 64"),
            (d().compaction_threads(65), "compaction_threads", "65", "1 to 64"),
            (d().bytes_per_sync(65_535), "bytes_per_sync", "65535", "65536 to 17179869184"),
            (d().block_bytes(511), "block_bytes", "511", "512 to 65536"),
            (d().block_bytes(65_537), "block_bytes", "65537", "512 to 65536"),
            (d().partition_bytes(127), "partition_bytes", "127", "128 to 1048576"),
            (d().partition_bytes(1_048_577), "partition_bytes", "1048577", "128 to 1048576"),
            (d().filter_bits_per_key(33), "filter_bits_per_key", "33", "0 to 32"),
            (d().cache_bytes(u64::MAX), "cache_bytes", "18446744073709551615", "0 to 1125899906842624"),
            (d().replay_memory_bytes(65_535), "replay_memory_bytes", "65535", "65536 to 1125899906842624"),
            (d().compression(Compression::Zstd { level: -1 }), "zstd level", "-1", "1 to 22"),
            (
                d().compression_per_level([Compression::None, Compression::Zstd { level: 23 }]),
                "zstd level",
                "23",
                "1 to 22",
            ),
            (d().compression_per_level([]), "compression_per_level", "0", "1 to 8"),
            (d().compression_per_level([Compression::Lz4; 9]), "compression_per_level", "9", "1 to 8"),
        ];
        for (options, name, value, range) in cases {
            let Err(Error::InvalidArgument(text)) = options.validate() else { panic!("{name} = {value} was accepted") };
            assert!(text.contains(name), "{text}");
            assert!(text.contains(&format!("is {value}:")), "{text}");
            assert!(text.contains(range), "{text}");
        }
    }

    #[test]
    fn the_last_compression_given_is_that_of_all_deeper_levels() {
        // Catches a list that is read from the bottom up, or a level past its end that gets the default.
        let zstd = Compression::Zstd { level: 3 };
        let options = Options::default().compression_per_level([Compression::None, zstd]);
        assert_eq!([0, 1, 2, 7].map(|level| options.compression_at(level)), [Compression::None, zstd, zstd, zstd]);
        assert_eq!(Options::default().compression(zstd).compression_at(0), zstd);
    }

    #[test]
    fn defaults_and_the_ends_of_each_range_are_valid() {
        // Catches an exclusive comparison at either end.
        let d = Options::default;
        let cases = [
            d(),
            d().memtable_bytes(4096)
                .immutable_memtables(1)
                .l0_trigger(1)
                .l0_slowdown(1)
                .l0_stop(1)
                .size_ratio(2)
                .level1_bytes(1024)
                .table_file_bytes(1024)
                .max_compaction_bytes(1024)
                .compaction_threads(1)
                .bytes_per_sync(64 << 10)
                .block_bytes(512)
                .partition_bytes(128)
                .filter_bits_per_key(0)
                .replay_memory_bytes(64 << 10)
                .cache_bytes(0),
            d().memtable_bytes(16 << 30)
                .immutable_memtables(64)
                .l0_trigger(1000)
                .l0_slowdown(1000)
                .l0_stop(1000)
                .size_ratio(32)
                .level1_bytes(1 << 50)
                .table_file_bytes(16 << 30)
                .max_compaction_bytes(1 << 50)
                .compaction_threads(64)
                .bytes_per_sync(16 << 30)
                .block_bytes(65_536)
                .partition_bytes(1 << 20)
                .filter_bits_per_key(32),
            d().compression_per_level([Compression::Lz4; 8]),
            d().compression(Compression::Zstd { level: 22 }).durability(Durability::Synced).create_if_missing(false),
        ];
        for options in cases {
            assert!(options.validate().is_ok(), "{options:?}");
        }
    }
}
