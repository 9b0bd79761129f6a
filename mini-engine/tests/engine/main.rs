//! Tests of the library through its public interface: the rules of durability, a model, merges, threads, faults, bad input;
//! and of the formats: an independent reader, and a database of each version.

mod api;
mod aside;
mod compaction;
mod damage;
mod fixtures;
mod formats;
mod recovery;
#[path = "../scratch/mod.rs"]
mod scratch;
mod support;
mod write;

// As tests of formats and of what was set aside know them.
use support::{disks, hook};
