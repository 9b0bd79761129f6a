//! Tests from outside: one program, so that it is linked once.

mod batches;
mod cheap;
mod concurrent;
mod debug;
mod freezing;
mod layers;
mod limits;
mod list_model;
mod long_walks;
mod memtable_model;
mod patterns;
mod published_defects;
mod room;
mod scrambled;
mod shards;
