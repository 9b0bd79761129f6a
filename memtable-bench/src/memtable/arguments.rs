//! The command's arguments. What they ask for together is checked in `plan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, value_parser};

use super::presets::Preset;
use super::shape::{Access, KEY_LEN, VALUE_LEN};
use super::subjects::Subject;
use super::workload::Workload;
use crate::keys::{KeySet, SHORTEST};

const ENTRIES: NonZeroUsize = NonZeroUsize::new(3_000_000).unwrap();
const QUICK_ENTRIES: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();
/// The shortest value that tells records apart.
const SHORTEST_VALUE: u64 = 8;
const LONGEST_KEY: u64 = 1 << 10;
const LONGEST_VALUE: u64 = 1 << 20;

/// Compare sorted in-memory tables: ns per operation, medians of interleaved rounds, ratios to the best peer
///
/// Arguments that take several values, separated by commas, make a matrix: each combination is measured by itself, its
/// subjects in turns.
#[derive(Debug, Args)]
pub(crate) struct MemtableArgs {
    /// Take 100K entries unless --entries says otherwise: done in two or three minutes
    #[arg(long)]
    pub(super) quick: bool,
    /// A set of cells that has a name, instead of a matrix
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = MATRIX)]
    pub(super) preset: Option<Preset>,
    /// What to measure [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(super) subjects: Vec<Subject>,
    /// What to do with it [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(super) workloads: Vec<Workload>,
    /// How keys look, and in which order they are stored
    #[arg(long, value_enum, value_delimiter = ',', default_value = "random", value_name = "NAME")]
    pub(super) keys: Vec<KeySet>,
    /// How often each key is read: by get, get-many, seeks and mixed workloads
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform", value_name = "NAME")]
    pub(super) access: Vec<Access>,
    /// Keys to store; 100K and 3M are numbers [default: 3M]
    #[arg(long, value_parser = parse_count, value_delimiter = ',', value_name = "N")]
    pub(super) entries: Vec<NonZeroUsize>,
    /// Threads that work at once: each scans everything, and does its share of the rest
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N")]
    pub(super) threads: Vec<NonZeroUsize>,
    /// The length of keys in bytes; paths have lengths of their own
    #[arg(long, value_parser = length(SHORTEST as u64, LONGEST_KEY), value_delimiter = ',',
        default_value_t = KEY_LEN as u64, value_name = "N")]
    pub(super) key_len: u64,
    /// The length of values in bytes
    #[arg(long, value_parser = length(SHORTEST_VALUE, LONGEST_VALUE), value_delimiter = ',',
        default_values_t = [VALUE_LEN as u64], value_name = "N")]
    pub(super) value_len: Vec<u64>,
    /// Take no more entries than this in any cell: a preset in small. Its goals then count as not measured
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub(super) at_most: Option<NonZeroUsize>,
    /// How often each subject runs; fewer than 5 say little
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub(super) rounds: u32,
    /// Write machine, commit, parameters and every round to this file
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
}

/// What a preset decides.
const MATRIX: [&str; 8] = ["quick", "workloads", "keys", "access", "entries", "threads", "key_len", "value_len"];

impl MemtableArgs {
    pub(super) fn entries(&self) -> Vec<NonZeroUsize> {
        match &self.entries[..] {
            [] if self.quick => vec![QUICK_ENTRIES],
            [] => vec![ENTRIES],
            named => named.to_vec(),
        }
    }
}

fn length(least: u64, most: u64) -> clap::builder::RangedU64ValueParser<u64> {
    value_parser!(u64).range(least..=most)
}

/// A number above zero, in thousands if it ends in K and in millions if it ends in M.
pub(crate) fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let number: usize =
        digits.parse().map_err(|error| format!("expected a number such as 100K, found {text}: {error}"))?;
    let number = number.checked_mul(unit).ok_or_else(|| format!("{text} is more than this machine can count"))?;
    NonZeroUsize::new(number).ok_or_else(|| "expected at least 1, found 0".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_may_end_in_k_or_m() {
        // Catches a unit that is off by a factor, and 0 that gets through by its unit.
        let parsed = ["7", "100K", "100k", "3M"].map(|text| parse_count(text).map(NonZeroUsize::get));
        assert_eq!(parsed, [Ok(7), Ok(100_000), Ok(100_000), Ok(3_000_000)]);
        for wrong in ["", "K", "0", "0M", "-1", "1.5M", "10G", "99999999999999999999", "18446744073709551615K"] {
            assert!(parse_count(wrong).is_err(), "{wrong}");
        }
    }
}
