//! What goals make of runs.

use super::*;
use crate::memtable::testing::measured;

/// Every cell of the goals with each of our subjects `ours` ns, each peer 100 ns; on more threads in proportion.
fn run(ours: f64) -> Vec<Measured> {
    let nanos = |shape: &Shape, subject: Subject| {
        if subject.role() == Role::Own { ours / shape.threads as f64 } else { 100.0 }
    };
    cells().iter().map(|cell| measured(cell, |subject| nanos(&cell.shape, subject), Some(25.0))).collect()
}

#[test]
fn the_preset_measures_all_that_goals_ask_for() {
    // Catches a goal that a run of hours leaves unmeasured.
    let unmeasured: Vec<_> = checks(&run(10.0)).into_iter().filter(|check| check.measured.is_none()).collect();
    assert_eq!(unmeasured, []);
}

#[test]
fn every_goal_has_checks_and_every_check_a_goal() {
    // Catches a goal that is met because nothing is asked.
    let checks = checks(&[]);
    assert!(GOALS.iter().all(|goal| checks.iter().any(|check| check.goal == *goal)));
    assert!(checks.iter().all(|check| GOALS.contains(&check.goal)));
    assert!(GOALS.iter().all(|goal| verdict(goal, &checks).is_none()));
}

#[test]
fn what_is_fast_enough_is_met_and_what_is_not_is_missed() {
    // Catches bounds upside down. With everything at 10 ns only the scan back, as fast as the one forward, is no matter.
    let (fast, slow) = (checks(&run(10.0)), checks(&run(101.0)));
    assert_eq!(GOALS.map(|goal| verdict(goal, &fast)), [Some(true); 10]);
    // Memory and scaling do not follow from time.
    let kept = GOALS.map(|goal| matches!(goal, "M7" | "M8"));
    assert_eq!(GOALS.map(|goal| verdict(goal, &slow)), kept.map(Some));
}

#[test]
fn margins_are_above_zero_when_better() {
    // Catches a goal missed by a third shown as one that is exceeded by it.
    let check = |bound, measured| {
        let what = String::new();
        Check { goal: "M1", what, bound, unit: Unit::Times, measured: Some(measured) }.margin()
    };
    assert_eq!(check(Bound::AtLeast(2.0), 3.0), Some(50.0));
    assert_eq!(check(Bound::AtLeast(2.0), 1.0), Some(-50.0));
    assert_eq!(check(Bound::AtMost(40.0), 30.0), Some(25.0));
    assert_eq!(check(Bound::AtMost(40.0), 50.0), Some(-25.0));
}

#[test]
fn a_goal_is_met_only_if_all_of_it_is() {
    // Catches a goal met in one of its cells.
    let check = |measured| {
        let (what, bound) = (String::new(), Bound::AtLeast(1.0));
        Check { goal: "M3", what, bound, unit: Unit::Times, measured }
    };
    let (met, missed, unknown) = (check(Some(2.0)), check(Some(0.5)), check(None));
    assert_eq!(verdict("M3", &[met.clone(), met.clone()]), Some(true));
    assert_eq!(verdict("M3", &[met.clone(), missed.clone(), unknown.clone()]), Some(false));
    assert_eq!(verdict("M3", &[met, unknown]), None);
    assert_eq!(verdict("M1", &[missed]), None);
}
