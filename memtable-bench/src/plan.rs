//! The arguments of `memtable` and `engine`, and the run that they ask for. What makes no sense or cannot be done is refused here, before
//! anything runs.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, value_parser};
use itertools::iproduct;

use crate::error::Error;
use crate::patterns::{self, Pattern};
use crate::presets::{self, Preset};
use crate::spec::{
    Access, Backing, Cell, KEY_LEN, KeySet, Pages, SHORTEST_KEY, Shape, Store, Subject, VALUE_LEN, Workload,
};
use crate::text::name;

const QUICK_ENTRIES: usize = 100_000;
const ROUNDS: u32 = 5;
const QUICK_ROUNDS: u32 = 3;
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
    #[command(flatten)]
    matrix: Matrix,
    /// Whether the memory for a table is touched before the clock starts
    #[arg(long, value_enum, value_delimiter = ',', default_value = "touched", value_name = "NAME")]
    backing: Vec<Backing>,
    /// The pages that fastskip's tables ask for, on Linux
    #[arg(long, value_enum, value_delimiter = ',', default_value = "huge", value_name = "NAME")]
    pages: Vec<Pages>,
    /// Take no more entries than this in any cell: a preset in small. Its goals then count as not measured
    #[arg(long, value_parser = parse_count, value_name = "N")]
    at_most: Option<usize>,
    #[command(flatten)]
    run: RunArgs,
}

/// Compare engines: time per operation, what they write, take and remember, medians of interleaved rounds, ratios to each peer
///
/// Without --workloads, --entries and --store it measures all that the project's goals for the engine need, and more. Databases go
/// to the directory that TMPDIR names.
#[derive(Debug, Args)]
pub(crate) struct EngineArgs {
    /// The same in small and in fewer rounds: done in five minutes
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    matrix: Matrix,
    /// The memory that engines get
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    store: Vec<Store>,
    /// Take no more entries than this in any cell
    #[arg(long, value_parser = parse_count, value_name = "N")]
    at_most: Option<usize>,
    #[command(flatten)]
    run: RunArgs,
}

/// The arguments of which each combination is a cell.
#[derive(Debug, Args)]
struct Matrix {
    /// What to do with the tables or databases [default: all]
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
}

/// What a preset decides.
const MATRIX: [&str; 10] =
    ["quick", "workloads", "keys", "access", "entries", "threads", "key_len", "value_len", "backing", "pages"];

/// The arguments that all measuring commands have.
#[derive(Debug, Clone, Args)]
pub(crate) struct RunArgs {
    /// What to measure, separated by commas [default: all]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "NAME")]
    pub(crate) subjects: Vec<Subject>,
    /// How often each subject runs; fewer than 5 say little [default: 5; engine --quick: 3]
    #[arg(long, value_parser = value_parser!(u32).range(1..), value_name = "N")]
    pub(crate) rounds: Option<u32>,
    /// Write machine, commit, parameters and every round to this file, which `report` reads
    #[arg(long, value_name = "OUT")]
    pub(crate) json: Option<PathBuf>,
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

/// A run that can be done.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) preset: Option<String>,
    pub(crate) cells: Vec<Cell>,
    /// The size of tables to count the cost of lookups in, if that is part of the run.
    pub(crate) patterns: Option<usize>,
    pub(crate) rounds: u32,
    pub(crate) json: Option<PathBuf>,
}

impl Plan {
    /// The run that `args` ask for, on a machine with `memory` bytes available, if it tells.
    pub(crate) fn new(args: &MemtableArgs, memory: Option<u64>) -> Result<Self, Error> {
        let subjects = &args.run.subjects;
        let all = |backing, pages| {
            let usual = if args.quick { QUICK_ENTRIES } else { Shape::default().entries };
            args.matrix.cells(usual, subjects, backing, pages, &[Store::Table])
        };
        let preset = |preset: Preset| narrowed(preset.cells(), subjects);
        let mut cells = args.preset.map_or_else(|| all(&args.backing, &args.pages), preset);
        let most = args.at_most.unwrap_or(usize::MAX);
        cells.iter_mut().for_each(|cell| cell.shape.entries = most.min(cell.shape.entries));
        // Only a memtable counts.
        let counts = subjects.is_empty() || subjects.contains(&Subject::Memtable);
        let counts = counts && args.preset.is_some_and(Preset::has_patterns);
        if cells.is_empty() && !counts {
            return Err("the preset has none of the subjects".to_owned().into());
        }
        let patterns = counts.then(|| most.min(patterns::ENTRIES));
        Ok(Self { patterns, ..Self::of_cells(args.preset.map(name), cells, &args.run, memory)? })
    }

    /// The run of engines that `args` ask for.
    pub(crate) fn of_engines(args: &EngineArgs, memory: Option<u64>) -> Result<Self, Error> {
        let (EngineArgs { matrix, store, .. }, subjects) = (args, &args.run.subjects);
        let is_matrix = !(matrix.workloads.is_empty() && matrix.entries.is_empty() && store.is_empty());
        let (mut cells, preset) = if is_matrix {
            let usual = Shape::default();
            let store = if store.is_empty() { &[Store::Engine][..] } else { store };
            let entries = if args.quick { QUICK_ENTRIES } else { presets::ENGINE_ENTRIES };
            (matrix.cells(entries, subjects, &[usual.backing], &[usual.pages], store), None)
        } else {
            let set = if args.quick { "engine-quick" } else { "engine" };
            (narrowed(presets::built(set), subjects), Some(set.to_owned()))
        };
        let most = args.at_most.unwrap_or(usize::MAX);
        cells.iter_mut().for_each(|cell| cell.shape.entries = most.min(cell.shape.entries).max(cell.shape.threads));
        if cells.is_empty() {
            return Err("the preset has none of the subjects".to_owned().into());
        }
        let plan = Self::of_cells(preset, cells, &args.run, memory)?;
        let rounds = args.run.rounds.unwrap_or(if args.quick { QUICK_ROUNDS } else { ROUNDS });
        Ok(Self { rounds, ..plan })
    }

    /// Refuses cells that cannot be measured, and files that cannot be written. Measures cells that are the same once.
    pub(crate) fn of_cells(
        preset: Option<String>,
        all: Vec<Cell>,
        args: &RunArgs,
        memory: Option<u64>,
    ) -> Result<Self, Error> {
        let mut cells = Vec::new();
        for cell in all {
            cell.check(memory)?;
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        args.json.as_deref().map_or(Ok(()), can_write)?;
        Ok(Self { preset, cells, patterns: None, rounds: args.rounds.unwrap_or(ROUNDS), json: args.json.clone() })
    }

    /// How many rounds there are of all subjects, and patterns to count.
    pub(crate) fn turns(&self) -> u64 {
        let patterns = if self.patterns.is_some() { Pattern::value_variants().len() } else { 0 };
        let rounds = self.cells.iter().map(|cell| cell.subjects.len()).sum::<usize>() * self.rounds as usize;
        (rounds + patterns) as u64
    }
}

impl Matrix {
    /// Every combination of the arguments, with `usual` entries unless they say otherwise.
    fn cells(
        &self,
        usual: usize,
        subjects: &[Subject],
        backing: &[Backing],
        pages: &[Pages],
        store: &[Store],
    ) -> Vec<Cell> {
        let Self { keys, access, value_len, threads, .. } = self;
        let usual = [usual];
        let entries = if self.entries.is_empty() { &usual[..] } else { &self.entries };
        let all = iproduct!(keys, access, value_len, entries, threads, backing, pages, store);
        all.map(|(&keys, &access, &value_len, &entries, &threads, &backing, &pages, &store)| {
            let (key_len, value_len) = (self.key_len as usize, value_len as usize);
            let shape = Shape { keys, access, entries, threads, key_len, value_len, backing, pages, store };
            Cell::new(shape, subjects, &self.workloads)
        })
        .collect()
    }
}

/// A preset's cells with no other subjects than `subjects`, if any are named.
fn narrowed(mut cells: Vec<Cell>, subjects: &[Subject]) -> Vec<Cell> {
    for cell in &mut cells {
        cell.subjects.retain(|subject| subjects.is_empty() || subjects.contains(subject));
        cell.workloads.retain(|&workload| cell.subjects.iter().any(|subject| subject.can(workload)));
    }
    cells.retain(|cell| !cell.subjects.is_empty());
    cells
}

/// Better to learn now than after an hour that the result cannot be written.
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
