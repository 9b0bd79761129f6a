//! Tests of the library through its public interface: the rules of durability, a model, compactions, threads, faults, bad input. Also tests of the
//! formats: an independent reader, and a database of each version.

mod api;
mod compaction;
mod damage;
mod fixtures;
mod formats;
mod recovery;
mod support;
mod transaction;
mod write;
