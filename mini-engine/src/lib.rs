//! A small, durable, embedded key-value store: an LSM tree over the `fastskip` memtable.
//!
//! Keys and values are bytes, and keys are sorted bytewise. [`Db`] offers atomic batches, snapshots, iteration in both directions, ingestion of
//! sorted data and checkpoints. [`Builder`] and [`Options`] select one of several compaction policies. Each [`Keyspace`] is a separate set of keys; a
//! [`Db`] derefs to its default keyspace, so that `db.insert(..)` is [`Keyspace::insert`].
//!
//! ```
//! # fn main() -> mini_engine::Result<()> {
//! # let directory = tempfile::tempdir().unwrap();
//! # let path = directory.path().join("notes.db");
//! let db = mini_engine::Db::open(path)?;
//! db.insert("milk", "2 litres")?;
//! db.insert("bread", "1 loaf")?;
//! assert_eq!(db.get("milk")?.as_deref(), Some(&b"2 litres"[..]));
//! for record in db.range("a".."c") {
//!     let (key, value) = record?;
//!     println!("{}: {}", key.escape_ascii(), value.escape_ascii());
//! }
//! db.remove("milk")?;
//! db.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Use it for sorted data that outgrows memory or must survive crashes, in one process, if it matters that the engine is small and can be read and
//! checked. One process writes; others may read beside it ([`Builder::reader`]). It is developed and tested on Linux only.
//!
//! # What it guarantees
//!
//! | | |
//! |---|---|
//! | a buffered write ([`Durability::Buffered`], the default) | survives a killed process once it has returned, and a power failure once a later sync has returned |
//! | a synced write ([`Durability::Synced`]) | survives a power failure once it has returned, together with all writes before it |
//! | a [`WriteBatch`] | exists as a whole or not at all, after any crash and for any reader |
//! | order | readers see writes in one order, and recovery restores a prefix of it: no write exists without all earlier ones |
//! | a read | sees every write that returned before it began |
//! | a [`Snapshot`], an [`Iter`], a [`Cursor`] | sees the database at one moment, whatever is written or expires afterwards |
//! | an entry that expires ([`Keyspace::insert_with_expiry`]) | is absent from every read that begins at its expiry or later, and does not return |
//! | [`Keyspace::compare_and_swap`], [`Keyspace::pop_first`] | no other write happens between their read and their write |
//! | a [`Transaction`] | takes effect at one moment, as if it had read and written everything then, or not at all: it is strictly serializable |
//! | damage on disk | is an error that names file and offset; never a wrong value, and never an older one in its place. Damage at the end of a log, after the last sync that the log records, cannot be distinguished from an incomplete write: then the log ends there, and [`Db::recovery`] reports this |
//! | a failure to write or sync | makes the database read-only until it is opened again; acknowledged writes are kept |
//! | a full disk | makes writes that add data fail as long as it is full, and loses nothing. Removals are accepted, and free space |
//!
//! Transactions are optimistic: they hold no lock, and a commit fails if others changed what was read. [`Db::transact`] then repeats it. Where
//! threads often meet, as in a queue, [`Db::transact_exclusive`] runs one at a time instead.
//!
//! # Coming from another store
//!
//! The book's page "Moving" lists more calls, RocksDB's options, and ways to migrate data.
//!
//! | here | sled | fjall | redb | RocksDB |
//! |---|---|---|---|---|
//! | [`Db::open`] | `open` | `Database::builder` | `Database::create` | `DB::Open` |
//! | [`Keyspace::insert`] | `insert` | `insert` | `Table::insert` | `Put` |
//! | [`Keyspace::get`], [`Keyspace::get_many`], [`Keyspace::get_many_up_to`] | `get` | `get` | `Table::get` | `Get`, `MultiGet` |
//! | [`Keyspace::remove`] | `remove` | `remove` | `Table::remove` | `Delete` |
//! | [`Keyspace::remove_range`], [`Keyspace::remove_prefix`] | | | `retain_in` | `DeleteRange` |
//! | [`Keyspace::range`], [`Keyspace::prefix`] | `range`, `scan_prefix` | `range`, `prefix` | `Table::range` | `NewIterator`, `Seek` |
//! | [`Keyspace::cursor`] | | | | `Iterator` |
//! | [`Keyspace::insert_with_expiry`], [`Keyspace::set_expiry`] | | | | `DBWithTTL`, for all keys alike |
//! | [`Keyspace::first`], [`Keyspace::pop_first`] | `first`, `pop_min` | `first_key_value` | `first`, `pop_first` | `SeekToFirst` |
//! | [`Db::write`] of a [`WriteBatch`] | `apply_batch` | `batch`, `commit` | a write transaction | `Write` |
//! | [`Keyspace::compare_and_swap`] | `compare_and_swap` | a transaction | a write transaction | a transaction |
//! | [`Db::transaction`], [`Db::transact`] | `transaction` | `write_tx` of an optimistic database | a write transaction | `OptimisticTransactionDB` |
//! | [`Db::transact_exclusive`] | | `write_tx` of a single-writer database | a write transaction | `TransactionDB` |
//! | [`Transaction::savepoint`] | | | `ephemeral_savepoint` | `SetSavePoint` |
//! | [`Keyspace::snapshot`] | | `snapshot` | `begin_read` | `GetSnapshot` |
//! | [`Db::persist`] | `flush` | `persist` | `commit` | `SyncWAL` |
//! | [`Db::flush`] | | `rotate_memtable_and_wait` | | `Flush` |
//! | [`Keyspace::ingest`] | | `start_ingestion` | | `IngestExternalFile` |
//! | [`Db::checkpoint`] | | | | `Checkpoint` |
//! | [`Db::keyspace`] | `open_tree` | `keyspace` | `open_table` | column families |
//! | `Keyspace::typed` (feature `typed`) | | | `TableDefinition` | |
//!
//! The crate's folder `examples` has programs of less than 80 lines: `notes`, `secondary_index`, `bulk_load`, `crash_recovery`, `backup`,
//! `time_series` and `async_service`.
//!
//! The program `mini-engine` and the server for Redis clients are separate crates, `mini-engine-cli` and `mini-engine-server`.

// Only one module of `fs` may use unsafe code, for memory-mapped files.
#![deny(unsafe_code)]

// `proof` simulates disks with the interface `fs` of this library as compiled without tests. In unit tests that is a different interface, so these
// sources are compiled once more.
#[cfg(test)]
extern crate self as mini_engine;

mod cache;
mod codec;
mod columns;
mod compaction;
mod db;
#[cfg(test)]
#[path = "../../proof/src/disk/mod.rs"]
pub mod disk;
mod epoch;
mod error;
pub mod fs;
mod iter;
mod lock;
mod manifest;
mod memtables;
mod metrics;
mod options;
mod sync;
mod table;
#[cfg(feature = "typed")]
mod typed;
mod types;
mod wal;

pub use db::dump;
pub use db::{
    AsideFile, KeyspaceSize, LeftOut, LostKeys, LostWrites, Salvage, SalvageReport, SalvagedEntries,
    incomplete_directory,
};
pub use db::{
    Builder, Cursor, Db, Iter, Keyspace, KeyspaceBatch, QuarantinedTable, RecoveryReport, Snapshot, TornTail,
    VerifyReport,
};
pub use db::{KeyspaceTransaction, Savepoint, Transaction, TransactionIter};
pub use error::{Error, Result};
pub use manifest::{MAX_KEYSPACE_NAME_LEN, REPAIRED};
pub use metrics::{LevelMetrics, Metrics};
pub use options::{
    Compaction, Compression, KeyspaceOptions, MemtableKind, Options, RecoveryMode, TableReads, TimeSource,
};
pub use types::{
    CompareAndSwapError, Durability, KeyBounds, MAX_BATCH_LEN, MAX_BATCH_RANGES, MAX_KEY_LEN, MAX_VALUE_LEN, SeqNo,
    Slice, WriteBatch,
};

#[cfg(feature = "typed")]
pub use typed::{DecodeKey, EncodeKey, LeadingFields, Typed, TypedRead, TypedWrite};

/// The README's examples, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;

/// The examples of a page of the book, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/application-tour.md")]
struct ApplicationTour;

/// The examples of a page of the book, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/moving.md")]
struct Moving;

/// The examples of a page of the book, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../../docs/src/queues.md")]
struct Queues;

/// The examples of the package's own README, run as tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct PackageReadme;
