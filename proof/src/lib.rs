//! The tools that the tests, fuzz targets and benchmarks of all crates share. This crate is never published.
//!
//! * [`disk`]: a file system in memory that simulates power cuts, and one that lets chosen operations fail;
//! * [`damage`]: damage to the files of a database on such a disk;
//! * [`Clock`]: a clock of a database that a test sets;
//! * [`model`]: compares a database with ordinary maps, for the model test and the fuzz target `engine_ops`;
//! * [`Random`]: draws that a seed determines;
//! * [`entries`] and [`pairs`]: contents of databases as ordinary maps; [`key`], [`scattered_key`], [`noise`]: keys and values;
//! * [`TempDir`] and [`free_address`]: a directory and an address for a test;
//! * [`wait_while`]: a wait for other threads that fails instead of hanging;
//! * [`environment`]: the variables that repeat a run, or make it longer.

// The sources of `disk` are also compiled into the engine's own unit tests, and name this crate there.
extern crate self as proof;

mod clock;
mod contents;
pub mod damage;
pub mod disk;
pub mod environment;
pub mod model;
mod random;
mod temporary;
mod wait;

pub use clock::{Clock, second};
pub use contents::{Map, POLICIES, entries, key, noise, pairs, scattered_key};
pub use random::{Random, hash};
pub use temporary::{TempDir, free_address};
pub use wait::{PATIENCE, wait_while};
