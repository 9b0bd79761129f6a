//! Nodes, network and disks in one thread from one seed.

mod cluster;
mod faults;
mod history;
mod network;
mod runtime;
mod storage;
mod watch;

use crate::faults::run;
use crate::storage::Plant;

#[test]
fn first() {
    let begun = std::time::Instant::now();
    let seed = proof::environment::number("SIMULATION_SEED").unwrap_or(1);
    let steps = proof::environment::number("SIMULATION_STEPS").unwrap_or(20000);
    let n = proof::environment::number("N").unwrap_or(3);
    let plant = [None, Some(Plant::EarlyAck), Some(Plant::LostVote), Some(Plant::LyingDisk), Some(Plant::PutBack), Some(Plant::PutBackUnchecked)];
    let plant = plant[proof::environment::number("PLANT").unwrap_or(0) as usize];
    for seed in seed..seed+n {
        let outcome = run(seed, steps, plant);
        let again = run(seed, steps, plant);
        println!("{seed} {:?} {:?} {} {:x} {:x} {:?}", begun.elapsed(), outcome.time, outcome.steps, outcome.trace, again.trace, outcome.counts);
        if let Some(failure) = outcome.failure {
            println!("{}", &failure[..failure.len().min(600)]);
        }
    }
}
