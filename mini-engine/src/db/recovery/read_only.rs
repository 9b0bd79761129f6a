//! Opens a database read-only: makes a view of the existing files, and writes nothing to disk.
//!
//! Manifest and tables are read as by any open, and the logs are replayed by the same rules. The replayed writes stay in frozen memtables, and
//! there is no worker to flush them. A torn tail, orphans and suspects stay where they are, for an open that may write. The log and the manifest of
//! the core refuse every write, and so does the core before them
//! ([`Core::refuse_writes`](crate::db::core::Core::refuse_writes)).
//!
//! The shared lock keeps writers out, so no file can change meanwhile. A directory without the lock file is a copy of another one, or on a
//! read-only mount. Then there is no lock, and a program that writes there meanwhile makes reads fail.

use std::sync::Arc;

use super::replay::Replayed;
use crate::compaction::TableStore;
use crate::db::core::{OPENED_READ_ONLY, Opened, ScanCount, View, open_runs};
use crate::error::Result;
use crate::manifest::{Manifest, ManifestState};
use crate::memtables::LoggedMemtable;
use crate::table::Table;
use crate::wal;

/// The view of `state`, which the manifest `current` describes, and of the replayed writes.
pub(super) fn begin(
    store: TableStore,
    state: ManifestState,
    current: u64,
    tables: &[Arc<Table>],
    replayed: Replayed,
) -> Result<Opened> {
    let log_number = store.numbers.allocate()?;
    let log = wal::Writer::refusing(&store.dir, log_number, OPENED_READ_ONLY, store.counters.clone());
    // A view needs one; it takes no memory before its first use.
    let active = LoggedMemtable::new(store.options.memtable_kind, log_number, store.options.memtable_bytes)?;
    let view = View {
        active,
        before_active: replayed.last_seqno,
        log: log.segment().clone(),
        frozen: replayed.memtables.into_iter().rev().collect(),
        runs: open_runs(&state.version, tables.iter()),
        scans: Arc::new(ScanCount::new(&state.version)),
        stats: state.stats,
        version: Arc::clone(&state.version),
    };
    let manifest = Manifest::read_only(store.fs.clone(), &store.dir, store.numbers.clone(), current, state)?;
    Ok(Opened { store, view, log, last_seqno: replayed.last_seqno, manifest, reserve: (0, 0) })
}
