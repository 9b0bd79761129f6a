//! Clusters of real processes on loopback: the steps of a new user, and checks that no data is lost when nodes are killed, paused, cut off from
//! each other or given a slow disk.
//!
//! Nodes talk to each other through proxies (`links.rs`), where a test can cut them off. No test measures time. A test waits for a reply or a
//! condition, and fails after `PATIENCE`.

mod client;
mod clocks;
mod databases;
mod faults;
mod full_disk;
mod history;
mod links;
mod load;
mod majority;
mod nodes;
mod path;
mod placement;
mod recovery;
mod refused;
mod rounds;
mod week;

use std::thread;
use std::time::{Duration, Instant};

use crate::support::PATIENCE;

/// Waits until a condition is true.
#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never became so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}
