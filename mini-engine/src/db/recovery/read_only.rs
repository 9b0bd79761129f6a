//! Opens a database read-only: makes a view of the existing files, and writes nothing to disk.
//!
//! Manifest and tables are read as by any open, and the logs are replayed by the same rules. The replayed writes stay in frozen memtables, and there
//! is no worker to flush them. A torn tail, orphans and suspects stay in place for an open that may write. The log and the manifest of the core
//! reject every write, and so does the core itself ([`Core::refuse_writes`](crate::db::core::Core::refuse_writes)).
//!
//! The shared lock keeps writers out, so no file can change meanwhile. A directory without the lock file is a copy of a database, or on a read-only
//! mount. Then there is no lock, and if a program writes there meanwhile, reads may fail.

use std::sync::Arc;

use super::replay::Replayed;
use crate::compaction::TableStore;
use crate::db::core::{OPENED_READ_ONLY, Opened, ScanCount, View, open_runs};
use crate::error::Result;
use crate::manifest::{Manifest, ManifestState};
use crate::memtables::LoggedMemtable;
use crate::table::Table;
use crate::types::MAX_SEQNO;
use crate::wal;

/// The view of the replayed writes and of `state`, which was read from manifest `current`.
pub(super) fn begin(
    store: TableStore,
    state: ManifestState,
    current: u64,
    tables: &[Arc<Table>],
    replayed: Replayed,
) -> Result<Opened> {
    let log_number = store.numbers.allocate()?;
    let log = wal::Writer::refusing(&store.dir, log_number, OPENED_READ_ONLY, store.counters.clone());
    // A view needs an active memtable; it takes no memory before its first use.
    let active = LoggedMemtable::new(store.options.memtable_kind, log_number, store.options.memtable_bytes)?;
    let view = View {
        active,
        before_active: replayed.last_seqno,
        upto: MAX_SEQNO,
        log: log.segment().clone(),
        frozen: replayed.memtables.into_iter().rev().collect(),
        runs: open_runs(&state.version, tables.iter()),
        scans: Arc::new(ScanCount::new(&state.version)),
        stats: state.stats,
        version: Arc::clone(&state.version),
    };
    let manifest = Manifest::read_only(store.fs.clone(), &store.dir, store.numbers.clone(), current, state)?;
    Ok(Opened::new(store, view, log, replayed.last_seqno, manifest))
}
