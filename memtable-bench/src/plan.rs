//! The arguments of `memtable` and `engine`, and the run that they describe. Contradictory or impossible arguments are refused here, before
//! anything runs.

use std::path::{Path, PathBuf};

use clap::{Args, value_parser};
use itertools::iproduct;

use crate::error::Error;
use crate::presets::{self, Preset};
use crate::spec::{Access, Cell, KEY_LEN, KeySet, SHORTEST_KEY, Shape, Store, Subject, VALUE_LEN, Workload};
use crate::text::name;

/// The default numbers of entries of a table and of a database, and the most entries of a quick run.
const TABLE_ENTRIES: usize = 3_000_000;
const DATABASE_ENTRIES: usize = 600_000;
const QUICK_ENTRIES: usize = 100_000;
const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 3;
/// The shortest value that can differ for each record.
const SHORTEST_VALUE: u64 = 8;
const LONGEST_KEY: u64 = 1 << 10;
const LONGEST_VALUE: u64 = 1 << 20;

/// Compare sorted in-memory tables: ns per operation, medians of interleaved rounds, ratios to the best peer
///
/// Arguments that take several values, separated by commas, make a matrix: each combination is measured by itself, its
/// subjects in turns.
#[derive(Debug, Args)]
pub(crate) struct MemtableArgs {
    /// A set of cells that has a name, instead of a matrix
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = MATRIX)]
    preset: Option<Preset>,
    #[command(flatten)]
    run: RunArgs,
}

/// Compare engines: time per operation, what they write, take and remember, medians of interleaved rounds, ratios to each peer
///
/// Without --workloads, --entries and --store it measures all that the project's goals for the engine need, and more. Databases go
/// to the directory that TMPDIR names.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// The memory that engines get
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    store: Vec<Store>,
    #[command(flatten)]
    run: RunArgs,
}

/// The arguments that a preset replaces.
const MATRIX: [&str; 7] = ["workloads", "keys", "access", "entries", "threads", "key_len", "value_len"];

/// The arguments that both commands have. Each combination of the first ones is a cell.
#[derive(Debug, Clone, Args)]
struct RunArgs {
    /// What to do with the tables or databases [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    workloads: Vec<Workload>,
    /// How keys look, and in which order they are stored
    #[arg(long, value_enum, value_delimiter = ',', default_value = "random", value_name = "NAME")]
    keys: Vec<KeySet>,
    /// How often each key is read: by get, get-many, seeks and mixed workloads
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform", value_name = "NAME")]
    access: Vec<Access>,
    /// Keys to store; 100K and 3M are numbers [default: 3M in tables, 600K in databases]
    #[arg(long, value_parser = parse_count, value_delimiter = ',', value_name = "N")]
    entries: Vec<usize>,
    /// Threads that work at once: each scans everything, and does its share of the rest
    #[arg(long, value_parser = parse_count, value_delimiter = ',', default_value = "1", value_name = "N")]
    threads: Vec<usize>,
    /// The length of keys in bytes; paths have lengths of their own
    #[arg(long, value_parser = value_parser!(u64).range(SHORTEST_KEY as u64..=LONGEST_KEY),
        default_value_t = KEY_LEN as u64, value_name = "N")]
    key_len: u64,
    /// The length of values in bytes
    #[arg(long, value_parser = value_parser!(u64).range(SHORTEST_VALUE..=LONGEST_VALUE), value_delimiter = ',',
        default_values_t = [VALUE_LEN as u64], value_name = "N")]
    value_len: Vec<u64>,
    /// Take at most 100K entries in any cell, unless --entries or --at-most says otherwise, and 3 rounds: done in a few minutes
    #[arg(long)]
    quick: bool,
    /// Take no more entries than this in any cell: a preset in small
    #[arg(long, value_parser = parse_count, value_name = "N")]
    at_most: Option<usize>,
    /// What to measure, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    subjects: Vec<Subject>,
    /// How often each subject runs; fewer than 5 say little [default: 5; with --quick 3]
    #[arg(long, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    rounds: Option<u32>,
    /// Write machine, commit, parameters and every round to this file, which `report` reads
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

/// A number above zero, in thousands if it ends in K and in millions if it ends in M.
pub(crate) fn parse_count(text: &str) -> Result<usize, String> {
    let (digits, unit) = match text.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1000),
        None => text.strip_suffix(['m', 'M']).map_or((text, 1), |digits| (digits, 1_000_000)),
    };
    let wrong = |error| format!("expected a number such as 100K, found {text}: {error}");
    match digits.parse::<usize>().map_err(wrong)?.checked_mul(unit) {
        Some(0) => Err("expected at least 1, found 0".into()),
        number => number.ok_or_else(|| format!("{text} is more than this machine can count")),
    }
}

/// A valid run.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) preset: Option<String>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) rounds: u32,
    pub(crate) json: Option<PathBuf>,
}

impl Plan {
    /// The run of tables for these arguments, on a machine with `memory` bytes available, if known.
    pub(crate) fn of_tables(MemtableArgs { preset, run }: &MemtableArgs, memory: Option<u64>) -> Result<Self, Error> {
        let cells = preset.map_or_else(|| run.matrix(TABLE_ENTRIES, &[Store::Table]), Preset::cells);
        Self::new(preset.map(name), cells, run, memory)
    }

    /// The run of engines for these arguments.
    pub(crate) fn of_engines(EngineArgs { store, run }: &EngineArgs, memory: Option<u64>) -> Result<Self, Error> {
        if run.workloads.is_empty() && run.entries.is_empty() && store.is_empty() {
            return Self::new(Some("engine".into()), presets::engine(), run, memory);
        }
        let store = if store.is_empty() { &[Store::Engine][..] } else { store };
        Self::new(None, run.matrix(DATABASE_ENTRIES, store), run, memory)
    }

    /// Refuses cells that cannot be measured, and files that cannot be written. Merges cells of equal shape.
    fn new(preset: Option<String>, all: Vec<Cell>, args: &RunArgs, memory: Option<u64>) -> Result<Self, Error> {
        let mut cells: Vec<Cell> = Vec::new();
        let quick = (args.quick && args.entries.is_empty()).then_some(QUICK_ENTRIES);
        let most = args.at_most.or(quick).unwrap_or(usize::MAX);
        for mut cell in all {
            // A subject that the arguments of a matrix name must take part, or the run is refused.
            if preset.is_some() || args.subjects.is_empty() {
                cell.narrow(&args.subjects);
                if cell.subjects.is_empty() {
                    continue;
                }
            }
            cell.shape.entries = cell.shape.entries.min(most.max(cell.shape.threads));
            cell.check(memory)?;
            match cells.iter_mut().find(|other| other.shape == cell.shape) {
                Some(same) => same.absorb(&cell),
                None => cells.push(cell),
            }
        }
        if cells.is_empty() {
            return Err("the preset has none of the subjects".to_owned().into());
        }
        args.json.as_deref().map_or(Ok(()), can_write)?;
        let rounds = args.rounds.unwrap_or(if args.quick { QUICK_ROUNDS } else { ROUNDS });
        Ok(Self { preset, cells, rounds, json: args.json.clone() })
    }

    /// The number of rounds of all subjects.
    pub(crate) fn turns(&self) -> u64 {
        self.cells.iter().map(|cell| cell.subjects.len() as u64).sum::<u64>() * u64::from(self.rounds)
    }
}

impl RunArgs {
    /// Every combination of the arguments, with `usual` entries by default.
    fn matrix(&self, usual: usize, store: &[Store]) -> Vec<Cell> {
        let Self { keys, access, value_len, threads, .. } = self;
        let entries = if self.entries.is_empty() { &vec![usual] } else { &self.entries };
        let all = iproduct!(keys, access, value_len, entries, threads, store);
        all.map(|(&keys, &access, &value_len, &entries, &threads, &store)| {
            let (key_len, value_len) = (self.key_len as usize, value_len as usize);
            let shape = Shape { keys, access, entries, threads, key_len, value_len, store };
            Cell::new(shape, &self.subjects, &self.workloads)
        })
        .collect()
    }
}

/// An error now is better than an error after an hour.
fn can_write(path: &Path) -> Result<(), String> {
    let directory = path.parent().filter(|of| !of.as_os_str().is_empty()).unwrap_or(".".as_ref());
    let refused = |why: &str| Err(format!("cannot write {}: {why}", path.display()));
    match (path.is_dir(), directory.is_dir()) {
        (true, _) => refused("it is a directory"),
        (_, false) => refused(&format!("{} is not a directory", directory.display())),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
