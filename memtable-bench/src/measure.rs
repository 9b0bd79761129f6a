//! Measures the cells of a plan, round by round. The subjects take turns, so that a slow phase of the machine affects them all.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use itertools::iproduct;

use crate::error::Error;
use crate::goals;
use crate::ipc::{self, ChildError};
use crate::plan::Plan;
use crate::results::{CellResults, Run, Turn, cell_text, heading, ratios};
use crate::round::Sample;
use crate::spec::{Cell, Subject};
use crate::text::{name, print};

const REDRAW: Duration = Duration::from_millis(500);
const PROGRESS: &str = "{wide_bar} {pos}/{len} rounds, {eta} left, {msg}";

/// Measures the cells of the plan, and prints the results. Fails if one of our subjects fails.
pub(crate) fn run(plan: &Plan) -> Result<(), Error> {
    let run = measure(plan)?;
    if run.is_of_engines() {
        print(&format!("\nTimes as fast as each peer: 2.00x is half its time.\n\n{}", ratios(&run.cells)))?;
    }
    // Goals are not checked against a matrix, only against a preset.
    if run.preset.is_some() {
        print(&goals::summary(&run.cells))?;
    }
    judge(&run)
}

/// Measures one cell after the other, and prints each finished one. Writes the results so far after each cell, so that a stopped run keeps its
/// finished cells.
fn measure(plan: &Plan) -> Result<Run, Error> {
    let has_engines = plan.cells.iter().any(|cell| !cell.shape.store.is_table());
    let mut run = Run::new(plan.preset.clone(), plan.rounds, has_engines);
    print(&heading(&run))?;
    let bar = progress(plan.turns());
    for cell in &plan.cells {
        let turns = interleaved(cell, plan.rounds, &bar, ipc::run_in_process);
        run.cells.push(CellResults { cell: cell.clone(), rounds: turns });
        bar.suspend(|| run.cells.last().map_or(Ok(()), |cell| print(&cell_text(cell))))?;
        plan.json.as_deref().map_or(Ok(()), |path| run.write(path).map_err(Error::io("write", path)))?;
    }
    bar.finish_and_clear();
    Ok(run)
}

/// The rounds of all subjects, in turns. After a round that did not end, the subject gets no more rounds, because each would cost the whole time
/// limit.
fn interleaved(
    cell: &Cell,
    rounds: u32,
    bar: &ProgressBar,
    run: impl Fn(&Cell, Subject) -> Result<Vec<Sample>, ChildError>,
) -> Vec<Turn> {
    let mut given_up = Vec::new();
    let turn = |(round, &subject): (u32, &Subject)| {
        bar.set_message(name(subject));
        let result = if given_up.contains(&subject) {
            Err("not run, since an earlier round did not end".into())
        } else {
            let result = run(cell, subject);
            given_up.extend(matches!(result, Err(ChildError::TimedOut(_))).then_some(subject));
            result.map_err(|error| error.to_string())
        };
        bar.inc(1);
        Turn::new(round, subject, result)
    };
    iproduct!(1..=rounds, &cell.subjects).map(turn).collect()
}

/// Shows which round runs and how long the rest takes, on stderr if that is a terminal.
fn progress(turns: u64) -> ProgressBar {
    let bar = ProgressBar::new(turns);
    // A wrong template falls back to the plain bar and does not stop the run. A test checks the template.
    let bar = ProgressStyle::with_template(PROGRESS).map_or(bar.clone(), |style| bar.with_style(style));
    if !bar.is_hidden() {
        bar.enable_steady_tick(REDRAW);
    }
    bar
}

/// A subject that fails is an error, except for the published crate: its crashes are known, and part of the comparison.
fn judge(run: &Run) -> Result<(), Error> {
    let failed = |turn: &&Turn| turn.subject != Subject::FastskipPublished && turn.failed.is_some();
    let first = run.cells.iter().flat_map(|of| &of.rounds).find(failed);
    first.map_or(Ok(()), |turn| Err(Error::subject(format!("{} failed", name(turn.subject)))))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::spec::{KeySet, Shape, Workload};

    #[test]
    fn subjects_take_turns_and_one_that_did_not_end_is_not_waited_for_again() {
        // Catches rounds of one subject in a row, a run that waits in each round for a subject that hangs, a failure of our own
        // subjects that a script takes for a measurement, and a crash of the published crate that fails the whole run.
        let (ran, ours, peer) = (RefCell::new(Vec::new()), Subject::Memtable, Subject::FastskipPublished);
        let cell = Cell::new(Shape::new(KeySet::Random, 10), &[ours, peer], &[Workload::Insert]);
        let turns = interleaved(&cell, 3, &ProgressBar::hidden(), |_, subject| {
            ran.borrow_mut().push(subject);
            Err(if subject == ours { ChildError::TimedOut(REDRAW) } else { ChildError::Failed("signal: 11".into()) })
        });
        assert_eq!(*ran.borrow(), [ours, peer, peer, peer]);
        let order: Vec<_> = turns.iter().map(|turn| (turn.round, turn.subject)).collect();
        assert_eq!(order, [(1, ours), (1, peer), (2, ours), (2, peer), (3, ours), (3, peer)]);
        let given_up = Some("not run, since an earlier round did not end");
        assert_eq!([2, 4].map(|turn: usize| turns[turn].failed.as_deref()), [given_up; 2]);
        let fails = |subject: Subject| {
            let rounds = turns.iter().filter(|turn| turn.subject == subject).cloned().collect();
            judge(&Run { cells: vec![CellResults { cell: cell.clone(), rounds }], ..Run::new(None, 1, false) }).is_err()
        };
        assert_eq!([ours, peer].map(fails), [true, false]);
        // Catches a typing error in the template, which would leave a bar without time and subject.
        assert!(ProgressStyle::with_template(PROGRESS).is_ok());
    }
}
