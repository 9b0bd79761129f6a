//! The command `run`: measures cells round by round. The subjects take turns, so that a slow phase of the machine affects them all, and each round of a
//! subject is a process of its own: it gets a line of JSON as its argument, and prints one as its answer.
//!
//! ```text
//! memtable-bench round {"subject":"memtable","workloads":["insert"],"shape":{"keys":"random",..}}
//! {"Ok":[{"workload":"insert","operations":2000,"ns":123456,"facts":{"own-overhead":31.2}},..]}
//! ```

use std::any::Any;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{env, panic};

use clap::Args;
use itertools::iproduct;
use wait_timeout::ChildExt;

use crate::matrix::{Cell, Matrix, cells, parse_count};
use crate::results::{CellResults, Run, Turn};
use crate::round::{self, Request, Sample};
use crate::sheet;
use crate::spec::{Shape, Subject, name};

const QUICK_ENTRIES: usize = 100_000;

/// Compare tables or engines with their peers: ns per operation, medians of interleaved rounds
///
/// Arguments that take several values, separated by commas, make a matrix: each combination is measured by itself, its subjects in turns. Databases go
/// to the directory that TMPDIR names.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Sets of cells that have a name, instead of a matrix: tables, published, curves, engines, peers, transactions, own-tables, own-engine
    #[arg(value_name = "PRESET")]
    presets: Vec<String>,
    #[command(flatten)]
    matrix: Matrix,
    /// Take at most 100K entries in any cell, and 3 rounds: done in a few minutes
    #[arg(long)]
    quick: bool,
    /// Take no more entries than this in any cell
    #[arg(long, value_parser = parse_count, value_name = "N")]
    at_most: Option<usize>,
    /// How often each subject runs; fewer than 5 say little [default: 5; with --quick 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..), value_name = "N")]
    rounds: Option<u32>,
    /// Write machine, commit, parameters and every round to this file, which `report` reads
    #[arg(long, value_name = "OUT")]
    json: Option<PathBuf>,
}

impl RunArgs {
    fn cells(&self) -> Result<Vec<Cell>, String> {
        let named = &self.matrix.subjects;
        if let Some((missing, feature)) = named.iter().find_map(|of| Some((of, of.missing_feature()?))) {
            return Err(format!(
                "subject {} was not built: add --features {feature} to cargo's arguments",
                name(*missing)
            ));
        }
        let mut matrices = vec![self.matrix.clone()];
        if !self.presets.is_empty() {
            if self.matrix.has_shapes() {
                return Err("a preset takes only --subjects and --workloads of a matrix".into());
            }
            matrices = self.presets.iter().map(|name| Matrix::preset(name)).collect::<Result<Vec<_>, _>>()?.concat();
        }
        let quick = if self.quick { QUICK_ENTRIES } else { usize::MAX };
        let mut cells = cells(&matrices, self.at_most.unwrap_or(quick))?;
        cells.iter_mut().for_each(|cell| cell.narrow(&self.matrix));
        cells.retain(|cell| !cell.workloads.is_empty());
        if cells.is_empty() { Err("the presets have none of the subjects and workloads".into()) } else { Ok(cells) }
    }
}

/// Measures one cell after the other, and prints each finished one. Writes the results so far after each cell, so that a stopped run keeps its finished
/// cells. Fails if a subject fails, other than the published crate: its crashes are known, and part of the comparison. Exit codes: see `main`.
pub(crate) fn run(args: &RunArgs) -> Result<(), (u8, String)> {
    let cells = args.cells().map_err(|why| (2, why))?;
    let preset = Some(args.presets.join(" ")).filter(|names| !names.is_empty());
    let mut run = Run::new(preset, args.rounds.unwrap_or(if args.quick { 3 } else { 5 }));
    let write = |run: &Run| match &args.json {
        Some(path) => run.write(path).map_err(|error| (2, format!("cannot write {}: {error}", path.display()))),
        None => Ok(()),
    };
    // An error now is better than an error after an hour.
    write(&run)?;
    println!("{}", run.origin());
    for (at, cell) in cells.iter().enumerate() {
        eprintln!("cell {} of {}: {}, {} subjects", at + 1, cells.len(), cell.shape, cell.subjects.len());
        let turn = |(round, &subject)| {
            let ended = in_process(cell, subject);
            let (samples, failed) = ended.map_or_else(|why| (Vec::new(), Some(why)), |samples| (samples, None));
            Turn { round, subject, failed, samples }
        };
        let rounds = iproduct!(1..=run.rounds, &cell.subjects).map(turn).collect();
        let results = CellResults { cell: cell.clone(), rounds };
        print!("{}", sheet::cell(&results));
        run.cells.push(results);
        write(&run)?;
    }
    let failed = |turn: &&Turn| turn.subject != Subject::FastskipPublished && turn.failed.is_some();
    let first = run.cells.iter().flat_map(|of| &of.rounds).find(failed);
    first.map_or(Ok(()), |turn| Err((1, format!("{} failed", name(turn.subject)))))
}

/// The time after which a round counts as hung: far more than the slowest subject needs.
fn time_limit(shape: &Shape) -> Duration {
    Duration::from_secs(120) + Duration::from_millis(1).saturating_mul(shape.entries.try_into().unwrap_or(u32::MAX))
}

/// Runs a round of `subject` in a process of its own.
fn in_process(cell: &Cell, subject: Subject) -> Result<Vec<Sample>, String> {
    let request = Request { subject, workloads: cell.workloads.clone(), shape: cell.shape };
    let request = serde_json::to_string(&request).map_err(|error| error.to_string())?;
    let program = env::current_exe().map_err(|error| error.to_string())?;
    answer_of(Command::new(program).args(["round", &request]), time_limit(&cell.shape))
}

/// Runs the round that `request` describes in this process, and prints the answer.
pub(crate) fn round(request: &str) -> Result<(), String> {
    let request =
        serde_json::from_str(request).map_err(|error| format!("expected a request, found {request:?}: {error}"))?;
    let answer = panic::catch_unwind(|| round::run(&request)).unwrap_or_else(|cause| Err(message(&*cause)));
    println!("{}", serde_json::to_string(&answer).map_err(|error| error.to_string())?);
    Ok(())
}

/// The message of a panic.
fn message(cause: &(dyn Any + Send)) -> String {
    let text = cause.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| cause.downcast_ref::<String>().cloned()).unwrap_or_else(|| "it panicked".into())
}

/// The answer of `command`, which fits into a pipe; or else how it ended. A process that takes longer than `limit` is killed.
fn answer_of(command: &mut Command, limit: Duration) -> Result<Vec<Sample>, String> {
    let failed = |error: std::io::Error| format!("cannot run it: {error}");
    let mut child =
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().map_err(failed)?;
    let Some(status) = child.wait_timeout(limit).map_err(failed)? else {
        child.kill().and_then(|()| child.wait()).map_err(failed)?;
        return Err(format!("did not end within {} s", limit.as_secs()));
    };
    let output = child.wait_with_output().map_err(failed)?;
    // A subject's library may print lines of its own before.
    let answer = output.stdout.trim_ascii_end().rsplit(|byte| *byte == b'\n').next().unwrap_or_default();
    match serde_json::from_slice(answer) {
        Ok(Ok(samples)) if Vec::is_empty(&samples) => Err("it measured nothing".into()),
        Ok(answer) => answer,
        Err(_) if status.success() => Err("its answer cannot be read".into()),
        Err(_) => Err(status.to_string()),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_an_answer_or_a_reason_and_is_killed_when_it_never_ends() {
        // Catches a crashed round that looks like an empty one, and a run that hangs with its subject.
        for (script, limit, expected) in [
            ("echo '{\"Ok\":[]}'", 3600, Err("it measured nothing")),
            (
                "echo opened; echo '{\"Ok\":[{\"workload\":\"get\",\"operations\":1,\"ns\":2,\"facts\":{}}]}'",
                3600,
                Ok(1),
            ),
            ("echo opened; echo '{\"Err\":\"no room\"}'", 3600, Err("no room")),
            ("echo 1", 3600, Err("its answer cannot be read")),
            ("kill -SEGV $$", 3600, Err("signal: 11 (SIGSEGV)")),
            ("exec sleep 36000", 0, Err("did not end within 0 s")),
        ] {
            let answer = answer_of(Command::new("sh").args(["-c", script]), Duration::from_secs(limit));
            assert_eq!(answer.as_ref().map(Vec::len).map_err(String::as_str), expected);
        }
    }
}
