//! Real openraft over the real storage of this crate: five nodes, their network and their disks in one thread, from one seed.
//!
//! `SIMULATION_SEED=n` repeats a run, `SIMULATION_STEPS=n` simulates more messages, operations of clients and faults.

mod cluster;
mod faults;
mod history;
mod network;
mod runtime;
mod storage;

use std::collections::BTreeSet;
use std::hash::Hasher;

use crate::faults::run;
use crate::storage::Plant;

/// The steps of a run: a failure is then found again in seconds.
const STEPS: u64 = 20_000;

#[test]
fn no_acknowledged_write_is_lost_and_the_registers_are_linearizable() {
    // Catches what kills, power cuts, pauses, cut links, late, lost and repeated messages, snapshots and changes of members do to promises.
    let number = |name, default| proof::environment::number(name).unwrap_or(default);
    let (first, steps) = (number("SIMULATION_SEED", 1), number("SIMULATION_STEPS", 4 * STEPS));
    let mut seen = BTreeSet::new();
    for seed in (0..steps.div_ceil(STEPS)).map(|run| first.wrapping_add(run)) {
        let history = run(seed, STEPS, None);
        println!("SIMULATION_SEED={seed}: {} steps in {:?}: {:?}", history.steps, history.time, history.counts);
        if let Some(failure) = history.failure {
            panic!("SIMULATION_SEED={seed} SIMULATION_STEPS=1: {failure}");
        }
        seen.extend(history.counts.into_keys());
    }
    // One run of a hundred has no snapshot.
    let kinds = ["kill", "power cut", "pause", "cut", "members", "snapshot", "lost", "read", "write"];
    let missing: Vec<&str> = kinds.into_iter().filter(|kind| !seen.contains(kind)).collect();
    assert!(missing.is_empty() || steps < 4 * STEPS, "from SIMULATION_SEED={first} on: no {missing:?}");
}

#[test]
fn a_seed_repeats_its_run() {
    // Catches a clock, a thread or a random number of the machine that decides something.
    let [first, second, other] = [1, 1, 2].map(|seed| run(seed, STEPS / 2, None).trace.finish());
    assert_eq!(first, second);
    assert_ne!(first, other);
}

#[test]
fn planted_faults_are_found() {
    // Catches a simulation that finds nothing. A change of the code may move a fault to another seed.
    for (plant, first, rule) in [
        (Plant::EarlyAck, 7, "applied"),
        (Plant::LostVote, 5, "has granted"),
        (Plant::LyingDisk, 14, "applied"),
        (Plant::PutBack, 22, "which this node has committed"),
        (Plant::PutBackUnchecked, 1, "applied"),
    ] {
        let failures =
            (first..first + 40).map(|seed| (seed, run(seed, STEPS, Some(plant)).failure.unwrap_or_default()));
        let found = failures.into_iter().find(|(_, failure)| failure.lines().next().unwrap_or_default().contains(rule));
        let (seed, failure) = found.unwrap_or_else(|| panic!("{plant:?} is not found"));
        println!("{plant:?} is found with seed {seed}: {}", failure.lines().next().unwrap_or_default());
    }
}
