//! [`Options`]: what a database can be tuned by, with defaults, units and ranges; [`Options::validate`] checks them.

mod choices;

use std::ops::RangeInclusive;

pub use choices::{Compaction, Compression, MemtableKind, RecoveryMode};

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
    pub(crate) l0_trigger: usize,
    pub(crate) l0_slowdown: usize,
    pub(crate) l0_stop: usize,
    pub(crate) level1_bytes: u64,
    pub(crate) table_file_bytes: u64,
    pub(crate) compaction_threads: usize,
    pub(crate) block_bytes: usize,
    pub(crate) filter_bits_per_key: u32,
    /// By level; the last one for all deeper levels too. Not empty once validated.
    pub(crate) compression: Vec<Compression>,
    pub(crate) cache_bytes: u64,
    pub(crate) durability: Durability,
    pub(crate) log_compression: bool,
    pub(crate) recovery_mode: RecoveryMode,
    pub(crate) create_if_missing: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memtable_bytes: 64 << 20,
            memtable_kind: MemtableKind::SkipList,
            immutable_memtables: 1,
            compaction: None,
            size_ratio: 10,
            l0_trigger: 4,
            l0_slowdown: 20,
            l0_stop: 36,
            level1_bytes: 64 << 20,
            table_file_bytes: 64 << 20,
            compaction_threads: 2,
            block_bytes: 4096,
            filter_bits_per_key: 10,
            compression: vec![Compression::None, Compression::None, Compression::Lz4],
            cache_bytes: 32 << 20,
            durability: Durability::Buffered,
            log_compression: false,
            recovery_mode: RecoveryMode::Strict,
            create_if_missing: true,
        }
    }
}

const MEMTABLE_BYTES: RangeInclusive<u64> = 4 << 10..=16 << 30;
const IMMUTABLE_MEMTABLES: RangeInclusive<u64> = 1..=64;
const SIZE_RATIO: RangeInclusive<u64> = 2..=32;
const L0_TABLES: RangeInclusive<u64> = 1..=1000;
const LEVEL1_BYTES: RangeInclusive<u64> = 1 << 10..=1 << 50;
const TABLE_FILE_BYTES: RangeInclusive<u64> = 1 << 10..=16 << 30;
const COMPACTION_THREADS: RangeInclusive<u64> = 1..=64;
const BLOCK_BYTES: RangeInclusive<u64> = 512..=64 << 10;
const FILTER_BITS_PER_KEY: RangeInclusive<u64> = 0..=32;
const CACHE_BYTES: RangeInclusive<u64> = 0..=1 << 50;
const COMPRESSION_LEVELS: RangeInclusive<u64> = 1..=8;
const ZSTD_LEVEL: RangeInclusive<i32> = 1..=22;

impl Options {
    /// Bytes of memory at which a memtable is frozen and written to a table. Default 64 MiB; 4 KiB to 16 GiB.
    pub fn memtable_bytes(mut self, bytes: usize) -> Self {
        self.memtable_bytes = bytes;
        self
    }

    /// How memtables keep what is written. Default [`MemtableKind::SkipList`]. Nothing on disk depends on it.
    pub fn memtable_kind(mut self, kind: MemtableKind) -> Self {
        self.memtable_kind = kind;
        self
    }

    /// How many frozen memtables may wait for their flush before writes stall. Default 1; 1 to 64.
    pub fn immutable_memtables(mut self, count: usize) -> Self {
        self.immutable_memtables = count;
        self
    }

    /// How tables are merged. Default: as when the database was opened last; [`Compaction::Leveled`] for a new one.
    pub fn compaction(mut self, policy: Compaction) -> Self {
        self.compaction = Some(policy);
        self
    }

    /// How many times larger each level is than the one above, or how many runs a level holds: see [`Compaction`].
    /// Larger ratios rewrite more and hold less obsolete data with levels of one run, the other way round with several.
    /// Default 10; 2 to 32.
    pub fn size_ratio(mut self, ratio: u64) -> Self {
        self.size_ratio = ratio;
        self
    }

    /// How many tables level 0 may hold before some are merged. Default 4; 1 to 1000.
    pub fn l0_trigger(mut self, tables: usize) -> Self {
        self.l0_trigger = tables;
        self
    }

    /// The number of tables on level 0 from which on writers are slowed down, ever more, so that merges catch up.
    /// Default 20; 1 to 1000. Counts as `l0_trigger` + 1 where that is more: below it no merge is due that could help.
    pub fn l0_slowdown(mut self, tables: usize) -> Self {
        self.l0_slowdown = tables;
        self
    }

    /// The number of tables on level 0 at which writers wait for a merge. Default 36; 1 to 1000. Counts as `l0_trigger` + 1
    /// where that is more: a wait for a merge that is not due would have no end.
    pub fn l0_stop(mut self, tables: usize) -> Self {
        self.l0_stop = tables;
        self
    }

    /// Bytes up to which one level below level 0 is enough, with leveled and partial compaction. Above that levels come
    /// between, each `size_ratio` times smaller than the one below it, up to the first that is not larger than this, or that
    /// would be smaller than what level 0 brings down at once. Default 64 MiB; 1 KiB to 1 PiB.
    pub fn level1_bytes(mut self, bytes: u64) -> Self {
        self.level1_bytes = bytes;
        self
    }

    /// Bytes at which a merge ends a table and begins the next; a table is longer by what the versions of one key and its
    /// index take. Default 64 MiB; 1 KiB to 16 GiB.
    pub fn table_file_bytes(mut self, bytes: u64) -> Self {
        self.table_file_bytes = bytes;
        self
    }

    /// How many merges may run at once, beside flushes, each on a thread of its own. Default 2; 1 to 64.
    pub fn compaction_threads(mut self, threads: usize) -> Self {
        self.compaction_threads = threads;
        self
    }

    /// Bytes of a data block before compression; an entry larger than that gets a block of its own.
    /// Default 4096; 512 to 65536.
    pub fn block_bytes(mut self, bytes: usize) -> Self {
        self.block_bytes = bytes;
        self
    }

    /// Bits of filter for each key of a table; more bits make fewer useless reads of absent keys.
    /// Default 10 (about 1 % of absent keys are read in vain); 0 (no filter) to 32.
    pub fn filter_bits_per_key(mut self, bits: u32) -> Self {
        self.filter_bits_per_key = bits;
        self
    }

    /// How data blocks are compressed, on every level alike. See [`Options::compression_per_level`].
    pub fn compression(self, compression: Compression) -> Self {
        self.compression_per_level([compression])
    }

    /// How data blocks are compressed on each level: the first for level 0, the last for its level and all below.
    /// Tables that are there already keep theirs until a merge rewrites them. Default none on levels 0 and 1, which are
    /// small and soon rewritten, and [`Compression::Lz4`] below; 1 to 8 levels.
    pub fn compression_per_level(mut self, levels: impl Into<Vec<Compression>>) -> Self {
        self.compression = levels.into();
        self
    }

    /// How data blocks of `level` are compressed.
    pub(crate) fn compression_at(&self, level: usize) -> Compression {
        let own = self.compression.get(level).or(self.compression.last());
        own.copied().unwrap_or_default()
    }

    /// Bytes of data blocks kept in memory, decompressed. Default 32 MiB; 0 to 1 PiB.
    pub fn cache_bytes(mut self, bytes: u64) -> Self {
        self.cache_bytes = bytes;
        self
    }

    /// The durability of a single insert or remove. Default [`Durability::Buffered`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Whether batches of 512 bytes and more are compressed in the log (Zstandard, where that saves 12 %). The writer of the
    /// batch spends the time. Default false; true or false.
    pub fn log_compression(mut self, compress: bool) -> Self {
        self.log_compression = compress;
        self
    }

    /// What opening does about damage. Default [`RecoveryMode::Strict`].
    pub fn recovery_mode(mut self, mode: RecoveryMode) -> Self {
        self.recovery_mode = mode;
        self
    }

    /// Whether opening a directory without a database makes one. Default true.
    pub fn create_if_missing(mut self, create: bool) -> Self {
        self.create_if_missing = create;
        self
    }

    /// Tables on level 0 from which on writers are slowed down.
    pub(crate) fn slowdown_tables(&self) -> usize {
        self.l0_slowdown.max(self.l0_trigger + 1)
    }

    /// Tables on level 0 at which writers wait.
    pub(crate) fn stop_tables(&self) -> usize {
        self.l0_stop.max(self.l0_trigger + 1)
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
            ("l0_trigger", self.l0_trigger as u64, L0_TABLES),
            ("l0_slowdown", self.l0_slowdown as u64, L0_TABLES),
            ("l0_stop", self.l0_stop as u64, L0_TABLES),
            ("level1_bytes", self.level1_bytes, LEVEL1_BYTES),
            ("table_file_bytes", self.table_file_bytes, TABLE_FILE_BYTES),
            ("compaction_threads", self.compaction_threads as u64, COMPACTION_THREADS),
            ("block_bytes", self.block_bytes as u64, BLOCK_BYTES),
            ("filter_bits_per_key", u64::from(self.filter_bits_per_key), FILTER_BITS_PER_KEY),
            ("cache_bytes", self.cache_bytes, CACHE_BYTES),
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
            (d().compaction_threads(0), "compaction_threads", "0", "1 to 64"),
            (d().compaction_threads(65), "compaction_threads", "65", "1 to 64"),
            (d().block_bytes(511), "block_bytes", "511", "512 to 65536"),
            (d().block_bytes(65_537), "block_bytes", "65537", "512 to 65536"),
            (d().filter_bits_per_key(33), "filter_bits_per_key", "33", "0 to 32"),
            (d().cache_bytes(u64::MAX), "cache_bytes", "18446744073709551615", "0 to 1125899906842624"),
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
                .compaction_threads(1)
                .block_bytes(512)
                .filter_bits_per_key(0)
                .cache_bytes(0),
            d().memtable_bytes(16 << 30)
                .immutable_memtables(64)
                .l0_trigger(1000)
                .l0_slowdown(1000)
                .l0_stop(1000)
                .size_ratio(32)
                .level1_bytes(1 << 50)
                .table_file_bytes(16 << 30)
                .compaction_threads(64)
                .block_bytes(65_536)
                .filter_bits_per_key(32),
            d().compression_per_level([Compression::Lz4; 8]),
            d().compression(Compression::Zstd { level: 22 }).durability(Durability::Synced).create_if_missing(false),
        ];
        for options in cases {
            assert!(options.validate().is_ok(), "{options:?}");
        }
    }
}
