//! The exploration that runs at each commit, and the proof that it can fail.

use std::sync::{Mutex, PoisonError};

use crate::prelude::*;

/// The default number of crash points. `.ci/run` sets a larger one.
const POINTS: u64 = 2_000;
/// The most runs at each commit for rare situations.
const MOST_RUNS: u64 = 100;
const EFFORT: Effort = Effort { draws: 3, nested_one_in: 80, depth: 2 };

/// The situations of [`Counts`] that must occur at each commit.
const WANTED: &str = "kills, nested, cut flushes, cut compactions, holes, torn blocks, lost entries, torn tails, torn manifests, set aside, \
                      orphans, shortened, recycled, recycled torn, torn fills, below level 0, narrowed, range tombstones, \
                      expired, expiring, expired elsewhere, expired by default, expiring by default, keyspaces, dropped, \
                      created again, cut creations, cut drops, uncut creations, uncut drops, cut batches, outlived, \
                      refused transactions";

/// The seed from `CRASH_SEED`, or a new one; printed.
pub(crate) fn seed() -> u64 {
    proof::environment::seed("CRASH_SEED")
}

#[test]
fn no_crash_at_any_operation_loses_a_promised_write_or_leaves_a_part_of_one() {
    // Catches any step that comes before the durability of an earlier step on which it depends, and any misread tear.
    let (seed, points) = (seed(), number("CRASH_POINTS").unwrap_or(POINTS));
    // Runs the shapes in turn, each at least once, until all required situations have occurred. They include a cut compaction of each policy.
    let lacks = |sum: &Counts| {
        let of_policies = (0..POLICIES.len()).map(|policy| format!("cut compactions {policy}"));
        !WANTED.split(", ").map(str::to_owned).chain(of_policies).all(|name| sum.of(&name) > 0)
    };
    // The number of scripts that were begun, and the counts of those that ended.
    let progress = Mutex::new((0, Counts::default()));
    let next_script = || {
        let (begun, sum) = &mut *progress.lock().unwrap_or_else(PoisonError::into_inner);
        let goes_on = sum.of("points") < points || *begun < SHAPES.len() as u64 || *begun < MOST_RUNS && lacks(sum);
        *begun += u64::from(goes_on);
        goes_on.then_some(*begun - 1)
    };
    let explore_some = || {
        while let Some(script) = next_script() {
            let shape = SHAPES[script as usize % SHAPES.len()];
            let counts = explore(shape, seed.wrapping_add(script), Lie::None, EFFORT);
            let counts = counts.unwrap_or_else(|what| panic!("CRASH_SEED={seed}, script {script}: {what}"));
            progress.lock().unwrap_or_else(PoisonError::into_inner).1.add(&counts);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(explore_some);
        explore_some();
    });
    let (scripts, sum) = progress.into_inner().unwrap_or_else(PoisonError::into_inner);
    println!("{scripts} runs: {sum:?}");
    assert!(!lacks(&sum), "{sum:?}");
    assert_eq!(sum.of("torn kills"), 0, "{sum:?}");
}

/// Runs on a disk that lies, and returns the first failure.
fn verdict(lie: Lie) -> String {
    let runs = SHAPES.iter().cycle().zip(0..24);
    let mut outcomes = runs.map(|(&shape, seed)| explore(shape, seed, lie, EFFORT));
    outcomes.find_map(Result::err).expect("a lie that was not found out")
}

/// Whether a failure reports a loss: a message of the oracle, or a failed open that misses a file. A run that failed before its crash does not count.
fn is_a_loss(verdict: &str) -> bool {
    ["LOST", "PARTIAL", "it does not open any more: corruption"].iter().any(|word| verdict.contains(word))
}

#[test]
fn a_disk_whose_syncs_do_nothing_is_found_out() {
    // Catches an exploration that cannot fail, because its cuts lose no data or only logs, or because its oracle does not check.
    for lie in [Lie::AllFiles, Lie::Directories, Lie::Manifest] {
        let verdict = verdict(lie);
        assert!(is_a_loss(&verdict), "{lie:?}: {verdict}");
    }
}
