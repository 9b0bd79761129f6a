//! The file of a run: where it comes from, what was asked, every round, and the figures. `--json` writes it, `report` reads it.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cell::Cell;
use super::figures::{Figure, Overhead, Rounds, figures, overheads};
use super::round::Outcome;
use super::shape::Shape;
use super::subjects::Subject;
use super::workload::Workload;
use crate::random::SEED;
use crate::{host, origin};

/// What a file must say it is.
const BENCHMARK: &str = "memtable";

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Document {
    benchmark: String,
    pub(crate) date: String,
    pub(crate) commit: Option<String>,
    pub(crate) optimised: bool,
    pub(crate) machine: Machine,
    pub(crate) preset: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
    pub(crate) cells: Vec<Measured>,
}

/// Where it ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) model: Option<String>,
    pub(crate) os: String,
    pub(crate) architecture: String,
}

/// A cell with all that was measured of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) shape: Shape,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) workloads: Vec<Workload>,
    /// In the order in which they ran.
    pub(crate) rounds: Vec<Turn>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) memory: Vec<Overhead>,
}

/// One round of one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Turn {
    pub(crate) round: usize,
    pub(crate) subject: Subject,
    #[serde(flatten)]
    pub(crate) came_to: CameTo,
}

/// An outcome, or why there is none.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum CameTo {
    Outcome(Outcome),
    Failure { failed: String },
}

impl Document {
    /// What is known before anything has run.
    pub(crate) fn new(preset: Option<&str>, rounds: u32) -> Self {
        Self {
            benchmark: BENCHMARK.into(),
            date: origin::now(),
            commit: origin::commit(),
            optimised: origin::OPTIMISED,
            machine: Machine {
                cores: host::cores(),
                model: host::model(),
                os: std::env::consts::OS.into(),
                architecture: std::env::consts::ARCH.into(),
            },
            preset: preset.map(Into::into),
            rounds,
            seed: SEED,
            cells: Vec::new(),
        }
    }

    /// The run in a file's text.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let document: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if document.benchmark != BENCHMARK {
            return Err(format!("expected benchmark {BENCHMARK:?}, found {:?}", document.benchmark));
        }
        Ok(document)
    }

    /// Writes it to `path`, which holds either what it held or all of it, even if this process is stopped meanwhile.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        fs::write(&unfinished, serde_json::to_string_pretty(self)? + "\n")?;
        fs::rename(&unfinished, path)
    }
}

impl Measured {
    pub(crate) fn new(cell: &Cell, results: &[(Subject, Rounds)]) -> Self {
        Self {
            shape: cell.shape,
            subjects: cell.subjects.clone(),
            workloads: cell.workloads.clone(),
            rounds: turns(results),
            figures: figures(&cell.workloads, results),
            memory: overheads(cell.shape.entries, results),
        }
    }

    /// What `subject` came to at `workload`.
    pub(crate) fn figure(&self, subject: Subject, workload: Workload) -> Option<&Figure> {
        self.figures.iter().find(|figure| figure.subject == subject && figure.workload == workload)
    }

    /// The median of `subject` at `workload`, in nanoseconds per operation.
    pub(crate) fn nanos(&self, subject: Subject, workload: Workload) -> Option<f64> {
        Some(self.figure(subject, workload)?.ns_per_operation?.median)
    }

    /// Failed compare-and-swaps for each insert of `subject`, in the mean over its rounds, if it counts them: too rare for a
    /// median.
    pub(crate) fn cas_failures_per_insert(&self, subject: Subject) -> Option<f64> {
        let outcomes = self.rounds.iter().filter(|turn| turn.subject == subject).filter_map(Turn::outcome);
        let failures: Vec<_> = outcomes.filter_map(|outcome| outcome.cas_failures).collect();
        let inserts = failures.len() * self.shape.entries;
        (inserts > 0).then(|| failures.iter().sum::<u64>() as f64 / inserts as f64)
    }

    /// How many rounds of `subject` failed, and why the first of them did.
    pub(crate) fn failures(&self, subject: Subject) -> Option<(usize, &str)> {
        let mut reasons = self.rounds.iter().filter(|turn| turn.subject == subject).filter_map(Turn::failure);
        let first = reasons.next()?;
        Some((1 + reasons.count(), first))
    }
}

impl Turn {
    fn outcome(&self) -> Option<&Outcome> {
        match &self.came_to {
            CameTo::Outcome(outcome) => Some(outcome),
            CameTo::Failure { .. } => None,
        }
    }

    fn failure(&self) -> Option<&str> {
        match &self.came_to {
            CameTo::Outcome(_) => None,
            CameTo::Failure { failed } => Some(failed),
        }
    }
}

/// Every round, in the order in which they ran.
fn turns(results: &[(Subject, Rounds)]) -> Vec<Turn> {
    let longest = results.iter().map(|(_, rounds)| rounds.len()).max().unwrap_or(0);
    let turn = |round: usize| {
        results.iter().filter_map(move |(subject, rounds)| {
            let came_to = match rounds.get(round)? {
                Ok(outcome) => CameTo::Outcome(outcome.clone()),
                Err(reason) => CameTo::Failure { failed: reason.clone() },
            };
            Some(Turn { round: round + 1, subject: *subject, came_to })
        })
    };
    (0..longest).flat_map(turn).collect()
}

#[cfg(test)]
mod tests {
    use super::super::presets;
    use super::super::round::{Memory, Sample};
    use super::*;
    use crate::keys::KeySet;

    fn outcome(ns: u64) -> Outcome {
        let samples = vec![Sample { workload: Workload::Insert, operations: 10, ns }];
        Outcome { samples, memory: Memory { payload: 9, resident: Some(20), used: None }, cas_failures: Some(ns / 100) }
    }

    fn document() -> Document {
        let cell = Cell::new(
            presets::shape(KeySet::Random, 10),
            &[Subject::Memtable, Subject::FastskipPublished],
            &[Workload::Insert],
        );
        let results = [
            (Subject::Memtable, vec![Ok(outcome(100)), Ok(outcome(200))]),
            (Subject::FastskipPublished, vec![Err("signal: 11".to_owned()), Ok(outcome(300))]),
        ];
        let mut document = Document::new(Some("goals"), 2);
        document.cells.push(Measured::new(&cell, &results));
        document
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        // Catches a field that is written under one name and read under another, and failures read as rounds without samples.
        let directory = tempfile::tempdir().expect("a directory");
        let (path, written) = (directory.path().join("out.json"), document());
        written.write(&path).expect("written");
        let read = Document::parse(&fs::read_to_string(&path).expect("read")).expect("a document");
        assert_eq!(read, written);
        assert_eq!(read.cells[0].failures(Subject::FastskipPublished), Some((1, "signal: 11")));
        assert_eq!(read.cells[0].failures(Subject::Memtable), None);
        assert_eq!(read.cells[0].nanos(Subject::Memtable, Workload::Insert), Some(15.0));
    }

    #[test]
    fn failed_swaps_are_counted_over_the_rounds_that_ended() {
        // Catches rounds that crashed counted as rounds without a failure. Ten entries: 1 and 2 failures, then 3 in one round.
        let cell = &document().cells[0];
        assert_eq!(cell.cas_failures_per_insert(Subject::Memtable), Some(0.15));
        assert_eq!(cell.cas_failures_per_insert(Subject::FastskipPublished), Some(0.3));
        assert_eq!(cell.cas_failures_per_insert(Subject::Skl), None);
    }

    #[test]
    fn rounds_are_in_the_order_in_which_they_ran() {
        // Catches a file that says a subject ran all its rounds in a row.
        let order: Vec<_> = document().cells[0].rounds.iter().map(|turn| (turn.round, turn.subject)).collect();
        let [ours, theirs] = [Subject::Memtable, Subject::FastskipPublished];
        assert_eq!(order, [(1, ours), (1, theirs), (2, ours), (2, theirs)]);
    }

    #[test]
    fn text_of_another_form_is_refused() {
        // Catches a page drawn from something else, and a message that does not say what is missing.
        let text = serde_json::to_string(&document()).expect("text");
        for (wrong, expected) in [
            ("nonsense".to_owned(), "expected"),
            ("{}".to_owned(), "missing field `benchmark`"),
            (text.replacen("memtable", "engine", 1), "expected benchmark \"memtable\", found \"engine\""),
            (text.replace("\"cells\"", "\"sells\""), "missing field `cells`"),
            (text.replace("\"random\"", "\"urls\""), "unknown variant `urls`"),
            (text[..text.len() / 2].to_owned(), "EOF"),
        ] {
            let refusal = Document::parse(&wrong).expect_err(expected);
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
