//! Installs version edits: the only way in which the set of tables changes (rule 6), and that of keyspaces.

use std::sync::Arc;

use super::scan_count::ScanCount;
use super::state::Core;
use super::view::View;
use crate::error::Result;
use crate::lock::lock;
use crate::manifest::{KeyspaceEdit, KeyspaceMeta, Manifest, Version, VersionEdit};
use crate::metrics::Counters;
use crate::table::Table;
use crate::types::{Millis, OpenKeyspace};

impl Core {
    /// Records an edit, publishes the view after it, and wakes all threads that wait for it. `count` is called once readers can see the view, and
    /// before any thread is woken: so its counts are never ahead of the visible state, and never behind for the threads that were woken.
    ///
    /// The tables of the edit are already durable; the edit becomes durable here. Only then readers get the new view, and only after this returns
    /// may the caller unlink the files that the edit made obsolete (rule 6). In any other order, a crash in between leaves a manifest that names
    /// missing files. The manifest's lock is held over both steps, so views are published in the order of their edits.
    ///
    /// Every edit records the clock.
    ///
    /// The edit of a bulk load brings numbers that no writer had: they are published with its view. If they were published later, a compaction that
    /// sees the load could drop versions that readers at the old number still need (rule 16).
    pub(crate) fn install(
        &self,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        self.install_if(|_| Ok(()), edit, outputs, count)
    }

    /// Records the clock, if it runs and has gone on since the last edit.
    pub(crate) fn record_clock(&self) -> Result<()> {
        let recorded = lock(&self.manifest).state().clock;
        if self.clock.latest() == recorded { Ok(()) } else { self.install(VersionEdit::default(), Vec::new(), |_| {}) }
    }

    /// Like [`install`](Self::install), if `check` accepts the result of all earlier edits.
    pub(crate) fn install_if(
        &self,
        check: impl FnOnce(&Version) -> Result<()>,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        let flushed_before = edit.log_number;
        let loaded = edit.last_seqno;
        // Whatever has expired, also because of this edit, has expired at the next open too. The device is waited for before the lock is taken.
        let recorded = lock(&self.manifest).state().clock;
        let edit = VersionEdit { clock: self.durable_clock(recorded)?, ..edit };
        let mut manifest = lock(&self.manifest);
        check(&manifest.state().version)?;
        let version = self.with_reserve(|| manifest.append(edit.clone()));
        let version = version.inspect_err(|error| match manifest.is_usable() && error.is_transient() {
            // The edit did not happen. It is tried again with other tables, and until then these would waste space.
            true => outputs.iter().for_each(|output| output.set_obsolete()),
            // The edit may be on disk nevertheless. So the files of both outcomes are kept.
            false => self.fail(error),
        })?;
        // Only the holder of the manifest's lock changes the version of the view, so its runs need no other lock.
        let runs = self.view.load().runs_of(&version, &outputs);
        // From here on only views hold them, so a compaction that replaces them at once can remove their files.
        drop(outputs);
        let mut state = self.lock();
        let (scans, stats) = (Arc::new(ScanCount::new(&version)), manifest.state().stats);
        let mut next = View { version, runs, scans, stats, ..View::clone(&self.view.load()) };
        // Closing a log and unmapping it takes long, so this is done after the lock is released.
        let mut flushed = Vec::new();
        if let Some(log) = flushed_before {
            // Tables now hold the contents of the memtables of older logs.
            next.frozen.retain(|frozen| frozen.memtable.log >= log);
            state.flushing.error = None;
            flushed = state.logs.release_before(log);
        }
        let loaded = loaded.filter(|last| *last > state.last_seqno);
        if let Some(last) = loaded.filter(|_| next.active.table.is_empty()) {
            // A load keeps writers waiting.
            next.before_active = last;
        }
        state.level_0_tables = next.version.runs(0).len();
        let version = next.version.clone();
        self.view.store(Arc::new(next));
        self.note_edit(&mut state, &version, manifest.bytes());
        if let Some(last) = loaded {
            state.last_seqno = last;
            self.dead.clear();
            state.recent.iter_mut().for_each(|recent| recent.restart(last));
            self.publication.raise(last);
        }
        count(&self.store.counters);
        drop(state);
        drop(manifest);
        drop(flushed);
        self.wake_all();
        Ok(())
    }

    /// Records a keyspace that is new or has new options.
    pub(crate) fn set_keyspace(&self, manifest: &mut Manifest, meta: KeyspaceMeta) -> Result<Arc<OpenKeyspace>> {
        self.append_keyspaces(manifest, KeyspaceEdit { set: vec![meta.clone()], ..KeyspaceEdit::default() })?;
        self.publish_keyspaces(manifest);
        Ok(self.keyspaces.set(&meta))
    }

    /// Records that `keyspace` is no more: after a crash it is whole, or there is none. Writes that come between the record and the mark go with it.
    pub(crate) fn forget_keyspace(&self, manifest: &mut Manifest, keyspace: &OpenKeyspace) -> Result<()> {
        let id = keyspace.prefix.id();
        self.append_keyspaces(manifest, KeyspaceEdit { dropped: vec![id], ..KeyspaceEdit::default() })?;
        self.keyspaces.remove(&keyspace.name);
        let state = self.lock();
        keyspace.set_dropped();
        // Only now may compactions drop its entries: a reader that pins a view without them finds the mark. Under the lock, which a worker that looks
        // for work has when it finds none: it has seen the drop, or is woken.
        self.publish_keyspaces(manifest);
        drop(state);
        self.wake_all();
        Ok(())
    }

    fn append_keyspaces(&self, manifest: &mut Manifest, keyspaces: KeyspaceEdit) -> Result<()> {
        let clock = self.durable_clock(manifest.state().clock)?;
        let edit = VersionEdit { keyspaces, clock, ..VersionEdit::default() };
        let appended = self.with_reserve(|| manifest.append(edit.clone()));
        let appended = appended.inspect_err(|error| {
            if !manifest.is_usable() || !error.is_transient() {
                self.fail(error);
            }
        });
        appended.map(drop)
    }

    /// The clock for an edit of the manifest (K4 of the clock). The logs are synced if it has gone on since it was recorded.
    fn durable_clock(&self, recorded: Millis) -> Result<Millis> {
        let latest = self.clock.latest();
        self.clock.ahead();
        if latest > recorded {
            self.sync_logs()?;
        }
        Ok(latest)
    }

    /// Makes the present set that of all flushes and compactions that begin from now on.
    fn publish_keyspaces(&self, manifest: &Manifest) {
        self.store.keyspaces.store(manifest.state().keyspaces.clone());
    }
}
