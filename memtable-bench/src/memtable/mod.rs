//! The command `memtable`: which sorted in-memory table is how fast at what.
//!
//! `arguments` and `presets` -> `plan`, which refuses what cannot be done -> for each of its cells a process for each `round`,
//! which `exchange` starts and understands -> `figures` -> `table` for people and `document` for `--json` and the report.

mod arguments;
mod cell;
mod clock;
mod digest;
mod document;
mod exchange;
mod figures;
mod input;
mod plan;
mod presets;
mod round;
mod shape;
mod subjects;
mod table;
mod workload;

use std::path::Path;

pub(crate) use arguments::{MemtableArgs, parse_count};
pub(crate) use cell::Cell;
pub(crate) use document::{Document, Measured};
pub(crate) use exchange::{ROUND, RoundArgs};
pub(crate) use figures::{Figure, Overhead};
pub(crate) use plan::Plan;
pub(crate) use presets::{Preset, published, shape};
pub(crate) use shape::{Access, KEY_LEN, Shape};
pub(crate) use subjects::{Role, Subject};
pub(crate) use table::{Heading, Table};
pub(crate) use workload::Workload;

use round::Outcome;

use crate::failure::Failure;
use crate::goals;
use crate::host;
use crate::output::print;
use crate::process::Failed;
use crate::progress::Progress;
use crate::rounds::interleaved;

/// Measures what `args` ask for, and prints it.
pub(crate) fn run(args: &MemtableArgs) -> Result<(), Failure> {
    let plan = Plan::new(args, host::memory_available())?;
    let document = measure(&plan, |cell| print(&Table(cell).to_string()))?;
    if args.preset == Some(Preset::Goals) {
        print(&goals::Summary(&document.cells).to_string())?;
    }
    judge(&document)
}

/// Measures cell after cell, and shows each when it is done. Writes what is measured so far after each cell, so that a run that
/// is stopped leaves what it has.
pub(crate) fn measure(plan: &Plan, show: impl Fn(&Measured) -> Result<(), Failure>) -> Result<Document, Failure> {
    let mut document = Document::new(plan.preset, plan.rounds);
    print(&Heading(&document).to_string())?;
    let progress = Progress::new(plan.turns());
    for cell in &plan.cells {
        let mut given_up = Vec::new();
        let run = |subject| exchange::run_in_process(cell, subject);
        let results = interleaved(&cell.subjects, plan.rounds, |subject| {
            progress.during(subject.name(), || turn(subject, &mut given_up, run))
        });
        let measured = Measured::new(cell, &results);
        progress.aside(|| show(&measured))?;
        document.cells.push(measured);
        plan.json.as_deref().map_or(Ok(()), |path| write(&document, path))?;
    }
    progress.finish();
    Ok(document)
}

/// Runs a round of `subject`, unless an earlier one did not end: each such round costs all the patience there is.
fn turn(
    subject: Subject,
    given_up: &mut Vec<Subject>,
    run: impl FnOnce(Subject) -> Result<Outcome, Failed>,
) -> Result<Outcome, String> {
    if given_up.contains(&subject) {
        return Err("not run, since an earlier round did not end".into());
    }
    run(subject).map_err(|failed| {
        if let Failed::Overdue(_) = failed {
            given_up.push(subject);
        }
        failed.to_string()
    })
}

fn write(document: &Document, path: &Path) -> Result<(), Failure> {
    let written = document.write(path);
    written.map_err(|source| Failure::Io { action: "write", place: path.display().to_string(), source })
}

/// Runs one round in this process, and prints its samples for the parent.
pub(crate) fn run_round(args: &RoundArgs) -> Result<(), Failure> {
    let outcome = round::run(args.subject, args.shape, &args.workloads).map_err(Failure::Subject)?;
    print(&(exchange::answer(&outcome).map_err(Failure::Subject)? + "\n"))
}

/// A subject that fails is an error, but for the published crate: its crashes are known, and part of the comparison.
pub(crate) fn judge(document: &Document) -> Result<(), Failure> {
    let failed = |cell: &Measured| {
        let fails = |subject: &Subject| *subject != Subject::FastskipPublished && cell.failures(*subject).is_some();
        cell.subjects.iter().copied().find(fails)
    };
    match document.cells.iter().find_map(failed) {
        Some(subject) => Err(Failure::Subject(format!("{} failed", subject.name()))),
        None => Ok(()),
    }
}

/// Runs that were never run, for tests of what is made of them.
#[cfg(test)]
pub(crate) mod testing;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::KeySet;

    #[test]
    fn a_subject_that_did_not_end_is_not_waited_for_again() {
        // Catches a run that waits ten minutes in each of its rounds for a subject that hangs.
        use std::time::Duration;
        let mut given_up = Vec::new();
        let crash = |_| Err(Failed::Because("signal: 11".into()));
        let hang = |_| Err(Failed::Overdue(Duration::from_secs(9)));
        assert_eq!(turn(Subject::Skl, &mut given_up, crash), Err("signal: 11".into()));
        assert_eq!(turn(Subject::Skl, &mut given_up, hang), Err("did not end within 9 s".into()));
        let never = |_| -> Result<Outcome, Failed> { panic!("it was given up") };
        let refusal = turn(Subject::Skl, &mut given_up, never).expect_err("given up");
        assert!(refusal.contains("not run"), "{refusal}");
        assert_eq!(turn(Subject::Memtable, &mut given_up, crash), Err("signal: 11".into()));
    }

    #[test]
    fn only_the_published_crate_may_fail() {
        // Catches a script that takes a wrong result of ours for a measurement.
        let failing = |subject| {
            let cell = Cell::new(shape(KeySet::Random, 10), &[subject], &[Workload::Insert]);
            let mut document = Document::new(None, 1);
            document.cells.push(Measured::new(&cell, &[(subject, vec![Err("wrong".into())])]));
            document
        };
        assert!(judge(&failing(Subject::FastskipPublished)).is_ok());
        assert!(judge(&failing(Subject::Memtable)).is_err());
    }
}
