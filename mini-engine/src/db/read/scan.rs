//! [`Scan`]: the view of an iterator or a cursor. Readers hold one of two resources for longer than a call: a snapshot owns a registered sequence
//! number, a scan owns a view. No reader has both.
//!
//! P1 A registered number keeps versions: from its registration on, no flush and no compaction drops a version that is visible at it (rule 16). So
//! every later view has all of these versions, and a snapshot reads the current view. It holds no old file and no old memtable.
//! P2 A view keeps files and memtables, whose contents do not change, whatever compactions write elsewhere. So a scan needs no registered number. It
//! pins its view while the number at which it reads is registered, and so before any compaction may drop a version that it needs (P1).
//! P3 A compaction drops a version only in favour of a newer one among its inputs. All of its inputs are visible when it reads the registered
//! numbers: the numbers of an ingest are published in one step with its view, and a memtable is frozen after its writes are visible. So a number that
//! is registered later sees the newer version.
//! P4 The quarantined tables of a snapshot are those at the time when its number was registered. A table that is dropped later still makes the
//! snapshot's reads fail, because it may already have returned errors for that table.
//! P5 A scan without a snapshot does not register its number either. It pins its view first and then loads the visible number (rule 16): every
//! version that is missing in the view's tables was replaced by a version that is visible at this number. If a rotation or an ingest has replaced the
//! view by then, it begins again: the view would have later writes of a memtable that it shares with its successor, but not those of the ingest.
//! P6 A number is registered together with an instant, and a scan has its own instant: this decides which entries have expired for the reader,
//! however long it lives. A compaction treats an entry as expired only if it has expired for every reader that sees it (K3 of `core/clock.rs`).
//!
//! P7 The core's dead ranges are for readers whose views have all writes up to their numbers (D1 of `core/dead_ranges.rs`). A scan's view has them if
//! its active memtable was still active after the number was loaded, and no ingest came in between (P5); a snapshot's always has them, unless its view
//! is pinned (P8): the writer may have cut off its last writes since. A snapshot whose number is too old for these keeps its own ranges, which no
//! insertion changes. If there are quarantined tables, reads skip nothing.
//!
//! P8 In a reader of another process's database, no later view keeps the versions of its snapshots: the writer does not know them. So a snapshot pins
//! its view there, with all writes up to its number, and all of its reads use this view. Each view is read only at its own number (`View::upto`).
//!
//! A reader with both, such as a snapshot that pins its view, would keep the space twice: the old files, and the same versions in the new files. A
//! scan does not move to newer views, because it would have to keep its number registered for that. A scan that may take hours should be split into
//! ranges of a snapshot, each starting at the key after the last.

use std::sync::{Arc, Mutex};

use super::point_read::view_with_all_writes;
use crate::db::core::{Core, DeadRanges, SnapshotId, View, ViewId};
use crate::error::Result;
use crate::iter::Direction;
use crate::lock::lock;
use crate::table::TableMeta;
use crate::types::{KeyspaceRef, Millis, SeqNo, Slice};

/// A view, with the sequence number and the instant at which a scan reads the view. Keeps the directory's lock, the memtables and the open tables
/// alive. Fields drop in this order: the files before the lock.
pub(crate) struct Scan {
    pub(super) view: Arc<View>,
    pub(super) seqno: SeqNo,
    pub(super) instant: Millis,
    /// The shared reads of the snapshot that created the scan, if any.
    of_snapshot: Option<Arc<SharedReads>>,
    id: ViewId,
    pub(super) core: Arc<Core>,
}

/// The data that a snapshot shares with its scans; the scans may outlive the snapshot.
pub(super) struct SharedReads {
    /// The tables whose keys cannot be read (P4).
    pub(super) quarantined: Vec<TableMeta>,
    /// The only view with the snapshot's versions, in a reader of another process's database (P8).
    pub(super) view: Option<Arc<View>>,
    /// See P7.
    dead: Mutex<DeadRanges>,
}

impl SharedReads {
    pub(super) fn new(quarantined: Vec<TableMeta>, view: Option<Arc<View>>) -> Arc<SharedReads> {
        Arc::new(SharedReads { quarantined, view, dead: Mutex::default() })
    }
}

impl Scan {
    /// Pins the current view, to scan a keyspace at the present moment (P5).
    pub(crate) fn now(core: &Arc<Core>, keyspace: &KeyspaceRef) -> Result<Arc<Scan>> {
        core.check_open()?;
        let (view, seqno) = view_with_all_writes(core);
        // Read after the view and the number (K2 and K3 of the clock).
        let instant = core.clock.now();
        keyspace.check()?;
        Ok(Scan::new(core, view, (seqno, instant), None))
    }

    /// Pins the snapshot's view or the current one, to scan a keyspace at a registered number (P2).
    pub(super) fn at(
        core: &Arc<Core>,
        keyspace: &KeyspaceRef,
        snapshot: &SnapshotId,
        shared: &Arc<SharedReads>,
    ) -> Result<Arc<Scan>> {
        let view = shared.view.clone().unwrap_or_else(|| core.view.get());
        keyspace.check()?;
        Ok(Scan::new(core, view, (snapshot.seqno, snapshot.instant), Some(shared.clone())))
    }

    fn new(
        core: &Arc<Core>,
        view: Arc<View>,
        (seqno, instant): (SeqNo, Millis),
        of_snapshot: Option<Arc<SharedReads>>,
    ) -> Arc<Scan> {
        let id = core.snapshots.register_view();
        Arc::new(Scan { view, seqno, instant, of_snapshot, id, core: core.clone() })
    }

    /// Counts a seek that merges runs. If this makes a compaction of level 0 worthwhile, wakes a worker.
    pub(super) fn count_merge(&self) {
        if !self.view.version.runs(0).is_empty() && self.view.scans.note_scan() {
            // A worker that looks for work holds the lock: so it has seen this scan, or is woken.
            drop(self.core.lock());
            self.core.wake_all();
        }
    }

    /// The end of the keys from `place` on in `direction` that have no value, as far as the dead ranges show: see [`DeadRanges::skip`].
    pub(super) fn skip_dead(&self, place: &Slice, direction: Direction) -> Option<Slice> {
        let (core, at) = (&self.core, (self.seqno, self.instant));
        let of_present =
            if core.dead.is_used() && self.has_all_writes() { core.dead.skip(place, at, direction) } else { None };
        of_present.or_else(|| lock(&self.of_snapshot.as_ref()?.dead).skip(place, at, direction))
    }

    /// Records that the reader found no value among about `keys` keys from `start` up to `end`, exclusive. Returns false if that is not possible now.
    pub(super) fn note_dead(&self, range: (&Slice, &Slice), keys: u64) -> bool {
        // A reader does not wait for writers.
        let Some(state) = self.core.try_lock() else { return false };
        if !self.has_all_writes() {
            return false;
        }
        let (at, claimed) = ((self.seqno, self.instant), state.last_seqno);
        self.core.dead.note(range, keys, at, claimed);
        drop(state);
        if let Some(shared) = self.of_snapshot.as_ref().filter(|_| claimed > self.seqno) {
            lock(&shared.dead).note(range, keys, at, 0);
        }
        true
    }

    /// Whether the view has all writes up to the number (P7).
    fn has_all_writes(&self) -> bool {
        let is_unpinned = self.of_snapshot.as_ref().is_some_and(|shared| shared.view.is_none());
        is_unpinned || self.core.view.get().has_writes_of(&self.view)
    }

    /// Whether there are quarantined tables, which no read may ignore.
    pub(super) fn is_guarded(&self) -> bool {
        !self.quarantined().is_empty()
    }

    pub(super) fn quarantined(&self) -> &[TableMeta] {
        self.of_snapshot.as_ref().map_or_else(|| self.view.version.quarantined(), |shared| &shared.quarantined)
    }
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Scan").field("seqno", &self.seqno).field("core", &self.core).finish_non_exhaustive()
    }
}

impl Drop for Scan {
    fn drop(&mut self) {
        self.core.snapshots.release_view(&self.id);
    }
}
