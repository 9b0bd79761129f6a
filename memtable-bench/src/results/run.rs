//! The results of a run, and their file, which `--json` writes and `report` reads.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figures::{Figure, Overhead, Spread, Turn, figures, outcomes, overheads};
use crate::latency::Latency;
use crate::machine::{self, Machine, OPTIMISED};
use crate::patterns::PatternCost;
use crate::random::SEED;
use crate::round::{Fact, Outcome, Timeline};
use crate::spec::{Cell, Shape, Subject, Workload};

/// What a file must say it is.
pub(super) const ENGINE: &str = "engine";
const BENCHMARKS: [&str; 2] = ["memtable", ENGINE];

/// The results of one run: where they come from, what was asked, every round, and the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) benchmark: String,
    pub(crate) date: String,
    pub(crate) commit: Option<String>,
    pub(crate) optimised: bool,
    pub(crate) machine: Machine,
    pub(crate) preset: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    /// Counts, if the run has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) patterns: Vec<PatternCost>,
    /// The last field: see [`Run::to_json`].
    pub(crate) cells: Vec<CellResults>,
}

/// Everything that was measured of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CellResults {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
    /// In the order in which they ran.
    pub(crate) rounds: Vec<Turn>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) memory: Vec<Overhead>,
}

impl Run {
    /// What is known before anything has run.
    pub(crate) fn new(preset: Option<&str>, rounds: u32) -> Self {
        Self {
            benchmark: BENCHMARKS[0].into(),
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            commit: machine::commit(),
            optimised: OPTIMISED,
            machine: Machine::this(),
            preset: preset.map(Into::into),
            rounds,
            seed: SEED,
            patterns: Vec::new(),
            cells: Vec::new(),
        }
    }

    /// The same of engines.
    pub(crate) fn of_engines(self) -> Self {
        Self { benchmark: ENGINE.into(), ..self }
    }

    /// The run in a file's text, or what is wrong with it.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let run: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !BENCHMARKS.contains(&&*run.benchmark) {
            return Err(format!("expected benchmark {BENCHMARKS:?}, found {:?}", run.benchmark));
        }
        Ok(run)
    }

    /// Compact JSON: a line for the run, one for each cell.
    fn to_json(&self) -> io::Result<String> {
        let run = serde_json::to_string(&Self { cells: Vec::new(), ..self.clone() })?;
        let cells = self.cells.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let run = run.strip_suffix("]}").ok_or(io::ErrorKind::InvalidData)?;
        Ok(format!("{run}\n{}\n]}}\n", cells.join(",\n")))
    }

    /// Writes it to `path`, which then holds either its old contents or all of the new, even if this process is stopped
    /// meanwhile.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        fs::write(&unfinished, self.to_json()?)?;
        fs::rename(&unfinished, path)
    }
}

impl CellResults {
    pub(crate) fn new(Cell { shape, subjects, workloads }: Cell, rounds: Vec<Turn>) -> Self {
        let figures = figures(&subjects, &workloads, &rounds);
        let memory = overheads(&subjects, shape.entries, &rounds);
        Self { shape, subjects, workloads, rounds, figures, memory }
    }

    /// The figure of `subject` at `workload`.
    pub(crate) fn figure(&self, subject: Subject, workload: Workload) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.subject == subject && figure.workload == workload)
    }

    /// The figures of a workload that are there.
    pub(crate) fn figures_at(&self, workload: Workload) -> impl Iterator<Item = &Figure> {
        self.figures.iter().filter(move |figure| figure.workload == workload && figure.ns_per_operation.is_some())
    }

    /// The median of `subject` at `workload`, in nanoseconds per operation.
    pub(crate) fn nanos(&self, subject: Subject, workload: Workload) -> Option<f64> {
        Some(self.figure(subject, workload)?.ns_per_operation?.median)
    }

    /// Failed compare-and-swaps for a million inserts of `subject`, if it counts them. The mean over its rounds: they are too
    /// rare for a median.
    pub(crate) fn conflicts_per_million(&self, subject: Subject) -> Option<f64> {
        let failures: Vec<_> = outcomes(&self.rounds, subject).filter_map(|outcome| outcome.cas_failures).collect();
        let inserts = failures.len() * self.shape.entries;
        (inserts > 0).then(|| failures.iter().sum::<u64>() as f64 * 1e6 / inserts as f64)
    }

    /// The latency of single operations of `subject`: medians over its rounds.
    pub(crate) fn latency(&self, subject: Subject, workload: Workload) -> Option<Latency> {
        let median = |field: fn(&Latency) -> f64| {
            Spread::over(&self.rounds, subject, |outcome| outcome.latency(workload).as_ref().map(field))
                .map(|spread| spread.median)
        };
        Latency::medians(median)
    }

    /// What `subject` took beside time: the median over its rounds.
    pub(crate) fn fact(&self, subject: Subject, workload: Workload, fact: Fact) -> Option<f64> {
        let fact = |outcome: &Outcome| outcome.sample(workload)?.facts.get(&fact).copied();
        Some(Spread::over(&self.rounds, subject, fact)?.median)
    }

    /// When `subject` did how much, in its first round that did not fail.
    pub(crate) fn timeline(&self, subject: Subject, workload: Workload) -> Option<&Timeline> {
        outcomes(&self.rounds, subject).find_map(|outcome| outcome.sample(workload)?.timeline.as_ref())
    }

    /// How many rounds of `subject` failed, of how many, and why the first of them did.
    pub(crate) fn failures(&self, subject: Subject) -> Option<(usize, usize, &str)> {
        let reasons: Vec<_> = outcomes(&self.rounds, subject).filter_map(|outcome| outcome.failed.as_deref()).collect();
        Some((reasons.len(), outcomes(&self.rounds, subject).count(), reasons.first()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::round::{Memory, Outcome, Sample};
    use crate::spec::KeySet;

    #[test]
    fn a_file_is_read_as_it_was_written_and_failed_rounds_have_no_part_in_its_figures() {
        // Catches a field that is written under one name and read under another, files that grow by whitespace, and rounds that
        // crashed counted as rounds without a failed swap. Ten entries: 1 and 2 swaps failed, then 3 in one round.
        let ended = |ns| {
            let samples = vec![Sample { workload: Workload::Insert, operations: 10, ns, ..Sample::default() }];
            let memory = Memory { payload: 9, ..Memory::default() };
            let latency = Some(Latency { tail_ratio: ns as f64, ..Latency::default() });
            Ok(Outcome { samples, memory, cas_failures: Some(ns / 100), latency, ..Outcome::default() })
        };
        let (ours, peer) = (Subject::Memtable, Subject::FastskipPublished);
        let results = [(ours, ended(100)), (peer, Err("signal: 11".into())), (ours, ended(200)), (peer, ended(300))];
        let turns = results.map(|(subject, result)| Turn::new(1, subject, result)).to_vec();
        let cell = Cell::new(Shape::new(KeySet::Random, 10), &[ours, peer], &[Workload::Insert]);
        let mut written = Run::new(Some("goals"), 2);
        written.cells = vec![CellResults::new(cell, turns); 2];
        let directory = tempfile::tempdir().expect("a directory");
        written.write(&directory.path().join("out.json")).expect("written");
        let text = fs::read_to_string(directory.path().join("out.json")).expect("read");
        assert_eq!((Run::parse(&text), text.lines().count()), (Ok(written.clone()), 4));
        assert_eq!(Run::parse(&Run::new(None, 1).to_json().expect("text")).map(|run| run.cells), Ok(vec![]));
        let cell = &written.cells[0];
        assert_eq!((cell.failures(peer), cell.failures(ours)), (Some((1, 2, "signal: 11")), None));
        assert_eq!(cell.nanos(ours, Workload::Insert), Some(15.0));
        assert_eq!(
            [ours, peer].map(|of| cell.latency(of, Workload::InsertLatency).map(|of| of.tail_ratio)),
            [Some(150.0), Some(300.0)]
        );
        let conflicts = [ours, peer, Subject::Skl].map(|subject| cell.conflicts_per_million(subject));
        assert_eq!(conflicts, [Some(150_000.0), Some(300_000.0), None]);
        let other = Run::parse(&text.replacen("memtable", "cache", 1));
        assert_eq!(other, Err("expected benchmark [\"memtable\", \"engine\"], found \"cache\"".into()));
    }
}
