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
mod nodes;
mod placement;
mod refused;
mod rounds;
mod week;
