//! Opens a database that is only to be read: makes a view on what is there, and nothing on disk.
//!
//! Manifest and tables are read as by any open, and the logs are replayed by the same rules. What they hold stays in frozen
//! memtables, which no worker flushes, since there is none. A torn tail, orphans and suspects stay where they are, for an open
//! that may write. The log and the manifest of the core refuse every write, and so does the core before them
//! ([`Core::refuse_writes`](crate::db::core::Core::refuse_writes)).
//!
//! The shared lock keeps writers out, so nothing that was read can change meanwhile. A directory without the lock file is a copy of
//! another one, or on a read-only mount; there is no lock then, and who writes to it meanwhile makes reads fail.

use std::sync::Arc;

use super::replay::Replayed;
use crate::compaction::TableStore;
use crate::db::core::{DirectoryLock, OPENED_READ_ONLY, Opened, View, open_runs};
use crate::error::Result;
use crate::manifest::{Manifest, ManifestState};
use crate::memtables::LoggedMemtable;
use crate::table::Table;
use crate::wal;

/// The view of `state`, which manifest `current` says, and of what was replayed.
pub(super) fn begin(
    store: TableStore,
    state: ManifestState,
    current: u64,
    tables: &[Arc<Table>],
    replayed: Replayed,
    lock: DirectoryLock,
) -> Result<Opened> {
    let log_number = store.numbers.allocate()?;
    let log = wal::Writer::refusing(&store.dir, log_number, OPENED_READ_ONLY, store.counters.clone());
    // For the form's sake: it takes no memory before its first use.
    let active = LoggedMemtable::new(store.options.memtable_kind, log_number, store.options.memtable_bytes)?;
    let view = View {
        active,
        log: log.segment().clone(),
        frozen: replayed.memtables.into_iter().rev().collect(),
        runs: open_runs(&state.version, tables.iter()),
        stats: state.stats,
        version: Arc::clone(&state.version),
    };
    let manifest = Manifest::read_only(store.fs.clone(), &store.dir, store.numbers.clone(), current, state)?;
    Ok(Opened { store, view, log, last_seqno: replayed.last_seqno, manifest, lock })
}
