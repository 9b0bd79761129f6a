//! Installs version edits: only here the set of tables changes (rule 6), and the set of keyspaces.

use std::sync::Arc;

use super::scan_count::ScanCount;
use super::state::{Core, State};
use super::view::View;
use crate::error::Result;
use crate::lock::lock;
use crate::manifest::{KeyspaceEdit, KeyspaceMeta, Manifest, ManifestState, Version, VersionEdit};
use crate::metrics::Counters;
use crate::table::Table;
use crate::types::{Millis, OpenKeyspace, SeqNo};

impl Core {
    /// Records an edit, publishes the view that results from it, and wakes all threads that wait for it. `count` is called after readers can see the
    /// view and before any thread is woken: so its counters are never ahead of the visible state, and never behind for the woken threads.
    ///
    /// The tables of the edit are already durable; the edit becomes durable here. Readers get the new view only after that, and the caller may unlink
    /// the files that the edit made obsolete only after this returns (rule 6). In any other order, a crash in between could leave a manifest that
    /// refers to missing files. The manifest's lock is held over both steps, so views are published in the order of their edits.
    ///
    /// Every edit records the clock.
    ///
    /// The edit of an ingest contains sequence numbers that no writer had: they are published together with its view. If they were published later, a
    /// compaction that sees the ingested tables could drop versions that readers at the old number still need (rule 16).
    pub(crate) fn install(
        &self,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        self.install_if(|_| Ok(()), edit, outputs, count)
    }

    /// Records the clock, if it runs and has advanced since the last edit.
    pub(crate) fn record_clock(&self) -> Result<()> {
        let recorded = lock(&self.manifest).state().clock;
        if self.clock.latest() == recorded { Ok(()) } else { self.install(VersionEdit::default(), Vec::new(), |_| {}) }
    }

    /// Like [`install`](Self::install), if `check` accepts the state that results from all earlier edits.
    pub(crate) fn install_if(
        &self,
        check: impl FnOnce(&Version) -> Result<()>,
        edit: VersionEdit,
        outputs: Vec<Arc<Table>>,
        count: impl FnOnce(&Counters),
    ) -> Result<()> {
        let flushed_before = edit.log_number;
        let loaded = edit.last_seqno;
        // Entries that have expired by now, also by this edit, are expired at the next open too. The logs are synced before the lock is taken.
        let recorded = lock(&self.manifest).state().clock;
        let edit = VersionEdit { clock: self.durable_clock(recorded)?, ..edit };
        let mut manifest = lock(&self.manifest);
        check(&manifest.state().version)?;
        let version = self.with_reserve(|| manifest.append(edit.clone()));
        let version = version.inspect_err(|error| match manifest.is_usable() && error.is_transient() {
            // The edit was not applied. The work is done again with other tables, so these would waste space.
            true => outputs.iter().for_each(|output| output.set_obsolete()),
            // The edit may have reached the disk nevertheless. So the files of both outcomes are kept.
            false => self.fail(error),
        })?;
        // Only the holder of the manifest's lock changes the version of the view, so its runs need no other lock.
        let runs = self.view.get().runs_of(&version, &outputs);
        // From here on only views hold the outputs, so a compaction that replaces them at once can remove their files.
        drop(outputs);
        let mut state = self.lock();
        let (scans, stats) = (Arc::new(ScanCount::new(&version)), manifest.state().stats);
        let mut next = View { version, runs, scans, stats, ..View::clone(&state.view) };
        // Closing a log and unmapping it takes long, so this is done after the lock is released.
        let mut flushed = Vec::new();
        if let Some(log) = flushed_before {
            // The memtables of older logs are now in tables.
            next.frozen.retain(|frozen| frozen.memtable.log >= log);
            state.flushing.error = None;
            flushed = state.logs.release_before(log);
        }
        let loaded = loaded.filter(|last| *last > state.last_seqno);
        if let Some(last) = loaded.filter(|_| next.active.table.is_empty()) {
            // An ingest keeps writers waiting.
            next.before_active = last;
        }
        state.level_0_tables = next.version.runs(0).len();
        let version = next.version.clone();
        self.publish_view(&mut state, next);
        self.note_edit(&mut state, &version, manifest.bytes());
        if let Some(last) = loaded {
            self.show_unwritten(&mut state, last);
        }
        count(&self.store.counters);
        drop(state);
        drop(manifest);
        drop(flushed);
        self.wake_all();
        Ok(())
    }

    /// Makes numbers up to `last` visible that no writer of this process had.
    fn show_unwritten(&self, state: &mut State, last: SeqNo) {
        state.last_seqno = last;
        self.dead.clear();
        state.recent.iter_mut().for_each(|recent| recent.restart(last));
        self.publication.raise(last);
    }

    /// Shows the state in which another process has left the files (`recovery/follow.rs`): its manifest `number` has the contents `written`, and `view`
    /// has all writes up to its number. Keyspaces are marked as dropped before a view without their entries is published, and the clock is raised before the
    /// view (K3 of the clock).
    ///
    /// A read of this view is at its number, `View::upto`, whatever number becomes visible before or after: the writer's compactions drop versions that
    /// only reads at older numbers need, and a view that was read before a failed write was cut off has other writes under the same numbers. So the
    /// number is made visible before the view.
    pub(crate) fn show(&self, number: u64, written: &ManifestState, view: View) {
        let mut manifest = lock(&self.manifest);
        let mut state = self.lock();
        if !Arc::ptr_eq(&manifest.state().keyspaces, &written.keyspaces) {
            self.keyspaces.follow(&written.keyspaces);
        }
        manifest.show(number, written.clone());
        self.publish_keyspaces(&manifest);
        self.clock.follow(written.clock);
        if view.memtables_with_expiring() {
            self.clock.begin();
        }
        state.level_0_tables = view.version.runs(0).len();
        self.show_unwritten(&mut state, view.upto);
        self.publish_view(&mut state, view);
    }

    /// Records a keyspace that is new or has new options.
    pub(crate) fn set_keyspace(&self, manifest: &mut Manifest, meta: KeyspaceMeta) -> Result<Arc<OpenKeyspace>> {
        self.append_keyspaces(manifest, KeyspaceEdit { set: vec![meta.clone()], ..KeyspaceEdit::default() })?;
        self.publish_keyspaces(manifest);
        Ok(self.keyspaces.set(&meta))
    }

    /// Records that `keyspace` is dropped: after a crash it is either complete or removed. Writes between the record and the mark in memory are lost
    /// with it.
    pub(crate) fn forget_keyspace(&self, manifest: &mut Manifest, keyspace: &OpenKeyspace) -> Result<()> {
        let id = keyspace.prefix.id();
        self.append_keyspaces(manifest, KeyspaceEdit { dropped: vec![id], ..KeyspaceEdit::default() })?;
        self.keyspaces.remove(&keyspace.name);
        let state = self.lock();
        keyspace.set_dropped();
        // Compactions may drop its entries only from now on: a reader that pins a view without them finds the mark. Published under the lock, which a
        // worker holds when it finds no work: so the worker has seen the drop, or is woken.
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

    /// The clock for an edit of the manifest (K4 of the clock). Syncs the logs if the clock has advanced since it was last recorded.
    fn durable_clock(&self, recorded: Millis) -> Result<Millis> {
        let latest = self.clock.latest();
        self.clock.ahead();
        if latest > recorded {
            self.sync_logs()?;
        }
        Ok(latest)
    }

    /// Makes the present set of keyspaces the one for all flushes and compactions that begin from now on.
    fn publish_keyspaces(&self, manifest: &Manifest) {
        self.store.set_keyspaces(manifest.state().keyspaces.clone());
    }
}
