//! A thin, durable LSM key-value engine over the `fastskip` memtable.

#![forbid(unsafe_code)]

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
