//! Storage for [openraft] in [`mini_engine`] databases: [`LogStore`], [`StateMachine`], and snapshots that are hard links.
//!
//! An application implements [`Apply`], which turns an entry of the log into writes, and gives both stores to [`openraft::Raft::new`]. The package's
//! example `three_nodes` is a whole cluster in 170 lines.
//!
//! ```
//! use std::io::Result;
//!
//! use mini_engine::{Db, WriteBatch};
//! use openraft::EntryPayload;
//! use openraft::type_config::alias::EntryOf;
//! use openraft_mini_engine::{Apply, Logs, StateMachine};
//!
//! openraft::declare_raft_types!(TypeConfig: D = String, R = (), AsyncRuntime = openraft_rt_tokio::TokioRuntime);
//!
//! /// Stores each word that is proposed.
//! struct Words;
//!
//! impl Apply<TypeConfig> for Words {
//!     fn apply(&mut self, entry: EntryOf<TypeConfig>, _db: &Db, batch: &mut WriteBatch) -> Result<()> {
//!         if let EntryPayload::Normal(word) = entry.payload {
//!             batch.insert(word, "")?;
//!         }
//!         Ok(())
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! # let dir = tempfile::tempdir()?;
//! # let dir = dir.path();
//! let log_store = Logs::open(dir.join("log"))?.group::<TypeConfig>(0)?;
//! let state_machine = StateMachine::<TypeConfig, _>::open(dir.join("state"), Words)?;
//! // The handle for reads of the application, and for received snapshots.
//! let state = state_machine.state();
//! assert!(!state.db().contains_key("hello")?);
//! # Ok(())
//! # }
//! ```
//!
//! # Guarantees
//!
//! | | |
//! |---|---|
//! | a vote | is durable when `save_vote` returns |
//! | an appended entry | can be read when `append` returns, and is durable when its callback is called. All waiting appends and votes share one sync |
//! | the log | has no hole, after any crash. A truncation or a purge takes effect as a whole or not at all |
//! | a purged log | costs as much as a new one: disk space, an open, a read |
//! | an applied entry | is in the database once, with its log id and membership, or not at all. It survives a killed process; a power cut may lose the last ones, which openraft then applies again, from the log |
//! | a snapshot | is a [checkpoint](mini_engine::Db::checkpoint), made without copying data, sent in checksummed parts, checked as a whole, and installed by one rename. A crash at any step leaves the old state or the new one |
//! | memory | does not depend on the size of the log, the state or a snapshot |
//! | damage on disk, a full disk, a failed sync | is an error, and ends the node; acknowledged data is kept |
//! | a call that contradicts what is committed, applied or voted for | is an error, and ends the node: see [`LogReader::check`] |
//!
//! # Why two databases
//!
//! A snapshot is a copy of the state machine's database. Its receiver must keep its own vote and log, so these cannot be in the same database. The
//! log needs syncs, and the state machine does not: openraft applies lost entries again. In one database each sync would also write applied
//! entries.
//!
//! # Why the log is a database
//!
//! The alternative would be separate files: one for each part of the log, unlinked when the part is purged. These files would need everything that
//! the engine's own log has: a format with checksums, recovery that distinguishes a torn end from damage, preallocated space, the handling of a full
//! disk and of a failed sync, and an index. An LSM tree costs no more, because the engine's log is just such a file. An entry is written to it once.
//! It reaches a table only if it lives longer than a memtable; purged entries are removed together, before they are flushed or by dropping whole
//! tables (see `log/logs.rs`). A test counts that.
//!
//! # Versions
//!
//! The version of openraft is pinned exactly, to a release before 0.10.0. Values on disk are [postcard](https://postcard.jamesmunns.com) encodings of
//! its types. A test compares the stored bytes with those of earlier versions.
#![forbid(unsafe_code)]

mod codec;
mod contradiction;
mod log;
mod open;
mod state;
mod worker;
mod write;

pub use self::log::{LogReader, LogStore, Logs};
pub use self::state::{
    Apply, Checkpoint, Chunk, Chunks, RESERVED, Receiver, SnapshotBuilder, State, StateMachine, StoredState,
};
pub use self::worker::without_threads;
