//! Measures the cells of a plan, round by round: subjects take turns, so that a slow phase of the machine meets them all.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use itertools::iproduct;

use crate::error::Error;
use crate::goals;
use crate::ipc;
use crate::machine;
use crate::plan::{MemtableArgs, Plan};
use crate::presets::Preset;
use crate::process::ChildError;
use crate::results::{CellResults, Run, Turn, cell_text, heading};
use crate::round::Outcome;
use crate::spec::{Cell, Subject};
use crate::text::{name, print};

const REDRAW: Duration = Duration::from_millis(500);
const PROGRESS: &str = "{wide_bar} {pos}/{len} rounds, {eta} left, {msg}";

/// The command `memtable`: which sorted in-memory table is how fast at what.
pub(crate) fn memtable(args: &MemtableArgs) -> Result<(), Error> {
    let run = measure(&Plan::new(args, machine::memory_available())?)?;
    if args.preset == Some(Preset::Goals) {
        print(&goals::summary(&run.cells))?;
    }
    judge(&run)
}

/// Measures cell after cell, and prints each when it is done. Writes the results so far after each cell, so that a run that
/// is stopped leaves what it has.
pub(crate) fn measure(plan: &Plan) -> Result<Run, Error> {
    let mut run = Run::new(plan.preset.as_deref(), plan.rounds);
    print(&heading(&run))?;
    let bar = progress(plan.turns());
    for cell in &plan.cells {
        let turns = interleaved(cell, plan.rounds, &bar, ipc::run_in_process);
        let cell = CellResults::new(cell.clone(), turns);
        bar.suspend(|| print(&cell_text(&cell)))?;
        run.cells.push(cell);
        plan.json.as_deref().map_or(Ok(()), |path| run.write(path).map_err(Error::io("write", path)))?;
    }
    bar.finish_and_clear();
    Ok(run)
}

/// The rounds of all subjects, in turns.
fn interleaved(
    cell: &Cell,
    rounds: u32,
    bar: &ProgressBar,
    run: impl Fn(&Cell, Subject) -> Result<Outcome, ChildError>,
) -> Vec<Turn> {
    let mut given_up = Vec::new();
    let mut turn = |(round, &subject): (u32, &Subject)| {
        bar.set_message(name(subject));
        let result = turn(subject, &mut given_up, |subject| run(cell, subject));
        bar.inc(1);
        Turn::new(round, subject, result)
    };
    iproduct!(1..=rounds, &cell.subjects).map(&mut turn).collect()
}

/// Runs a round of `subject`, unless an earlier one did not end: each such round costs the whole time limit.
fn turn(
    subject: Subject,
    given_up: &mut Vec<Subject>,
    run: impl FnOnce(Subject) -> Result<Outcome, ChildError>,
) -> Result<Outcome, String> {
    if given_up.contains(&subject) {
        return Err("not run, since an earlier round did not end".into());
    }
    run(subject).map_err(|error| {
        if let ChildError::TimedOut(_) = error {
            given_up.push(subject);
        }
        error.to_string()
    })
}

/// Shows which round runs and how long the rest takes, on stderr if that is a terminal.
fn progress(turns: u64) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    // The plain bar will do: a picture is no reason to stop. A test checks that it is never needed.
    let bar = ProgressStyle::with_template(PROGRESS).map_or(bar.clone(), |style| bar.with_style(style));
    if !bar.is_hidden() {
        bar.enable_steady_tick(REDRAW);
    }
    bar
}

/// A subject that fails is an error, except for the published crate: its crashes are known, and part of the comparison.
pub(crate) fn judge(run: &Run) -> Result<(), Error> {
    let fails = |cell: &CellResults, subject: &Subject| {
        *subject != Subject::FastskipPublished && cell.failures(*subject).is_some()
    };
    match run.cells.iter().find_map(|cell| cell.subjects.iter().find(|subject| fails(cell, subject))) {
        Some(&subject) => Err(Error::Subject(format!("{} failed", name(subject)))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::keys::KeySet;
    use crate::results::TurnResult;
    use crate::spec::{Shape, Workload};

    fn cell(subjects: &[Subject]) -> Cell {
        Cell::new(Shape::new(KeySet::Random, 10), subjects, &[Workload::Insert])
    }

    #[test]
    fn subjects_take_turns_and_one_that_did_not_end_is_not_waited_for_again() {
        // Catches rounds of one subject in a row, and a run that waits in each round for a subject that hangs.
        let (ran, subjects) = (RefCell::new(Vec::new()), [Subject::Vec, Subject::Memtable]);
        let turns = interleaved(&cell(&subjects), 3, &ProgressBar::hidden(), |_, subject| {
            ran.borrow_mut().push(subject);
            match subject {
                Subject::Vec => Err(ChildError::Failed("signal: 11".into())),
                _ => Err(ChildError::TimedOut(Duration::from_secs(9))),
            }
        });
        let [vec, memtable] = subjects;
        assert_eq!(*ran.borrow(), [vec, memtable, vec, vec]);
        let order: Vec<_> = turns.iter().map(|turn| (turn.round, turn.subject)).collect();
        assert_eq!(order, [(1, vec), (1, memtable), (2, vec), (2, memtable), (3, vec), (3, memtable)]);
        let expected =
            ["signal: 11", "did not end within 9 s", "signal: 11", "not run, since an earlier round did not end"];
        for (turn, expected) in turns.iter().zip(expected) {
            assert_eq!(turn.result, TurnResult::Failure { failed: expected.into() });
        }
    }

    #[test]
    fn only_the_published_crate_may_fail() {
        // Catches a script that takes a wrong result of ours for a measurement.
        let failing = |subject| {
            let mut run = Run::new(None, 1);
            run.cells.push(CellResults::new(cell(&[subject]), vec![Turn::new(1, subject, Err("wrong".into()))]));
            judge(&run)
        };
        assert!(failing(Subject::FastskipPublished).is_ok() && failing(Subject::Memtable).is_err());
    }

    #[test]
    fn the_progress_template_can_be_read() {
        // Catches a typing error in it, which would leave a bar without time and subject.
        assert!(ProgressStyle::with_template(PROGRESS).is_ok());
    }
}
