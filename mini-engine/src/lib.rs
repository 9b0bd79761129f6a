//! A small, durable, embedded key-value store: an LSM tree over the `fastskip` memtable.
//!
//! Keys and values are bytes, and keys are sorted bytewise. [`Db`] offers atomic batches, snapshots, iteration in both
//! directions, bulk loads and checkpoints. [`Builder`] and [`Options`] choose among four compaction policies.
//!
//! Use it for sorted data that outgrows memory or must survive crashes, in one process, where a small engine that can be read
//! and checked matters. A synced write survives a power failure, a buffered one a killed process ([`Durability`]), and every
//! byte read from disk is verified.
//!
//! Do not use it if processes must read a database while another writes to it, or if you need transactions that detect
//! conflicts. Several processes may read at once ([`Builder::read_only`]). It is developed and tested on Linux only.
//!
//! Features: `cli` (on by default) builds the program `mini-engine` and adds nothing to the library; `simulation` adds file
//! systems for tests to [`fs`].

// One module of `fs` is allowed it: memory that is a file.
#![deny(unsafe_code)]

mod cache;
mod codec;
mod compaction;
mod db;
pub mod dump;
mod error;
pub mod fs;
mod iter;
mod manifest;
mod memtables;
mod metrics;
mod options;
#[cfg(any(test, feature = "simulation"))]
pub mod random;
#[cfg(test)]
#[path = "../tests/scratch/mod.rs"]
mod scratch;
mod sync;
mod table;
mod types;
mod wal;

pub use db::{Builder, Cursor, Db, Iter, QuarantinedTable, RecoveryReport, Snapshot, TornTail, VerifyReport};
pub use error::{Error, Result};
pub use metrics::{LevelMetrics, Metrics};
pub use options::{Compaction, Compression, MemtableKind, Options, RecoveryMode};
pub use types::{Durability, Lines, MAX_BATCH_LEN, MAX_KEY_LEN, MAX_VALUE_LEN, SeqNo, Slice, WriteBatch};

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
