//! The results of a run: its file, which `run --json` writes and `report` reads, and medians over the rounds.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

use bench_keys::SEED;
use serde::{Deserialize, Serialize};

use crate::allocator;
use crate::machine::{self, Machine, OPTIMISED};
use crate::matrix::Cell;
use crate::round::Sample;
use crate::spec::{Subject, Workload};

/// The machine and the commit, the arguments, and every round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) date: String,
    pub(crate) commit: Option<String>,
    pub(crate) optimised: bool,
    /// The allocator of every subject's process: `mimalloc`, or `None` for the system's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) allocator: Option<String>,
    pub(crate) machine: Machine,
    pub(crate) preset: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    /// The last field: see [`Run::write`].
    pub(crate) cells: Vec<CellResults>,
}

/// One round of one subject. A failed round has no samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: u32,
    pub(crate) subject: Subject,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) failed: Option<String>,
    #[serde(default)]
    pub(crate) samples: Vec<Sample>,
}

/// All measurements of a cell, in the order in which they were made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellResults {
    #[serde(flatten)]
    pub(crate) cell: Cell,
    pub(crate) rounds: Vec<Turn>,
}

/// The median, the minimum and the maximum over the rounds. One slow round does not move the median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without measurements. The median of an even number is the mean of the two in the middle.
    fn of(measurements: impl Iterator<Item = f64>) -> Option<Self> {
        let mut sorted: Vec<f64> = measurements.collect();
        sorted.sort_unstable_by(f64::total_cmp);
        let (below, above) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted[sorted.len() / 2]);
        Some(Self { median: below.midpoint(above), min: sorted[0], max: sorted[sorted.len() - 1] })
    }
}

impl Run {
    /// The facts that are known before anything has run.
    pub(crate) fn new(preset: Option<String>, rounds: u32) -> Self {
        Self {
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            commit: machine::commit(),
            optimised: OPTIMISED,
            allocator: allocator::NAME.map(Into::into),
            machine: Machine::this(),
            preset,
            rounds,
            seed: SEED,
            cells: Vec::new(),
        }
    }

    pub(crate) fn read(file: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
        serde_json::from_str(&text).map_err(|error| format!("{} is no result of run --json: {error}", file.display()))
    }

    /// Writes compact JSON: one line for the run, and one for each cell. Even if this process is stopped meanwhile, `path` has its old contents or all
    /// of the new.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let run = serde_json::to_string(&Self { cells: Vec::new(), ..self.clone() })?;
        let cells = self.cells.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let unfinished = path.with_extension("unfinished");
        fs::write(&unfinished, format!("{}\n{}\n]}}\n", run.trim_end_matches("]}"), cells.join(",\n")))?;
        fs::rename(&unfinished, path)
    }

    /// The machine, the date and the commit.
    pub(crate) fn origin(&self) -> String {
        let Self { machine, date, commit, rounds, .. } = self;
        let unknown = || "unknown".to_owned();
        let [model, commit] = [&machine.model, commit].map(|of| of.clone().unwrap_or_else(unknown));
        let allocator = self.allocator.as_deref().unwrap_or("the system's");
        let warning = if self.optimised { "" } else { " NOT OPTIMISED: these times mean nothing." };
        format!(
            "{date}: {} cores, {model}; allocator {allocator}; commit {commit}; medians of {rounds} rounds, subjects in turns.{warning}",
            machine.cores
        )
    }
}

impl CellResults {
    /// The values that `of` finds in the samples of the rounds that did not fail.
    fn spread(&self, subject: Subject, workload: Workload, of: impl Fn(&Sample) -> Option<f64>) -> Option<Spread> {
        let samples = self.rounds.iter().filter(|turn| turn.subject == subject).flat_map(|turn| &turn.samples);
        Spread::of(samples.filter(|sample| sample.workload == workload).filter_map(of))
    }

    /// Nanoseconds per operation.
    pub(crate) fn times(&self, subject: Subject, workload: Workload) -> Option<Spread> {
        self.spread(subject, workload, Sample::ns_per_operation)
    }

    pub(crate) fn nanos(&self, subject: Subject, workload: Workload) -> Option<f64> {
        Some(self.times(subject, workload)?.median)
    }

    /// A latency, or a cost other than time: the median over the rounds.
    pub(crate) fn fact(&self, subject: Subject, workload: Workload, name: &str) -> Option<f64> {
        let fact = |sample: &Sample| sample.facts.get(name).or_else(|| sample.latency.get(name)).copied();
        Some(self.spread(subject, workload, fact)?.median)
    }

    /// The subjects with a time at `workload`, fastest first.
    pub(crate) fn ranking(&self, workload: Workload) -> Vec<(Subject, Spread)> {
        let of = |&subject: &Subject| Some((subject, self.times(subject, workload)?));
        let mut all: Vec<_> = self.cell.subjects.iter().filter_map(of).collect();
        all.sort_by(|a, b| a.1.median.total_cmp(&b.1.median));
        all
    }

    /// Each subject with failed rounds: the number of these rounds, and the first reason.
    pub(crate) fn failures(&self) -> BTreeMap<String, (usize, &str)> {
        let mut failures = BTreeMap::new();
        for turn in &self.rounds {
            if let Some(reason) = &turn.failed {
                failures.entry(crate::spec::name(turn.subject)).or_insert((0, &**reason)).0 += 1;
            }
        }
        failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_of_sorted_rounds() {
        // Catches a median of unsorted rounds, one that an outlier moves, and an index past the end where all rounds failed.
        let spread = |of: &[f64]| Spread::of(of.iter().copied()).map(|Spread { median, min, max }| [median, min, max]);
        assert_eq!(spread(&[9.0, 1.0, 1000.0, 3.0, 2.0]), Some([3.0, 1.0, 1000.0]));
        assert_eq!(spread(&[4.0, 1.0, 2.0, 10.0]), Some([3.0, 1.0, 10.0]));
        assert_eq!(spread(&[]), None);
    }
}
