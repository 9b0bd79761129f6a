//! Installs version edits: the only way in which the set of tables changes (rule 6).

use std::sync::Arc;

use super::state::{Core, State};
use super::view::View;
use crate::error::Result;
use crate::lock::lock;
use crate::manifest::{Version, VersionEdit};
use crate::metrics::Counters;
use crate::table::Table;
use crate::wal::Segment;

impl Core {
    /// Records an edit, publishes the view after it, and wakes all that wait for it. `count` is called once readers can
    /// see the view, and before anybody is woken: so what it counts is never ahead of what can be seen, nor behind for
    /// those who were woken.
    ///
    /// The tables of the edit are durable already; the edit becomes so here; only then readers get the new view, and only
    /// after this returns may the caller unlink what the edit made obsolete (rule 6). In any other order a crash in
    /// between leaves a manifest that names what is gone. The manifest's lock is held over both steps, so that views
    /// follow each other as their edits do.
    ///
    /// A load's edit brings numbers that no writer had: they are published with its view. Any later, and a compaction that sees
    /// the load could drop what readers at the old number are still to see (rule 16).
    pub(crate) fn install(
        &self,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        self.install_if(|_| Ok(()), edit, outputs, count)
    }

    /// As [`install`](Self::install), if `check` agrees to what all edits before have led to.
    pub(crate) fn install_if(
        &self,
        check: impl FnOnce(&Version) -> Result<()>,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        let flushed_before = edit.log_number;
        let loaded = edit.last_seqno;
        let mut manifest = lock(&self.manifest);
        check(&manifest.state().version)?;
        let version =
            manifest.append(edit).inspect_err(|error| match manifest.is_usable() && error.is_transient() {
                // The edit did not happen. It is tried again with other tables, and until then these would take the space.
                true => outputs.iter().for_each(|output| output.set_obsolete()),
                // It may be on disk nevertheless. So no file of either outcome is removed.
                false => self.fail(error),
            })?;
        // Only the holder of the manifest's lock changes the version of the view, so its runs need no other lock.
        let runs = self.view.load().runs_of(&version, &outputs);
        // The views alone have them from here on: a compaction that replaces them at once finds nobody else who keeps their files.
        drop(outputs);
        let mut state = self.lock();
        let mut next = View { version, runs, stats: manifest.state().stats, ..View::clone(&self.view.load()) };
        // To close a log and to unmap it takes long: that is left until the lock is given back.
        let mut flushed = Vec::new();
        if let Some(log) = flushed_before {
            // Tables hold what the memtables of older logs held.
            next.frozen.retain(|frozen| frozen.memtable.log >= log);
            state.flushing.error = None;
            flushed = release_logs(&mut state, log);
        }
        self.view.store(Arc::new(next));
        if let Some(last) = loaded.filter(|last| *last > state.last_seqno) {
            state.last_seqno = last;
            self.publication.raise(last);
        }
        count(&self.store.counters);
        drop(state);
        drop(manifest);
        drop(flushed);
        self.wake_all();
        Ok(())
    }
}

/// Releases the logs before `log`: later ones need not wait for the sync of what tables hold now. What the caller is to drop without the
/// lock.
fn release_logs(state: &mut State, log: u64) -> Vec<Arc<Segment>> {
    let mut flushed = Vec::new();
    while let Some(segment) = state.frozen_logs.pop_front_if(|segment| segment.number() < log) {
        flushed.extend(segment.release());
        flushed.push(segment);
    }
    let next = state.frozen_logs.front().unwrap_or(state.log.segment());
    flushed.extend(next.take_settled());
    flushed
}
