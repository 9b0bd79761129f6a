//! The command `memtable`: which sorted in-memory table is how fast at what.
//!
//! `arguments` -> `plan`, which refuses what cannot be done -> a process for each `round`, which `exchange` starts and
//! understands -> `figures` -> `table` and `json`.

mod arguments;
mod clock;
mod exchange;
mod figures;
mod input;
mod json;
mod plan;
mod round;
mod subjects;
mod table;
mod workload;

use std::io::{self, Write};

pub(crate) use arguments::MemtableArgs;
pub(crate) use exchange::{ROUND, RoundArgs};

use figures::Rounds;
use plan::Plan;
use subjects::Subject;
use table::Table;

use crate::failure::Failure;
use crate::host;
use crate::progress::Progress;
use crate::rounds::interleaved;

/// Measures what `args` ask for, and prints it.
pub(crate) fn run(args: &MemtableArgs) -> Result<(), Failure> {
    let plan = Plan::new(args, host::memory_available())?;
    let progress = Progress::new(u64::from(plan.rounds) * plan.subjects.len() as u64);
    let results = interleaved(&plan.subjects, plan.rounds, |subject| {
        progress.during(subject.name(), || exchange::run_in_process(&plan, subject))
    });
    progress.finish();
    let figures = figures::figures(&plan.workloads, &results);
    if let Some(path) = &plan.json {
        let written = json::write(&json::document(&plan, &results, &figures), path);
        written.map_err(|source| Failure::Io { action: "write", place: path.display().to_string(), source })?;
    }
    print(&Table { plan: &plan, results: &results, figures: &figures }.to_string())?;
    judge(&results)
}

/// Runs one round in this process, and prints its samples for the parent.
pub(crate) fn run_round(args: &RoundArgs) -> Result<(), Failure> {
    let samples = round::run(args.subject, args.shape(), &args.workloads).map_err(Failure::Subject)?;
    print(&(exchange::answer(&samples) + "\n"))
}

fn print(text: &str) -> Result<(), Failure> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        // Whoever read stdout has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| Failure::Io { action: "write", place: "stdout".into(), source }),
    }
}

/// A subject that fails is an error, but for the published crate: its crashes are known, and part of the comparison.
fn judge(results: &[(Subject, Rounds)]) -> Result<(), Failure> {
    let failed = |(subject, rounds): &&(Subject, Rounds)| {
        *subject != Subject::FastskipPublished && figures::failures(rounds).is_some()
    };
    match results.iter().find(failed) {
        Some((subject, _)) => Err(Failure::Subject(format!("{} failed", subject.name()))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_published_crate_may_fail() {
        // Catches a script that takes a wrong result of ours for a measurement.
        let failing =
            |subject| [(Subject::Btreemap, vec![Ok(vec![])]), (subject, vec![Ok(vec![]), Err("wrong".into())])];
        assert!(judge(&failing(Subject::FastskipPublished)).is_ok());
        assert!(judge(&failing(Subject::Memtable)).is_err());
    }
}
