//! The results of a run, and their file, which `--json` writes and `report` reads.

use std::fs;
use std::io;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::figures::{Figure, Overhead, Turn, TurnResult, figures, outcomes, overheads};
use crate::machine::{self, Machine, OPTIMISED};
use crate::random::SEED;
use crate::spec::{Cell, Shape, Subject, Workload};

/// What a file must say it is.
const BENCHMARK: &str = "memtable";

/// The results of one run: where they come from, what was asked, every round, and the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    benchmark: String,
    pub(crate) date: String,
    pub(crate) commit: Option<String>,
    pub(crate) optimised: bool,
    pub(crate) machine: Machine,
    pub(crate) preset: Option<String>,
    pub(crate) rounds: u32,
    pub(crate) seed: u64,
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
            benchmark: BENCHMARK.into(),
            date: humantime::format_rfc3339_seconds(std::time::SystemTime::now()).to_string(),
            commit: machine::commit(),
            optimised: OPTIMISED,
            machine: Machine::this(),
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
        let run: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if run.benchmark != BENCHMARK {
            return Err(format!("expected benchmark {BENCHMARK:?}, found {:?}", run.benchmark));
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

    /// How many rounds of `subject` there were.
    pub(crate) fn rounds_of(&self, subject: Subject) -> usize {
        self.rounds.iter().filter(|turn| turn.subject == subject).count()
    }

    /// How many rounds of `subject` failed, and why the first of them did.
    pub(crate) fn failures(&self, subject: Subject) -> Option<(usize, &str)> {
        let of_subject = self.rounds.iter().filter(|turn| turn.subject == subject);
        let mut reasons = of_subject.filter_map(|turn| match &turn.result {
            TurnResult::Outcome(_) => None,
            TurnResult::Failure { failed } => Some(&**failed),
        });
        let first = reasons.next()?;
        Some((1 + reasons.count(), first))
    }
}

/// Results that were never measured, for tests of what is made of them.
#[cfg(test)]
pub(crate) mod testing {
    use super::*;
    use crate::round::{Memory, Outcome, Sample};

    /// The results of a cell in which every operation takes `nanos`, and every table `beyond` bytes an entry beyond key and
    /// value, by both accounts.
    pub(crate) fn measured(cell: &Cell, nanos: impl Fn(Subject) -> f64, beyond: Option<f64>) -> CellResults {
        let (operations, payload) = (1000, 64 << 20);
        let outcome = |subject: Subject| {
            let ns = (nanos(subject) * operations as f64) as u64;
            let able = cell.workloads.iter().filter(|&&workload| subject.can(workload));
            let samples = able.map(|&workload| Sample { workload, operations, ns }).collect();
            let used = beyond.map(|beyond| payload + (beyond * cell.shape.entries as f64) as u64);
            Outcome { samples, memory: Memory { payload, resident: used, used }, cas_failures: None }
        };
        let turn = |&subject: &Subject| Turn::new(1, subject, Ok(outcome(subject)));
        CellResults::new(cell.clone(), cell.subjects.iter().map(turn).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySet;
    use crate::round::{Memory, Outcome, Sample};

    fn outcome(ns: u64) -> Outcome {
        let samples = vec![Sample { workload: Workload::Insert, operations: 10, ns }];
        Outcome { samples, memory: Memory { payload: 9, resident: Some(20), used: None }, cas_failures: Some(ns / 100) }
    }

    fn run() -> Run {
        let subjects = [Subject::Memtable, Subject::FastskipPublished];
        let cell = Cell::new(Shape::new(KeySet::Random, 10), &subjects, &[Workload::Insert]);
        let turns = vec![
            Turn::new(1, Subject::Memtable, Ok(outcome(100))),
            Turn::new(1, Subject::FastskipPublished, Err("signal: 11".to_owned())),
            Turn::new(2, Subject::Memtable, Ok(outcome(200))),
            Turn::new(2, Subject::FastskipPublished, Ok(outcome(300))),
        ];
        let mut run = Run::new(Some("goals"), 2);
        run.cells = vec![CellResults::new(cell, turns); 2];
        run
    }

    #[test]
    fn a_file_is_read_as_it_was_written_and_has_a_line_for_each_cell() {
        // Catches a field that is written under one name and read under another, failures read as rounds without samples, and
        // files that grow by whitespace.
        let directory = tempfile::tempdir().expect("a directory");
        let (path, written) = (directory.path().join("out.json"), run());
        written.write(&path).expect("written");
        let text = fs::read_to_string(&path).expect("read");
        let read = Run::parse(&text).expect("a run");
        assert_eq!((&read, text.lines().count(), text.contains(": ")), (&written, 4, text.contains("signal: ")));
        assert_eq!(Run::parse(&Run::new(None, 1).to_json().expect("text")).map(|run| run.cells), Ok(vec![]));
        assert_eq!(read.cells[0].failures(Subject::FastskipPublished), Some((1, "signal: 11")));
        assert_eq!(read.cells[0].failures(Subject::Memtable), None);
        assert_eq!(read.cells[0].nanos(Subject::Memtable, Workload::Insert), Some(15.0));
    }

    #[test]
    fn failed_swaps_are_counted_over_the_rounds_that_ended() {
        // Catches rounds that crashed counted as rounds without a failure. Ten entries: 1 and 2 failures, then 3 in one round.
        let cell = &run().cells[0];
        assert_eq!(cell.conflicts_per_million(Subject::Memtable), Some(150_000.0));
        assert_eq!(cell.conflicts_per_million(Subject::FastskipPublished), Some(300_000.0));
        assert_eq!(cell.conflicts_per_million(Subject::Skl), None);
    }

    #[test]
    fn text_of_another_form_is_refused() {
        // Catches a page drawn from something else, and a message that does not say what is missing.
        let text = serde_json::to_string(&run()).expect("text");
        for (wrong, expected) in [
            ("nonsense".to_owned(), "expected"),
            ("{}".to_owned(), "missing field `benchmark`"),
            (text.replacen("memtable", "engine", 1), "expected benchmark \"memtable\", found \"engine\""),
            (text.replace("\"cells\"", "\"sells\""), "missing field `cells`"),
            (text.replace("\"random\"", "\"urls\""), "unknown variant `urls`"),
            (text[..text.len() / 2].to_owned(), "EOF"),
        ] {
            let refusal = Run::parse(&wrong).expect_err(expected);
            assert!(refusal.contains(expected), "{refusal}");
        }
    }
}
