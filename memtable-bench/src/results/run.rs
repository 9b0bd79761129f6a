//! A run, and its file, which `--json` writes and `report` reads.

use std::fs;
use std::io;
use std::path::Path;

use bench_keys::SEED;
use serde::{Deserialize, Serialize};

use super::cell::CellResults;
use crate::allocator;
use crate::machine::{self, Machine, OPTIMISED};

/// The possible values of `benchmark` in a file: the run measures tables or engines.
const BENCHMARKS: [&str; 2] = ["memtable", "engine"];

/// The results of one run: the machine and the commit, the arguments, and every round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) benchmark: String,
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
    /// The last field: see [`Run::to_json`].
    pub(crate) cells: Vec<CellResults>,
}

impl Run {
    /// The facts that are known before anything has run.
    pub(crate) fn new(preset: Option<String>, rounds: u32, of_engines: bool) -> Self {
        Self {
            benchmark: BENCHMARKS[usize::from(of_engines)].into(),
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

    pub(crate) fn is_of_engines(&self) -> bool {
        self.benchmark == BENCHMARKS[1]
    }

    /// Parses a run from a file's text; the error describes what is wrong with the text.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let run: Self = serde_json::from_str(text).map_err(|error| error.to_string())?;
        if !BENCHMARKS.contains(&&*run.benchmark) {
            return Err(format!("expected benchmark {BENCHMARKS:?}, found {:?}", run.benchmark));
        }
        Ok(run)
    }

    /// Compact JSON: one line for the run, and one for each cell.
    fn to_json(&self) -> io::Result<String> {
        let run = serde_json::to_string(&Self { cells: Vec::new(), ..self.clone() })?;
        let cells = self.cells.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
        let run = run.strip_suffix("]}").ok_or(io::ErrorKind::InvalidData)?;
        Ok(format!("{run}\n{}\n]}}\n", cells.join(",\n")))
    }

    /// Writes the run to `path`. Even if this process is stopped meanwhile, `path` has its old contents or all of the
    /// new.
    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut unfinished = path.as_os_str().to_owned();
        unfinished.push(".unfinished");
        fs::write(&unfinished, self.to_json()?)?;
        fs::rename(&unfinished, path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::measured_run;
    use crate::spec::{Cell, KeySet, Shape};

    #[test]
    fn a_file_is_read_as_it_was_written() {
        // Catches a field that is written under one name and read under another, and whitespace in the file.
        let cell = Cell::new(Shape::new(KeySet::Random, 10), &[], &[]);
        let written = measured_run(2, &[cell.clone(), cell]);
        let directory = tempfile::tempdir().expect("a directory");
        written.write(&directory.path().join("out.json")).expect("written");
        let text = fs::read_to_string(directory.path().join("out.json")).expect("read");
        assert_eq!((Run::parse(&text), text.lines().count()), (Ok(written), 4));
        let empty = Run::new(None, 1, true).to_json().expect("text");
        assert_eq!(Run::parse(&empty).map(|run| run.cells), Ok(vec![]));
        let other = Run::parse(&text.replacen("memtable", "cache", 1));
        assert_eq!(other, Err("expected benchmark [\"memtable\", \"engine\"], found \"cache\"".into()));
    }
}
