//! Bulk loads of sorted entries, directly into tables.
//!
//! An ingest writes neither log nor memtable, so each entry is written once. Order:
//! 1. writers are paused, and the memtables are flushed. So the ingested entries are newer than all others, their sequence numbers are known before
//!    their tables are written, and replay finds the numbers without a gap (rule 11): the active log has no frame yet, and its first one will follow
//!    the last number of the ingest, which the edit records.
//! 2. the entries are written to tables, synced and named; the tables go to the lowest place where nothing overlaps them (`compaction/ingest.rs`).
//! 3. the edit is synced and installed (rule 6), and the last number is published in the same step: all entries become visible at once. Writers
//!    continue.
//!
//! After a crash before the edit is durable only orphans remain; after a later crash all entries are present.

use std::sync::MutexGuard;

use crate::compaction::{self, KeyRange, OutputSpec, Written};
use crate::db::background::{fail_if_unsafe, flush_all};
use crate::db::core::{Core, State, fail_on_unwind};
use crate::db::write::{check_space, wait_for_reserve};
use crate::error::Result;
use crate::lock::wait;
use crate::manifest::{RunId, VersionEdit};
use crate::types::{KeyspaceRef, Kind, SeqNo, Slice, check_key, check_seqno};

/// Loads `entries` into `keyspace`. Returns the sequence number at which all of these entries are visible.
pub(crate) fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    core: &Core,
    keyspace: &KeyspaceRef,
    entries: impl IntoIterator<Item = Result<(K, V)>>,
) -> Result<SeqNo> {
    keyspace.check()?;
    let _pause = loop {
        // Before writers are paused: writes of tombstones can free the space that this waits for.
        drop(wait_for_reserve(core, core.lock(), 0)?);
        let pause = WriterPause::begin(core)?;
        if core.is_covered(&core.lock(), 0) {
            break pause;
        }
    };
    flush_all(core)?;
    let last_seqno = core.lock().last_seqno;
    // The filters suit the lowest level, where most ingested tables go. The number of entries is unknown, so the filters get the mean bits per key.
    let options = &core.store.options;
    let filter_bits = f64::from(options.filter_bits_per_key);
    let spec = OutputSpec { level: compaction::BOTTOM, table_bytes: options.table_file_bytes, filter_bits };
    let entries = entries.into_iter().map(|entry| {
        let (key, value) = entry?;
        check_key(key.as_ref())?;
        Ok((keyspace.prefix.with_stored(key.as_ref(), |stored| Slice::from(stored)), Kind::Value, value))
    });
    let written = core.store.write_new(entries, last_seqno + 1, spec);
    let mut written = written.inspect_err(|error| fail_if_unsafe(core, &core.lock(), error))?;
    let Some(key_range) = KeyRange::around(written.tables.iter().map(|table| table.meta())) else {
        return Ok(last_seqno);
    };
    let last = last_seqno + written.tables.len() as u64;
    fail_on_unwind(core, || install(core, keyspace, &mut written, (key_range, last)))?;
    // Counted under the lock.
    let _state = core.lock();
    core.store.counters.write_line.writes.add(written.entries);
    core.store.counters.write_line.user_bytes.add(written.entry_bytes);
    Ok(last)
}

/// Step 3. Compactions keep out of this place meanwhile.
fn install(
    core: &Core,
    keyspace: &KeyspaceRef,
    written: &mut Written,
    (key_range, last): (KeyRange, SeqNo),
) -> Result<()> {
    let place = check_seqno(last).and_then(|()| find_place(core, &key_range));
    // Checked with the lock held, like other writes.
    let place = place.and_then(|place| keyspace.check().map(|()| place));
    let (mut state, run_id) = place.inspect_err(|_| written.remove_from(&core.store))?;
    let reserved = state.compacting.in_progress.reserve(run_id, key_range);
    drop(state);
    let edit = VersionEdit { last_seqno: Some(last), ..written.as_edit(run_id) };
    tracing::debug!(level = run_id.level, tables = written.tables.len(), "ingested tables");
    let installed = core.install(edit, std::mem::take(&mut written.tables), |_| {});
    core.lock().compacting.in_progress.end(reserved);
    core.wake_all();
    installed
}

/// The run for the ingested tables. If that is level 0 and it has no room, this waits for compactions, as writers do.
fn find_place<'a>(core: &'a Core, key_range: &KeyRange) -> Result<(MutexGuard<'a, State>, RunId)> {
    let mut state = core.lock();
    let mut has_waited = false;
    loop {
        // This wait is done first, because it may release the lock. The later checks stay valid as long as the lock is held.
        let stalled;
        (state, stalled) = core.check_not_stalled(state);
        core.check_writable(&state)?;
        let run_id = compaction::pick_for_ingest(&core.view.get().version, &state.compacting.in_progress, key_range);
        if run_id.level > 0 || core.level_0_has_room() {
            return Ok((state, run_id));
        }
        stalled?;
        check_space(core, &state)?;
        if !std::mem::replace(&mut has_waited, true) {
            core.store.counters.stalls.count.add(1);
        }
        state = wait(&core.room, state);
    }
}

/// Pauses writers and other ingests until it is dropped.
struct WriterPause<'a>(&'a Core);

impl WriterPause<'_> {
    fn begin(core: &Core) -> Result<WriterPause<'_>> {
        let mut state = core.lock();
        while state.is_ingesting {
            core.check_writable(&state)?;
            state = wait(&core.room, state);
        }
        core.check_writable(&state)?;
        state.is_ingesting = true;
        Ok(WriterPause(core))
    }
}

impl Drop for WriterPause<'_> {
    fn drop(&mut self) {
        self.0.lock().is_ingesting = false;
        self.0.wake_all();
    }
}
