//! Flushes the oldest frozen memtable to a table, and waits for flushes.
//!
//! Order (rule 6): the table is synced, then the directory, then the edit; the view is installed; the log is unlinked or recycled. A crash before the
//! edit leaves an orphan table and the log, and replay repeats the flush. A crash after it leaves an obsolete log, which the next open removes. The
//! view is installed before the log is removed, so after a failure only one question matters: whether the edit is durable.
//!
//! The edit's log number is that of the log of the next newer memtable. It stays correct if writes continue: memtables are flushed oldest first, and
//! a rotation only adds newer ones. The edit's sequence number is the last one before the first frame of that log. So replay detects that the
//! beginning of that log is lost: the first sequence number is not the next one.

use crate::compaction::{Inputs, Limits, OutputSpec, Retention, Tombstones, filter_bits_of_flush};
use crate::db::core::{Core, Phase, retire_log};
use crate::db::write::freeze_active;
use crate::error::{Error, Result};
use crate::lock::wait;
use crate::manifest::{RunId, VersionEdit};
use crate::types::MAX_SEQNO;

/// Flushes the oldest frozen memtable, if there is one, unless the engine shuts down meanwhile. Takes time in proportion to the memtable, and
/// O(runs), however many tables there are.
pub(super) fn flush_oldest(core: &Core) -> Result<()> {
    let view = core.view.get();
    let Some((oldest, next_log)) = view.oldest_frozen() else { return Ok(()) };
    let oldest = oldest.clone();
    // A flush is a compaction with one input, so the same entries may be dropped. Tombstones stay, because older tables may hold their keys.
    let (snapshots, instants) = core.snapshots.live(|| core.clock.now());
    let retention = Retention { snapshots: &snapshots, instants: &instants, tombstones: Tombstones::KeepAll };
    let inputs = Inputs::of_memtable(&oldest.memtable, MAX_SEQNO, retention, &view.version.last_key())?;
    let spec = OutputSpec::flush(filter_bits_of_flush(&core.store.options, &view.version, oldest.memtable.entries()));
    // The view must not hold the inputs of compactions that end meanwhile.
    drop(view);
    let Some(written) = core.store.write(inputs, retention, spec, Limits::whole(&core.cancel))? else { return Ok(()) };
    let bytes = written.table_bytes();
    let (log_number, last_seqno) = (Some(next_log), Some(oldest.last_seqno));
    let edit = VersionEdit { log_number, last_seqno, ..written.as_edit(RunId::LEVEL_0) };
    let number = oldest.memtable.log;
    let (log, earlier) = {
        let state = core.lock();
        (state.logs.frozen(number), state.logs.earlier.clone())
    };
    core.install(edit, written.tables, |counters| {
        counters.flushes.add(1);
        counters.flush_bytes.add(bytes);
    })?;
    tracing::debug!(log = number, bytes, "flushed a memtable");
    retire_log(core, number, log.as_deref());
    // Not kept for later logs, since they may have second names.
    earlier.iter().for_each(|&(log, _)| retire_log(core, log, None));
    Ok(())
}

/// Flushes all memtables to tables, and waits until that is done.
///
/// # Errors
/// The same as for [`wait_flushed`]; [`Error::Closed`].
pub(crate) fn flush_all(core: &Core) -> Result<()> {
    let log = freeze_active(core, Core::check_writable)?;
    wait_flushed(core, log)
}

/// Waits until all memtables of logs before `log` are flushed.
///
/// # Errors
/// Errors: that of a flush that failed meanwhile for lack of space, though it will be tried again; `ReadOnly` after any other failure.
pub(crate) fn wait_flushed(core: &Core, log: u64) -> Result<()> {
    let mut state = core.lock();
    let failures = state.flushing.failures;
    loop {
        if core.view.get().frozen.iter().all(|frozen| frozen.memtable.log >= log) {
            return Ok(());
        }
        core.check_usable()?;
        if let Some(error) = state.flushing.error.as_ref().filter(|_| state.flushing.failures != failures) {
            return Err(error.clone());
        }
        if state.phase == Phase::Stopped {
            return Err(Error::Closed);
        }
        state = wait(&core.room, state);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;
    use std::thread;

    use super::*;
    use crate::db::background::log::log_loop;
    use crate::db::recovery::open;
    use crate::db::write::{WriteMode, write};
    use crate::disk::MemFs;
    use crate::epoch::pin;
    use crate::manifest::test_tables::{listed, table_of_keys};
    use crate::options::Options;
    use crate::table::{Table, TableMeta};
    use crate::types::{Durability, WriteBatch};

    #[test]
    fn a_flush_visits_as_few_tables_among_ten_thousand_as_among_ten() {
        // Catches a flush that visits all tables: for the filter bits, the last key, the check of a number, or the runs of the next view.
        let visited = |count: u64| {
            let (core, _) = open(Arc::new(MemFs::default()), Path::new("/db"), Options::default()).unwrap();
            let table = |n: u64| table_of_keys(1_000_000 + n, &format!("{n:05}"), &format!("{n:05}z"));
            let tables: Vec<TableMeta> = (0..count).map(table).collect();
            let opened = tables.iter().map(|meta| Table::new(&core.store.tables, meta.clone())).collect();
            let added = tables.into_iter().map(|meta| (RunId { level: 1, run: 1 }, meta)).collect();
            core.install(VersionEdit { added, ..VersionEdit::default() }, opened, |_| {}).unwrap();
            let mut batch = WriteBatch::new();
            batch.insert("key", "value").unwrap();
            batch.remove_range("a"..).unwrap();
            let flush = || {
                write(&core, &batch, Durability::Buffered, WriteMode::Wait).unwrap();
                freeze_active(&core, Core::check_writable).unwrap();
                listed(|| flush_oldest(&core).unwrap())
            };
            thread::scope(|scope| {
                // A rotation waits for the log that this thread creates.
                scope.spawn(|| log_loop(&core));
                let visited = [flush(), flush()];
                core.enter_phase(Phase::Stopped);
                assert_eq!(core.view.get().version.runs(0).len(), 2);
                visited
            })
        };
        let [few, many] = [10, 10_000].map(visited);
        assert_eq!(few, many);
        assert!(few[1] <= 16, "{few:?}");
    }

    #[test]
    fn a_stopped_reader_keeps_its_view_and_delays_no_flush() {
        // Catches a memtable that is freed under a point read, a flush that waits for the reader, and a view that nobody frees afterwards.
        let _turn = crate::lock::lock(&crate::epoch::STOPPED_READERS);
        let (core, _) = open(Arc::new(MemFs::default()), Path::new("/db"), Options::default()).unwrap();
        let mut batch = WriteBatch::new();
        batch.insert("key", "value").unwrap();
        write(&core, &batch, Durability::Buffered, WriteMode::Wait).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| log_loop(&core));
            let pin = pin();
            let view = core.view.load(&pin);
            let freed = Arc::downgrade(&view.to_arc());
            freeze_active(&core, Core::check_writable).unwrap();
            flush_oldest(&core).unwrap();
            assert_eq!((core.view.get().version.runs(0).len(), core.view.retired()), (1, 2));
            assert_eq!((core.remove_obsolete(), view.active.entries()), (2, 1));
            drop(pin);
            // Threads of other tests may be pinned for a moment.
            let is_free = || {
                thread::yield_now();
                core.remove_obsolete() == 0
            };
            assert!((0..1_000_000).any(|_| is_free()) && freed.upgrade().is_none());
            core.enter_phase(Phase::Stopped);
        });
    }
}
