//! The command `run`: measures cells round by round. The subjects take turns, so that a slow phase of the machine affects them all, and each round of a
//! subject is a process of its own: it gets a line of JSON as its argument, and prints one as its answer.
//!
//! ```text
//! memtable-bench round {"subject":"memtable","workloads":["insert"],"shape":{"keys":"random",..}}
//! [{"workload":"insert","operations":2000,"ns":123456,"facts":{"own-overhead":31.2}},..]
//! ```

use std::env;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use itertools::iproduct;

use crate::matrix::{Cell, Matrix, cells, parse_count};
use crate::results::{CellResults, Run, Turn};
use crate::round::{self, Request, Sample};
use crate::sheet;
use crate::spec::{Shape, Subject, name};

const QUICK_ENTRIES: usize = 100_000;
const LOOK: Duration = Duration::from_millis(5);

/// Compare tables or engines with their peers: ns per operation, medians of interleaved rounds
///
/// Arguments that take several values, separated by commas, make a matrix: each combination is measured by itself, its subjects in turns. Databases go
/// to the directory that TMPDIR names.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Sets of cells that have a name, instead of a matrix: tables, published, curves, engines, peers, transactions
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
        print!(
            "{}",
            sheet::cell(&results).into_iter().map(|(title, sheet)| format!("\n{title}\n\n{sheet}")).collect::<String>()
        );
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
    let mut command = Command::new(env::current_exe().map_err(|error| error.to_string())?);
    let answer = answer_of(command.args(["round", &request]), time_limit(&cell.shape))?;
    let samples: Option<Vec<Sample>> = serde_json::from_str(&answer).ok();
    let is_right = |samples: &Vec<Sample>| !samples.is_empty() && samples.iter().all(|sample| sample.operations > 0);
    samples.filter(is_right).ok_or_else(|| format!("expected samples, found {:?}", answer.trim()))
}

/// Runs the round that `request` describes in this process, and prints the answer.
pub(crate) fn round(request: &str) -> Result<(), String> {
    let request =
        serde_json::from_str(request).map_err(|error| format!("expected a request, found {request:?}: {error}"))?;
    println!("{}", serde_json::to_string(&round::run(&request)?).map_err(|error| error.to_string())?);
    Ok(())
}

/// What `command` prints, if it exits with 0 within `limit`; a process that takes longer is killed. An answer fits into a pipe.
fn answer_of(command: &mut Command, limit: Duration) -> Result<String, String> {
    let failed = |error: std::io::Error| format!("cannot run it: {error}");
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let (mut child, begun) = (child.map_err(failed)?, Instant::now());
    let status = loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            break status;
        }
        if begun.elapsed() > limit {
            child.kill().and_then(|()| child.wait()).map_err(failed)?;
            return Err(format!("did not end within {} s", limit.as_secs()));
        }
        thread::sleep(LOOK);
    };
    let read = |pipe: Option<&mut dyn Read>| {
        let mut bytes = Vec::new();
        pipe.map_or(Ok(0), |pipe| pipe.read_to_end(&mut bytes)).map_err(failed)?;
        Ok::<_, String>(String::from_utf8_lossy(&bytes).into_owned())
    };
    let stdout = read(child.stdout.as_mut().map(|pipe| pipe as _))?;
    let stderr = read(child.stderr.as_mut().map(|pipe| pipe as _))?;
    if status.success() { Ok(stdout) } else { Err(reason(status, &stderr)) }
}

/// The way the process ended, and the most useful line of its stderr: a panic's message, or else the last line.
fn reason(status: ExitStatus, stderr: &str) -> String {
    let mut lines = stderr.lines().filter(|line| !line.trim().is_empty());
    let panic = lines.clone().skip_while(|line| !line.contains("panicked at")).nth(1);
    let line = panic.or_else(|| lines.next_back());
    line.map_or_else(|| status.to_string(), |line| format!("{status}: {}", line.trim()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_an_answer_or_a_reason_and_is_killed_when_it_never_ends() {
        // Catches stderr mixed into an answer, a crashed round without the cause, and a run that hangs with its subject.
        let shell =
            |script: &str, seconds| answer_of(Command::new("sh").args(["-c", script]), Duration::from_secs(seconds));
        let panic = "echo \"'main' panicked at x.rs:1:1:\" >&2; echo no room >&2; echo note: run with >&2; exit 101";
        for (script, expected) in [
            ("echo noise >&2; echo result", Ok("result\n")),
            ("echo half; echo why >&2; exit 3", Err("exit status: 3: why")),
            (panic, Err("exit status: 101: no room")),
            ("kill -SEGV $$", Err("signal: 11 (SIGSEGV)")),
        ] {
            assert_eq!(shell(script, 3600).as_deref().map_err(String::as_str), expected);
        }
        assert_eq!(shell("exec sleep 36000", 0), Err("did not end within 0 s".into()));
    }
}
