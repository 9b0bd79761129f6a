//! The registry of the snapshots (their sequence numbers and instants) and views that readers hold for longer than a call, each with its start time.
//! Compactions must keep the versions at these sequence numbers; views keep the files that they contain.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::types::{Millis, SeqNo};

/// The live snapshots, and the start time of each held snapshot and view.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRegistry(Mutex<LiveReaders>);

#[derive(Debug, Default)]
struct LiveReaders {
    /// Live snapshots by sequence number.
    snapshots: BTreeMap<SeqNo, LiveSnapshots>,
    /// The start time of each snapshot and view that is still held. Slots are reused, so that a scan allocates nothing here.
    begun: Vec<Option<Instant>>,
    free: Vec<usize>,
}

/// The live snapshots at one sequence number.
#[derive(Debug)]
struct LiveSnapshots {
    count: usize,
    /// The instant of the first of these snapshots. Sequence numbers and instants both rise from one registration to the next.
    instant: Millis,
}

impl LiveReaders {
    fn begin(&mut self) -> usize {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.begun.push(None);
            self.begun.len() - 1
        });
        self.begun[slot] = Some(Instant::now());
        slot
    }

    fn end(&mut self, slot: usize) {
        self.begun[slot] = None;
        self.free.push(slot);
    }
}

/// Identifies a live snapshot, until [`SnapshotRegistry::release`].
#[derive(Debug)]
pub(crate) struct SnapshotId {
    pub(crate) seqno: SeqNo,
    /// The instant at which the snapshot judges expiry.
    pub(crate) instant: Millis,
    slot: usize,
}

/// Identifies a held view, until [`SnapshotRegistry::release_view`].
#[derive(Debug)]
pub(crate) struct ViewId(usize);

impl SnapshotRegistry {
    /// Registers a snapshot at the number that `visible` returns, and at the instant that `now` returns afterwards. Both run under the registry's
    /// lock. So a snapshot is either in the result of [`SnapshotRegistry::live`], or is registered later, at a number no smaller than the one visible
    /// then (rule 16), and at no earlier instant (K3 of the clock).
    pub(crate) fn register(&self, visible: impl FnOnce() -> SeqNo, now: impl FnOnce() -> Millis) -> SnapshotId {
        let mut held = self.lock();
        let (seqno, instant) = (visible(), now());
        held.snapshots.entry(seqno).or_insert(LiveSnapshots { count: 0, instant }).count += 1;
        SnapshotId { seqno, instant, slot: held.begin() }
    }

    pub(crate) fn release(&self, snapshot: &SnapshotId) {
        let mut held = self.lock();
        held.end(snapshot.slot);
        if let Some(live) = held.snapshots.get_mut(&snapshot.seqno) {
            live.count -= 1;
            if live.count == 0 {
                held.snapshots.remove(&snapshot.seqno);
            }
        }
    }

    pub(crate) fn register_view(&self) -> ViewId {
        ViewId(self.lock().begin())
    }

    pub(crate) fn release_view(&self, view: &ViewId) {
        self.lock().end(view.0);
    }

    /// The sequence numbers of the live snapshots, ascending, and their instants. One more instant follows for all later readers: the result of
    /// `now`, which runs under the registry's lock.
    pub(crate) fn live(&self, now: impl FnOnce() -> Millis) -> (Vec<SeqNo>, Vec<Millis>) {
        let held = self.lock();
        let instants = held.snapshots.values().map(|live| live.instant);
        (held.snapshots.keys().copied().collect(), instants.chain([now()]).collect())
    }

    /// The sequence number of the oldest live snapshot.
    pub(crate) fn oldest_seqno(&self) -> Option<SeqNo> {
        self.lock().snapshots.first_key_value().map(|(seqno, _)| *seqno)
    }

    /// The earliest instant of any reader: entries that have expired at it have expired for every reader.
    pub(crate) fn oldest_instant(&self, now: impl FnOnce() -> Millis) -> Millis {
        let held = self.lock();
        held.snapshots.first_key_value().map_or_else(now, |(_, oldest)| oldest.instant)
    }

    /// The time since the oldest snapshot or view was registered. O(maximum number held at once).
    pub(crate) fn oldest_age(&self) -> Option<Duration> {
        self.oldest().map(|begun| begun.elapsed())
    }

    fn oldest(&self) -> Option<Instant> {
        self.lock().begun.iter().flatten().min().copied()
    }

    fn lock(&self) -> MutexGuard<'_, LiveReaders> {
        // The maps are consistent after every statement: a panic of another thread under the lock cannot have left them half changed.
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instant_is_live_until_the_last_snapshot_of_its_number_goes() {
        // Catches an entry that expires for a snapshot during its lifetime, and one that never expires although no older reader is left.
        let registry = SnapshotRegistry::default();
        let oldest = || registry.oldest_instant(|| 90);
        let [first, second, third] = [(3, 50), (3, 60), (7, 70)].map(|(seqno, at)| registry.register(|| seqno, || at));
        assert_eq!((first.instant, second.instant, third.instant), (50, 60, 70));
        assert_eq!((registry.live(|| 90), oldest()), ((vec![3, 7], vec![50, 70, 90]), 50));
        registry.release(&first);
        // The instant may be earlier than necessary, but never later.
        assert_eq!(oldest(), 50);
        registry.release(&second);
        assert_eq!((registry.live(|| 90), oldest()), ((vec![7], vec![70, 90]), 70));
        registry.release(&third);
        assert_eq!((registry.live(|| 90), oldest()), ((vec![], vec![90]), 90));
    }

    #[test]
    fn the_age_is_that_of_the_oldest_of_all() {
        // Catches an age that ends with the wrong snapshot, or that ignores the views.
        let registry = SnapshotRegistry::default();
        assert_eq!(registry.oldest_age(), None);
        let before = Instant::now();
        let view = registry.register_view();
        let between = Instant::now();
        let snapshot = registry.register(|| 5, || 0);
        assert_eq!(registry.live(|| 0).0, [5]);
        assert!(registry.oldest().is_some_and(|oldest| (before..=between).contains(&oldest)));
        registry.release_view(&view);
        assert!(registry.oldest().is_some_and(|oldest| oldest >= between));
        let slots = registry.lock().begun.len();
        registry.release_view(&registry.register_view());
        assert_eq!(registry.lock().begun.len(), slots, "slots are used again");
        registry.release(&snapshot);
        assert_eq!(registry.oldest_age(), None);
    }
}
