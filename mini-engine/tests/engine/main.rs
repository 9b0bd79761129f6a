//! Tests of the library through its public interface: the rules of durability, a model, merges, threads, faults, bad input.

mod checkpoint;
mod compaction;
mod concurrency;
mod damage;
mod directory;
mod durability;
mod faults;
mod group;
mod hook;
mod ingest;
mod lifecycle;
mod limits;
mod model;
mod options;
mod quarantine;
mod reads;
mod recovery;
mod recycle;
mod space;
mod vector;
