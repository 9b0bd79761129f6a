//! Compares a run with the goals, check by check.

use itertools::iproduct;

use super::list::GOALS;
use super::measure::{Bound, Goal, Measure, Measurement};
use crate::results::CellResults;
use crate::spec::{Shape, Subject, Workload};
use crate::text::{Sheet, name, or_dash};

/// One requirement of a goal.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Check {
    goal: &'static str,
    what: String,
    bound: Bound,
    unit: &'static str,
    /// `None` if the run did not measure it.
    measured: Option<f64>,
}

impl Check {
    /// The distance to the bound in per cent of the bound: above 0 if the measurement is better, below 0 if it is worse.
    fn margin(&self) -> Option<f64> {
        let measured = self.measured?;
        Some(match self.bound {
            Bound::AtLeast(least) => (measured / least - 1.0) * 100.0,
            Bound::AtMost(most) => (1.0 - measured / most) * 100.0,
        })
    }

    fn is_met(&self) -> Option<bool> {
        self.margin().map(|margin| margin >= 0.0)
    }

    fn row(&self) -> Vec<String> {
        let wanted = match self.bound {
            Bound::AtLeast(least) => format!("≥ {least:.2}{}", self.unit),
            Bound::AtMost(most) => format!("≤ {most:.2}{}", self.unit),
        };
        let measured = or_dash(self.measured, |measured| format!("{measured:.2}{}", self.unit));
        let margin = or_dash(self.margin(), |margin| format!("{margin:+.0} %"));
        vec![self.goal.into(), word(self.is_met()).into(), measured, wanted, margin, self.what.clone()]
    }
}

/// The goals for the subjects of the run: those of tables, of engines, or both.
pub(crate) fn concerned(run: &[CellResults]) -> impl Iterator<Item = &'static Goal> {
    GOALS.iter().filter(|goal| goal.concerns(run))
}

/// The checks of every goal that concerns `run`.
pub(crate) fn checks(run: &[CellResults]) -> Vec<Check> {
    let mut checks = Vec::new();
    for (goal, row) in concerned(run).flat_map(|goal| goal.rows.iter().map(move |row| (goal, row))) {
        let (subjects, workloads, shapes, checked) = *row;
        let all = iproduct!(checked, shapes, workloads, subjects);
        for ((measure, bound), shape, &workload, &subject) in all.filter(|(.., of, subject)| subject.can(**of)) {
            let shape = nearest(run, *shape, subject, workload);
            let Measure { says, unit, of } = *measure;
            let what = format!("{} {}, {}: {says}", name(subject), name(workload), shape.brief());
            // The first cell of the shape that has the needed subjects.
            let cells = run.iter().filter(|cell| cell.cell.shape == shape);
            let measured = cells.map(|cell| Measurement { run, cell, subject, workload }).find_map(|at| of(&at));
            let check = Check { goal: goal.name, what, bound: *bound, unit, measured };
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    checks
}

/// `shape` itself, if the run has it. A quick run of engines has only smaller shapes; then the largest one at which the subject did the workload.
fn nearest(run: &[CellResults], shape: Shape, subject: Subject, workload: Workload) -> Shape {
    let alike = run.iter().filter(|of| Shape { entries: shape.entries, ..of.cell.shape } == shape);
    let measured = alike.filter(|of| of.nanos(subject, workload).is_some()).map(|of| of.cell.shape);
    let is_missing = !shape.store.is_table() && !measured.clone().any(|of| of == shape);
    measured.filter(|_| is_missing).max_by_key(|of| of.entries).unwrap_or(shape)
}

/// `Some(true)` if all checks of the goal are met, `Some(false)` if one is missed. `None` if no check is missed but some are not measured.
fn verdict(goal: &str, checks: &[Check]) -> Option<bool> {
    let met: Vec<_> = checks.iter().filter(|check| check.goal == goal).map(Check::is_met).collect();
    if met.contains(&Some(false)) { Some(false) } else { met.into_iter().reduce(|a, b| Some(a? && b?))? }
}

/// A verdict in words.
fn word(met: Option<bool>) -> &'static str {
    met.map_or("not measured", |met| if met { "met" } else { "missed" })
}

/// The verdict on a goal, first alone and then with the distance of its worst check to the bound.
pub(crate) fn outcome(goal: &str, checks: &[Check]) -> (&'static str, String) {
    let margins = checks.iter().filter(|check| check.goal == goal).filter_map(Check::margin);
    let met = verdict(goal, checks);
    let outcome = match (met, margins.min_by(f64::total_cmp)) {
        (Some(true), Some(margin)) => format!("met, by {margin:.0} % or more"),
        (Some(false), Some(margin)) => format!("missed, by up to {:.0} %", -margin),
        _ => word(met).into(),
    };
    (word(met), outcome)
}

pub(crate) fn sheet<'c>(checks: impl IntoIterator<Item = &'c Check>) -> Sheet {
    Sheet::new(["goal", "", "measured", "asked for", "margin", "what"], checks.into_iter().map(Check::row))
}

/// Every goal with its checks, as text.
pub(crate) fn summary(run: &[CellResults]) -> String {
    let checks = checks(run);
    let goal = |Goal { name, .. }: &Goal| {
        let of_goal = sheet(checks.iter().filter(|check| check.goal == *name));
        format!("\n{name}: {}\n{of_goal}", word(verdict(name, &checks)))
    };
    concerned(run).map(goal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::{self, Preset};
    use crate::results::measured;
    use crate::spec::Role;

    /// The checks of the preset when each of our subjects takes `ours` ns, and each peer 100 ns; on more threads in proportion.
    fn run(ours: f64) -> Vec<Check> {
        let nanos = |shape: &Shape, subject: Subject| {
            if subject.role() == Role::Own { ours / shape.threads as f64 } else { 100.0 }
        };
        let cells = [Preset::Goals.cells(), presets::engine()].concat();
        checks(&Vec::from_iter(cells.iter().map(|cell| measured(cell, |subject| nanos(&cell.shape, subject)))))
    }

    #[test]
    fn the_preset_measures_every_goal_and_fast_enough_is_met_and_too_slow_is_missed() {
        // Catches a goal that a full run leaves unmeasured, a goal that is met because it has no checks, and reversed bounds.
        let (fast, slow, unmeasured) = (run(3.0), run(101.0), checks(&[]));
        assert!(fast.iter().all(|check| check.measured.is_some()), "{fast:?}");
        for goal in GOALS.iter().map(|goal| goal.name) {
            // The slow run also meets N7, a ratio that does not change, and E9, whose bounds even the slow times meet.
            let verdicts = [&fast, &slow, &unmeasured].map(|checks| verdict(goal, checks));
            assert_eq!(verdicts, [Some(true), Some(goal == "N7" || goal == "E9"), None], "{goal}");
        }
    }

    #[test]
    fn margins_are_above_zero_when_better_and_a_goal_is_met_only_if_all_of_it_is() {
        // Catches a goal that is missed by a third but shown as exceeded by a third, and a goal that counts as met because one of its cells meets
        // it.
        let check = |bound, measured| Check { goal: "N3", what: String::new(), bound, unit: "x", measured };
        let (least, most) = (Bound::AtLeast(2.0), Bound::AtMost(40.0));
        let margins = [(least, 3.0), (least, 1.0), (most, 30.0), (most, 50.0)];
        let margins = margins.map(|(of, it)| check(of, Some(it)).margin());
        assert_eq!(margins, [50.0, -50.0, 25.0, -25.0].map(Some));
        let [met, missed, unknown] = [Some(3.0), Some(0.5), None].map(|measured| check(least, measured));
        for (checks, expected) in [
            (&[&met, &met][..], Some(true)),
            (&[&met, &missed, &unknown], Some(false)),
            (&[&unknown, &met], None),
            (&[], None),
        ] {
            let checks = Vec::from_iter(checks.iter().copied().cloned());
            assert_eq!((verdict("N3", &checks), verdict("N1", &checks)), (expected, None));
        }
    }
}
