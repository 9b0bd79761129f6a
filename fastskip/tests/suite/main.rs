//! Tests of the public API. One test program, so that it is linked once.

mod batches;
mod budget;
mod cheap;
mod concurrent;
mod debug;
mod duplicates;
mod freezing;
mod full;
mod layers;
mod limits;
mod long_walks;
mod maps;
#[path = "../models/mod.rs"]
mod models;
mod owned;
mod patterns;
mod published_defects;
mod room;
mod scrambled;
mod shards;
