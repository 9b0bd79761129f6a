//! The command's arguments. What they ask for together is checked in `plan`.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, value_parser};

use super::subjects::Subject;
use super::workload::Workload;
use crate::keys::KeySet;

const ENTRIES: NonZeroUsize = NonZeroUsize::new(3_000_000).unwrap();
const QUICK_ENTRIES: NonZeroUsize = NonZeroUsize::new(100_000).unwrap();

/// Compare sorted in-memory tables: ns per operation, medians of interleaved rounds, ratios to the best peer
#[derive(Debug, Args)]
pub(crate) struct MemtableArgs {
    /// Take 100K entries unless --entries says otherwise: done in a minute or two
    #[arg(long)]
    pub(super) quick: bool,
    /// What to measure, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(super) subjects: Vec<Subject>,
    /// What to do with it, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(super) workloads: Vec<Workload>,
    /// How keys look, and in which order they are stored
    #[arg(long, value_enum, default_value = "random", value_name = "NAME")]
    pub(super) keys: KeySet,
    /// Keys to store, each with a value of 100 bytes; 100K and 3M are numbers [default: 3M]
    #[arg(long, value_parser = parse_count, value_name = "N")]
    pub(super) entries: Option<NonZeroUsize>,
    /// Threads that work at once: each scans everything, and does its share of the rest
    #[arg(long, default_value = "1", value_name = "N")]
    pub(super) threads: NonZeroUsize,
    /// How often each subject runs; fewer than 5 say little
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub(super) rounds: u32,
    /// Write machine, commit, parameters and every round to this file
    #[arg(long, value_name = "OUT")]
    pub(super) json: Option<PathBuf>,
}

impl MemtableArgs {
    pub(super) fn entries(&self) -> NonZeroUsize {
        self.entries.unwrap_or(if self.quick { QUICK_ENTRIES } else { ENTRIES })
    }
}

/// A number above zero, in thousands if it ends in K and in millions if it ends in M.
fn parse_count(text: &str) -> Result<NonZeroUsize, String> {
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
