//! The registry of sequence numbers and views that readers hold for longer than a call, and since when. Compactions must keep the numbers readable;
//! views keep the files that they are made of.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::lock::lock;
use crate::types::SeqNo;

/// The live snapshots, and since when each snapshot and each view has been held.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRegistry(Mutex<LiveReaders>);

#[derive(Debug, Default)]
struct LiveReaders {
    /// Live snapshots by sequence number, with the number of snapshots at each.
    snapshots: BTreeMap<SeqNo, usize>,
    /// The start time of each snapshot and view that is still held. Slots are reused, so that a scan allocates nothing here.
    begun: Vec<Option<Instant>>,
    free: Vec<usize>,
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

/// A live snapshot, until [`SnapshotRegistry::release`].
#[derive(Debug)]
pub(crate) struct SnapshotId {
    pub(crate) seqno: SeqNo,
    slot: usize,
}

/// A held view, until [`SnapshotRegistry::release_view`].
#[derive(Debug)]
pub(crate) struct ViewId(usize);

impl SnapshotRegistry {
    /// Registers a snapshot at the number that `visible` returns. `visible` runs under the registry's lock. So a snapshot is either in the result
    /// of [`SnapshotRegistry::live`], or registered after it, at a number that is at least as new as everything visible then (rule 16).
    pub(crate) fn register(&self, visible: impl FnOnce() -> SeqNo) -> SnapshotId {
        let mut held = self.lock();
        let seqno = visible();
        *held.snapshots.entry(seqno).or_default() += 1;
        SnapshotId { seqno, slot: held.begin() }
    }

    pub(crate) fn release(&self, snapshot: &SnapshotId) {
        let mut held = self.lock();
        held.end(snapshot.slot);
        if let Some(count) = held.snapshots.get_mut(&snapshot.seqno) {
            *count -= 1;
            if *count == 0 {
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

    /// The sequence numbers of the live snapshots, ascending.
    pub(crate) fn live(&self) -> Vec<SeqNo> {
        self.lock().snapshots.keys().copied().collect()
    }

    /// The time for which the oldest snapshot or view has been held. O(maximum number held at once).
    pub(crate) fn oldest_age(&self) -> Option<Duration> {
        self.oldest().map(|begun| begun.elapsed())
    }

    fn oldest(&self) -> Option<Instant> {
        self.lock().begun.iter().flatten().min().copied()
    }

    fn lock(&self) -> MutexGuard<'_, LiveReaders> {
        // The maps are consistent between any two statements: a panic elsewhere under the lock cannot have torn them.
        lock(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_live_until_its_last_snapshot_goes() {
        // Catches a set instead of a count, where dropping one of two equal snapshots would unprotect the other.
        let registry = SnapshotRegistry::default();
        let [first, other, second] = [7, 3, 7].map(|seqno| registry.register(|| seqno));
        assert_eq!(registry.live(), [3, 7]);
        registry.release(&first);
        assert_eq!(registry.live(), [3, 7]);
        registry.release(&second);
        assert_eq!(registry.live(), [3]);
        registry.release(&other);
        assert!(registry.live().is_empty());
    }

    #[test]
    fn the_age_is_that_of_the_oldest_of_all() {
        // Catches an age that ends with the wrong one, or that forgets the views.
        let registry = SnapshotRegistry::default();
        assert_eq!(registry.oldest_age(), None);
        let before = Instant::now();
        let view = registry.register_view();
        let between = Instant::now();
        let snapshot = registry.register(|| 5);
        assert_eq!(registry.live(), [5]);
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
