//! Tests of the library through its public interface: the rules of durability, a model, merges, threads, faults, bad input;
//! and of the formats: an independent reader, and databases of every released one.

mod aside;
mod backpressure;
mod bounds;
mod checkpoint;
mod compaction;
mod concurrency;
mod conditional;
mod damage;
mod directory;
mod disks;
mod durability;
mod faults;
mod fixtures;
mod formats;
mod group;
mod held_up;
mod hook;
mod ingest;
mod lifecycle;
mod limits;
mod model;
mod options;
mod pieces;
mod pins;
mod pipeline;
mod quarantine;
mod read_only;
mod reads;
mod recovery;
mod recycle;
mod salvage;
#[path = "../scratch/mod.rs"]
mod scratch;
mod space;
mod transient;
mod vector;
