//! Nodes, network and disks in one thread from one seed.

mod cluster;
mod faults;
mod history;
mod network;
mod runtime;
mod storage;

use crate::faults::run;

#[test]
fn first() {
    let begun = std::time::Instant::now();
    let outcome = run(1, 20000, None);
    println!("{:?} {:?} {} {} {:?}", begun.elapsed(), outcome.time, outcome.steps, outcome.trace, outcome.counts);
    assert_eq!(outcome.failure, None);
}
