//! The arguments of `memtable`, and the run that they ask for. What makes no sense or cannot be done is refused here, before
//! anything runs.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use clap::{Args, value_parser};
use itertools::iproduct;

use crate::error::Error;
use crate::keys::{KeySet, SHORTEST};
use crate::presets::Preset;
use crate::spec::{Access, Cell, KEY_LEN, Shape, Subject, VALUE_LEN, Workload, repeated};
use crate::text::name;

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
    quick: bool,
    /// A set of cells that has a name, instead of a matrix
    #[arg(long, value_enum, value_name = "NAME", conflicts_with_all = MATRIX)]
    pub(crate) preset: Option<Preset>,
    /// What to do with the tables [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    workloads: Vec<Workload>,
    /// How keys look, and in which order they are stored
    #[arg(long, value_enum, value_delimiter = ',', default_value = "random", value_name = "NAME")]
    keys: Vec<KeySet>,
    /// How often each key is read: by get, get-many, seeks and mixed workloads
    #[arg(long, value_enum, value_delimiter = ',', default_value = "uniform", value_name = "NAME")]
    access: Vec<Access>,
    /// Keys to store; 100K and 3M are numbers [default: 3M]
    #[arg(long, value_parser = parse_count, value_delimiter = ',', value_name = "N")]
    entries: Vec<NonZeroUsize>,
    /// Threads that work at once: each scans everything, and does its share of the rest
    #[arg(long, value_delimiter = ',', default_value = "1", value_name = "N")]
    threads: Vec<NonZeroUsize>,
    /// The length of keys in bytes; paths have lengths of their own
    #[arg(long, value_parser = value_parser!(u64).range(SHORTEST as u64..=LONGEST_KEY),
        default_value_t = KEY_LEN as u64, value_name = "N")]
    key_len: u64,
    /// The length of values in bytes
    #[arg(long, value_parser = value_parser!(u64).range(SHORTEST_VALUE..=LONGEST_VALUE), value_delimiter = ',',
        default_values_t = [VALUE_LEN as u64], value_name = "N")]
    value_len: Vec<u64>,
    /// Take no more entries than this in any cell: a preset in small. Its goals then count as not measured
    #[arg(long, value_parser = parse_count, value_name = "N")]
    at_most: Option<NonZeroUsize>,
    #[command(flatten)]
    run: RunArgs,
}

/// What a preset decides.
const MATRIX: [&str; 8] = ["quick", "workloads", "keys", "access", "entries", "threads", "key_len", "value_len"];

/// The arguments that all measuring commands have.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// What to measure, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(crate) subjects: Vec<Subject>,
    /// How often each subject runs; fewer than 5 say little
    #[arg(long, default_value_t = 5, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub(crate) rounds: u32,
    /// Write machine, commit, parameters and every round to this file, which `report` reads
    #[arg(long, value_name = "OUT")]
    pub(crate) json: Option<PathBuf>,
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

/// A run that can be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) preset: Option<String>,
    pub(crate) cells: Vec<Cell>,
    pub(crate) rounds: u32,
    pub(crate) json: Option<PathBuf>,
}

impl Plan {
    /// The run that `args` ask for, on a machine with `memory` bytes available, if it tells.
    pub(crate) fn new(args: &MemtableArgs, memory: Option<u64>) -> Result<Self, Error> {
        let cells = match args.preset {
            Some(preset) => narrowed(preset.cells(), &args.run.subjects)?,
            None => matrix(args)?,
        };
        Self::of_cells(args.preset.map(name), at_most(cells, args.at_most), &args.run, memory)
    }

    /// Refuses cells that cannot be measured, and files that cannot be written.
    pub(crate) fn of_cells(
        preset: Option<String>,
        cells: Vec<Cell>,
        args: &RunArgs,
        memory: Option<u64>,
    ) -> Result<Self, Error> {
        cells.iter().try_for_each(|cell| cell.check(memory))?;
        args.json.as_deref().map_or(Ok(()), can_write)?;
        Ok(Self { preset, cells, rounds: args.rounds, json: args.json.clone() })
    }

    /// How many rounds there are of all subjects.
    pub(crate) fn turns(&self) -> u64 {
        self.cells.iter().map(|cell| cell.subjects.len() as u64).sum::<u64>() * u64::from(self.rounds)
    }
}

/// Every combination of the arguments.
fn matrix(args: &MemtableArgs) -> Result<Vec<Cell>, String> {
    let entries = match &args.entries[..] {
        [] => vec![if args.quick { QUICK_ENTRIES } else { ENTRIES }],
        named => named.to_vec(),
    };
    refuse_twice("--keys", args.keys.iter().copied().map(name))?;
    refuse_twice("--access", args.access.iter().copied().map(name))?;
    refuse_twice("--entries", entries.iter().map(ToString::to_string))?;
    refuse_twice("--threads", args.threads.iter().map(ToString::to_string))?;
    refuse_twice("--value-len", args.value_len.iter().map(ToString::to_string))?;
    let all = iproduct!(&args.keys, &args.access, &args.value_len, &entries, &args.threads);
    let cell = |(&keys, &access, &value_len, entries, threads): (_, _, &u64, &NonZeroUsize, &NonZeroUsize)| {
        let (entries, threads) = (entries.get(), threads.get());
        let (key_len, value_len) = (args.key_len as usize, value_len as usize);
        Cell::new(Shape { keys, access, entries, threads, key_len, value_len }, &args.run.subjects, &args.workloads)
    };
    Ok(all.map(cell).collect())
}

/// A preset's cells with no other subjects than `subjects`, if any are named.
fn narrowed(cells: Vec<Cell>, subjects: &[Subject]) -> Result<Vec<Cell>, String> {
    if subjects.is_empty() {
        return Ok(cells);
    }
    refuse_twice("--subjects", subjects.iter().copied().map(name))?;
    let left = |mut cell: Cell| {
        cell.subjects.retain(|subject| subjects.contains(subject));
        cell.workloads.retain(|&workload| cell.subjects.iter().any(|subject| subject.can(workload)));
        (!cell.subjects.is_empty()).then_some(cell)
    };
    let cells: Vec<_> = cells.into_iter().filter_map(left).collect();
    if cells.is_empty() { Err("the preset has none of the subjects".into()) } else { Ok(cells) }
}

/// Cells that become the same are measured once.
fn at_most(cells: Vec<Cell>, most: Option<NonZeroUsize>) -> Vec<Cell> {
    let mut small: Vec<Cell> = Vec::new();
    for mut cell in cells {
        cell.shape.entries = most.map_or(cell.shape.entries, |most| most.get().min(cell.shape.entries));
        if !small.contains(&cell) {
            small.push(cell);
        }
    }
    small
}

fn refuse_twice(argument: &str, values: impl Iterator<Item = String>) -> Result<(), String> {
    let values: Vec<_> = values.collect();
    repeated(&values).map_or(Ok(()), |twice| Err(format!("{argument} names {twice} twice")))
}

/// Better to learn now than after an hour that the result cannot be written.
fn can_write(path: &Path) -> Result<(), String> {
    let directory = match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => ".".as_ref(),
    };
    if path.is_dir() {
        return Err(format!("cannot write {}: it is a directory", path.display()));
    }
    if !directory.is_dir() {
        return Err(format!("cannot write {}: {} is not a directory", path.display(), directory.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
