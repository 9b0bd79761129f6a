//! [`Scan`]: the view of an iterator or a cursor. Readers hold one of two resources for longer than a call: a snapshot owns a registered sequence
//! number, a scan owns a view. No reader owns both.
//!
//! P1 A registered number keeps versions: from its registration on, no flush and no compaction drops a version that it sees (rule 16). So every
//! later view holds all of them, and a snapshot reads the current view. It holds no file and no memtable of the past.
//! P2 A view keeps files and memtables, which keep their contents, whatever compactions write elsewhere. So a scan needs no registered number. It
//! pins its view while the number that it reads at is registered, and so before any compaction may drop a version that it needs (P1).
//! P3 A compaction drops a version only in favour of a newer one among its inputs. All of its inputs are visible when it reads the live numbers: a
//! load is published in one step with its view, and a memtable is frozen after its writes are visible. So a number that is registered after that
//! sees the newer version.
//! P4 The quarantined tables are those of the time when the number was registered. A table that is dropped later still makes reads fail, because
//! the snapshot may already have reported it.
//! P5 A scan without a snapshot registers no number either. It pins its view first and then loads the visible number (rule 16): every version that
//! the view's tables lack was replaced by a version that this number sees. Writes after the view's last rotation are not in the view, whatever the
//! number: then the scan shows the database at that rotation, which overlapped with the call. No batch is in two memtables.
//! P6 A number is registered together with an instant, and a scan has one of its own: entries have expired for a reader by that instant, however
//! long it lives. A compaction takes an entry for expired only if it is for every reader that sees it (K3 of `core/clock.rs`).
//!
//! P7 The core's dead ranges are for readers in views that have all writes up to their numbers (D1 of `core/dead_ranges.rs`). A scan's view has them
//! if its active memtable was still the active one after the number was loaded, and no bulk load came between (P5); a snapshot's view always has.
//! Where a snapshot's number is too old for the core's ranges, it keeps its own, which no insertion concerns. Guarded reads skip nothing.
//!
//! Owning both, as in a snapshot that pins its view, would keep the space twice: the files of the past, and the same versions in the new files. A
//! scan does not move to newer views on its way, because it would have to keep its number registered for that. A scan that may take hours should be
//! made of ranges of a snapshot, each starting at the key after the last.

use std::sync::{Arc, Mutex};

use super::point_read::view_first;
use crate::db::core::{Core, DeadRanges, SnapshotId, View, ViewId};
use crate::error::Result;
use crate::iter::Direction;
use crate::lock::lock;
use crate::table::TableMeta;
use crate::types::{KeyspaceRef, Millis, SeqNo, Slice};

/// A view, and the sequence number and the instant at which a scan reads it. Keeps the directory's lock, the memtables and the open tables alive.
/// Fields drop in this order: the files before the lock.
pub(crate) struct Scan {
    pub(super) view: Arc<View>,
    pub(super) seqno: SeqNo,
    pub(super) instant: Millis,
    /// That of the snapshot that it was made from, if any.
    of_snapshot: Option<Arc<SharedReads>>,
    id: ViewId,
    pub(super) core: Arc<Core>,
}

/// The facts that a snapshot shares with its scans, which may outlive it.
pub(super) struct SharedReads {
    /// The tables whose keys cannot be read (P4).
    pub(super) quarantined: Vec<TableMeta>,
    /// P7.
    dead: Mutex<DeadRanges>,
}

impl SharedReads {
    pub(super) fn new(quarantined: Vec<TableMeta>) -> Arc<SharedReads> {
        Arc::new(SharedReads { quarantined, dead: Mutex::default() })
    }
}

impl Scan {
    /// Pins the current view, to scan a keyspace at the present moment (P5).
    pub(crate) fn now(core: &Arc<Core>, keyspace: &KeyspaceRef) -> Result<Arc<Scan>> {
        core.check_open()?;
        let (view, seqno) = view_first(|| core.view.load_full(), || core.visible());
        // After both (K2 and K3 of the clock).
        let instant = core.clock.now();
        keyspace.check()?;
        Ok(Scan::new(core, view, (seqno, instant), None))
    }

    /// Pins the current view, to scan a keyspace at a registered number (P2).
    pub(super) fn at(
        core: &Arc<Core>,
        keyspace: &KeyspaceRef,
        snapshot: &SnapshotId,
        shared: &Arc<SharedReads>,
    ) -> Result<Arc<Scan>> {
        let view = core.view.load_full();
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

    /// Counts a seek that merges runs. If level 0 has become worth a compaction for the sake of scans, wakes a worker.
    pub(super) fn count_merge(&self) {
        if !self.view.version.runs(0).is_empty() && self.view.scans.note_scan() {
            // A worker that looks for work has the lock: it has seen this scan, or is woken.
            drop(self.core.lock());
            self.core.wake_all();
        }
    }

    /// The end of the keys from `place` on in `direction` that are known to have no value: as [`DeadRanges::skip`].
    pub(super) fn skip_dead(&self, place: &Slice, direction: Direction) -> Option<Slice> {
        let (core, at) = (&self.core, (self.seqno, self.instant));
        let of_present =
            if core.dead.is_used() && self.has_all_writes() { core.dead.skip(place, at, direction) } else { None };
        of_present.or_else(|| lock(&self.of_snapshot.as_ref()?.dead).skip(place, at, direction))
    }

    /// Notes that about `keys` keys from `start` on and before `end` were passed, and had no value. False if it could not be noted now.
    pub(super) fn note_dead(&self, range: (&Slice, &Slice), keys: u64) -> bool {
        // Readers do not wait for writers.
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

    /// P7.
    fn has_all_writes(&self) -> bool {
        let is_current = |now: &View| now.active.is(&self.view.active) && now.before_active == self.view.before_active;
        self.of_snapshot.is_some() || is_current(&self.core.view.load())
    }

    /// Whether there are quarantined tables, which no read may pass.
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
