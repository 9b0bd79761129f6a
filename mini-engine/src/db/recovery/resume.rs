//! Opens a database that was closed without errors: what its manifest and logs hold is durable ([`CloseNote`]), so nothing is written anew, and the
//! steps 3 to 6 of `open.rs` are left out.
//!
//! The logs stay as they are, and their writes go to the active memtable. New writes go to a new log; until the memtable is flushed, the manifest's log
//! number is that of the oldest log, as it is while memtables wait for their flush. The manifest stays until the first edit, which begins a new one. If
//! anything does not fit, `None` leads to the usual steps, which find out why.

use std::sync::Arc;

use super::replay::check_batch;
use super::report::RecoveryReport;
use crate::compaction::TableStore;
use crate::db::core::{Opened, ScanCount, View, open_runs};
use crate::error::Result;
use crate::manifest::{CloseNote, Loaded, Manifest};
use crate::memtables::LoggedMemtable;
use crate::options::Compaction;
use crate::table::Table;
use crate::types::{BatchOp, BatchOps, MAX_SEQNO, SeqNo};
use crate::wal::{self, Tail};

/// The active memtable, and the number and length of the logs whose writes it has.
pub(super) type Logged = (LoggedMemtable, Vec<(u64, u64)>);

/// Reads `logs`, which continue manifest `loaded`, if `note` describes both.
pub(super) fn read(
    store: &TableStore,
    note: &CloseNote,
    loaded: &Loaded,
    logs: &[u64],
    report: &mut RecoveryReport,
) -> Result<Option<Logged>> {
    let (fs, dir, state) = (&*store.fs, &store.dir, &loaded.state);
    // Another policy, and the instant of a clock that runs, are recorded in a new manifest.
    let is_recorded = state.policy == store.options.compaction.map(Compaction::id) && state.clock == 0;
    if !is_recorded || !note.covers(fs, dir, loaded.number, logs) {
        return Ok(None);
    }
    let number = store.numbers.allocate()?;
    let active = LoggedMemtable::new(store.options.memtable_kind, number, store.options.memtable_bytes)?;
    let (mut last_seqno, mut batches, mut replayed, mut ends) = (state.last_seqno, 0, 0, Vec::new());
    for &log in logs {
        let (path, before, mut fits) = (dir.join(wal::file_name(log)), last_seqno, true);
        let tail = wal::replay(fs, &path, log, |frame| {
            fits = fits && frame.first_seqno == last_seqno + 1 && check_batch(&path, &frame).is_ok();
            let batch: Vec<BatchOp<'_>> = BatchOps::new(frame.payload).flatten().collect();
            fits = fits && active.add(&batch, frame.first_seqno).is_ok();
            last_seqno += u64::from(frame.count);
            batches += 1;
            Ok(())
        });
        let len = fs.open(&path).and_then(|file| file.len());
        match (tail, len) {
            (Ok(Tail::Clean { end }), Ok(len)) if fits && end == len => ends.push((log, end)),
            _ => return Ok(None),
        }
        replayed += usize::from(last_seqno > before);
    }
    if active.has_expiring() {
        return Ok(None);
    }
    (report.last_seqno, report.batches_replayed, report.logs_replayed) = (last_seqno, batches, replayed);
    report.operations_replayed = last_seqno - state.last_seqno;
    Ok(Some((active, ends)))
}

/// The database of manifest `loaded` and of the logs up to `last_seqno`. The new log is the only change, and comes last.
pub(super) fn begin(
    store: TableStore,
    loaded: &Loaded,
    tables: &[Arc<Table>],
    (active, earlier_logs): Logged,
    last_seqno: SeqNo,
) -> Result<Opened> {
    let (state, version) = (&loaded.state, loaded.state.version.clone());
    let manifest = Manifest::resume(store.fs.clone(), &store.dir, store.numbers.clone(), loaded)?;
    let log = wal::Writer::create(&*store.fs, &store.dir, active.log, store.counters.clone())?;
    let view = View {
        active,
        before_active: state.last_seqno,
        upto: MAX_SEQNO,
        log: log.segment().clone(),
        frozen: Vec::new(),
        runs: open_runs(&version, tables.iter()),
        scans: Arc::new(ScanCount::new(&version)),
        stats: state.stats,
        version,
    };
    Ok(Opened { earlier_logs, ..Opened::new(store, view, log, last_seqno, manifest) })
}
