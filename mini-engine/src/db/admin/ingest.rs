//! Bulk loads of sorted entries, straight into tables.
//!
//! No log and no memtable take part, so each entry is written once. Order:
//! 1. writers wait from here on, and what is in memory is flushed: so the load is newer than all there is, its sequence
//!    numbers are known before its tables are written, and replay finds the numbers without a gap (rule 11): the active
//!    log has no frame yet, and its first one will follow the last number of the load, which the edit records.
//! 2. the entries are written to tables, as low as nothing overlaps them (`compaction::ingest`), synced, named.
//! 3. the edit is synced and installed (rule 6), and the last number published in the same step: all of the load is visible
//!    at once. Writers go on.
//!
//! A crash before the edit is durable leaves orphans, after it the whole load.

use crate::compaction::{self, Span, Target, Written};
use crate::db::background::{fail_if_unsafe, flush_all};
use crate::db::core::{Core, fail_on_unwind};
use crate::error::{Error, Result};
use crate::manifest::{Place, VersionEdit, Work};
use crate::types::{MAX_SEQNO, SeqNo};

/// Loads `entries`; the sequence number after which all of them are visible.
pub(crate) fn ingest<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    core: &Core,
    entries: impl IntoIterator<Item = (K, V)>,
) -> Result<SeqNo> {
    let _alone = Alone::begin(core)?;
    flush_all(core)?;
    let last_seqno = core.lock().last_seqno;
    // At the lowest level, where most loads go. How many entries there will be nobody knows, so the filters are of the mean.
    let options = &core.store.options;
    let filter_bits = f64::from(options.filter_bits_per_key);
    let target = Target { level: compaction::BOTTOM, table_bytes: options.table_file_bytes, filter_bits };
    let written = core.store.write_new(entries, last_seqno + 1, target);
    let written = written.inspect_err(|error| fail_if_unsafe(core, &core.lock(), error))?;
    let Some(span) = Span::around(written.tables.iter().map(|table| &table.meta)) else { return Ok(last_seqno) };
    let last = last_seqno + written.tables.len() as u64;
    fail_on_unwind(core, || install(core, &written, span, last))?;
    core.store.counters.writes.add(written.entries);
    core.store.counters.user_bytes.add(written.entry_bytes);
    Ok(last)
}

/// Step 3. The place is kept free of merges meanwhile.
fn install(core: &Core, written: &Written, span: Span, last: SeqNo) -> Result<()> {
    let mut state = core.lock();
    let usable = match last > MAX_SEQNO {
        true => Err(Error::Full(format!("sequence numbers are used up: at most {MAX_SEQNO} are allowed"))),
        false => core.check_writable(&state),
    };
    if let Err(error) = usable {
        drop(state);
        written.tables.iter().for_each(|table| core.store.remove(table.meta.number));
        return Err(error);
    }
    let place = compaction::place(&core.view.load().version, &state.running, &span);
    let reserved = state.running.reserve(place, span);
    drop(state);
    let edit = VersionEdit {
        added: written.tables.iter().map(|table| (place, table.meta.clone())).collect(),
        work: work(place, written),
        last_seqno: Some(last),
        ..VersionEdit::default()
    };
    tracing::debug!(level = place.level, tables = written.tables.len(), "ingested tables");
    let installed = core.install(edit, &written.tables, |_| {});
    core.lock().running.end(reserved);
    core.wake_all();
    installed
}

fn work(place: Place, written: &Written) -> Work {
    let bytes = written.table_bytes();
    let mut work = Work { user_bytes: written.entry_bytes, ..Work::default() };
    if let Some(level) = work.levels.get_mut(place.level) {
        (level.arrived, level.written) = (bytes, bytes);
    }
    work
}

/// Keeps writers waiting, and other loads, until dropped.
struct Alone<'a>(&'a Core);

impl Alone<'_> {
    fn begin(core: &Core) -> Result<Alone<'_>> {
        let mut state = core.lock();
        while state.is_ingesting {
            core.check_writable(&state)?;
            state = core.wait(&core.room, state);
        }
        core.check_writable(&state)?;
        state.is_ingesting = true;
        Ok(Alone(core))
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.lock().is_ingesting = false;
        self.0.wake_all();
    }
}
