//! [`Options`]: the settings of a database, with defaults, units and ranges; [`Options::validate`] checks them.

mod choices;
mod keyspace;
mod list;
mod time_source;

use std::ops::RangeInclusive;

pub(crate) use list::{define_setters, with_options};

pub use choices::{Compaction, Compression, MemtableKind, RecoveryMode, TableReads};
pub(crate) use keyspace::Compressions;
pub use keyspace::KeyspaceOptions;
pub(crate) use keyspace::{compression_number, compression_of_number};
pub use time_source::TimeSource;

use crate::codec::HAS_ZSTD;
use crate::error::{Error, Result};
use crate::types::Durability;

/// Defines [`Options`], its defaults, and the checks of its ranges.
macro_rules! define_options {
    (
        []
        values { $($(#[$doc:meta])* $name:ident: $type:ty = $default:expr $(, $range:expr)?;)* }
        optional { $($(#[$doc_of_optional:meta])* $optional:ident: $type_of_optional:ty $(, $range_of_optional:expr)?;)* }
    ) => {
        /// The options of a database, set by chained calls; `Options::default()` suits an ordinary machine.
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
            $(pub(crate) $name: $type,)*
            $(pub(crate) $optional: Option<$type_of_optional>,)*
            /// The compression of each level; the last one applies to all deeper levels too. Not empty after validation.
            pub(crate) compression: Vec<Compression>,
            /// Whether the database is read while another process may write to it.
            pub(crate) follows: bool,
        }

        impl Default for Options {
            fn default() -> Self {
                Self {
                    $($name: $default,)*
                    $($optional: None,)*
                    compression: vec![Compression::None, Compression::None, Compression::Lz4],
                    follows: false,
                }
            }
        }

        impl Options {
            fn check_ranges(&self) -> Result<()> {
                $($(check_range(stringify!($name), self.$name as u64, $range)?;)?)*
                $($(
                    if let Some(value) = self.$optional {
                        check_range(stringify!($optional), value as u64, $range_of_optional)?;
                    }
                )?)*
                Ok(())
            }
        }
    };
}

with_options!(define_options);
with_options!(define_setters Options);

const COMPRESSION_LEVELS: RangeInclusive<u64> = 1..=8;
const ZSTD_LEVEL: RangeInclusive<i32> = 1..=22;

impl Options {
    fn options_mut(&mut self) -> &mut Self {
        self
    }

    /// The compression of the data blocks of `level`.
    pub(crate) fn compression_at(&self, level: usize) -> Compression {
        let own = self.compression.get(level).or(self.compression.last());
        own.copied().unwrap_or_default()
    }

    /// The number of tables that level 0 may hold before some are compacted. With tiered compaction level 0 is a level like any other, but writers
    /// must not be slowed down before a compaction is due.
    pub(crate) fn level_0_tables(&self) -> usize {
        self.l0_trigger.unwrap_or(match self.compaction {
            Some(Compaction::Tiered) => (self.size_ratio as usize).min(self.l0_slowdown / 2).max(1),
            _ => 4,
        })
    }

    /// The number of tables on level 0 at which writers begin to be slowed down.
    pub(crate) fn slowdown_tables(&self) -> usize {
        self.l0_slowdown.max(self.level_0_tables() + 1)
    }

    /// The number of tables on level 0 at which writers wait.
    pub(crate) fn stop_tables(&self) -> usize {
        self.l0_stop.max(self.level_0_tables() + 1)
    }

    /// Checks every option against its range.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] for the first option that is out of range, with its value and its range.
    pub fn validate(&self) -> Result<()> {
        self.check_ranges()?;
        check_range("compression_per_level (levels)", self.compression.len() as u64, COMPRESSION_LEVELS)?;
        self.compression.iter().try_for_each(Compression::validate)?;
        if self.log_compression && !HAS_ZSTD { Err(without_zstd("log_compression")) } else { Ok(()) }
    }
}

fn check_range(name: &str, value: u64, range: RangeInclusive<u64>) -> Result<()> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(out_of_range(name, value.into(), range.start().to_string(), range.end().to_string())),
    }
}

fn out_of_range(name: &str, value: i128, low: String, high: String) -> Error {
    Error::InvalidArgument(format!("option {name} is {value}: it must be {low} to {high}"))
}

fn without_zstd(name: &str) -> Error {
    Error::InvalidArgument(format!(
        "option {name} needs Zstandard, which the feature `zstd` of mini-engine adds to a build"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn level_0_holds_four_tables_or_a_tier_unless_told_otherwise() {
        // Catches tiered compactions that write more than necessary, and a trigger that was set but has no effect.
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
    fn the_last_compression_given_is_that_of_all_deeper_levels() {
        // Catches a list that is read from the deepest level up, or a level after its end that gets the default.
        let zstd = Compression::Zstd { level: 3 };
        let options = Options::default().compression_per_level([Compression::None, zstd]);
        assert_eq!([0, 1, 2, 7].map(|level| options.compression_at(level)), [Compression::None, zstd, zstd, zstd]);
        assert_eq!(Options::default().compression(zstd).compression_at(0), zstd);
    }

    #[test]
    fn defaults_and_the_ends_of_ranges_are_valid() {
        // Catches an exclusive comparison at either end of a range.
        let d = Options::default;
        let zstd = |level| d().compression(Compression::Zstd { level });
        let levels = |levels: &[Compression]| d().compression_per_level(levels);
        let ends = [d().immutable_memtables(1), d().immutable_memtables(64), zstd(1), zstd(22)];
        let lists = [levels(&[Compression::Lz4]), levels(&[Compression::Lz4; 8])];
        for options in [d()].into_iter().chain(ends).chain(lists) {
            assert!(options.validate().is_ok(), "{options:?}");
        }
    }
}
