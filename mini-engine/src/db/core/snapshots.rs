//! What readers hold for longer than a call: sequence numbers, which merges must keep readable, and views, which keep the files that
//! they are made of. And since when.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::types::SeqNo;

/// The live snapshots, and the beginning of everything that is held.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRegistry(Mutex<Held>);

#[derive(Debug, Default)]
struct Held {
    /// Live snapshots by sequence number, with how many there are of each.
    snapshots: BTreeMap<SeqNo, usize>,
    /// When each snapshot and each view was taken, in that order.
    begun: BTreeMap<u64, Instant>,
    next_id: u64,
}

impl Held {
    fn begin(&mut self) -> u64 {
        let id = self.next_id;
        self.next_id += 1;
        self.begun.insert(id, Instant::now());
        id
    }
}

/// A live snapshot, until [`SnapshotRegistry::release`].
#[derive(Debug)]
pub(crate) struct SnapshotId {
    pub(crate) seqno: SeqNo,
    id: u64,
}

/// A held view, until [`SnapshotRegistry::release_view`].
#[derive(Debug)]
pub(crate) struct ViewId(u64);

impl SnapshotRegistry {
    /// Registers a snapshot at the number that `visible` returns. It runs under the registry's lock, so that a snapshot is
    /// either in what [`SnapshotRegistry::live`] returns, or registered after it, at a number that is not older than anything
    /// visible then (rule 16).
    pub(crate) fn register(&self, visible: impl FnOnce() -> SeqNo) -> SnapshotId {
        let mut held = self.lock();
        let seqno = visible();
        *held.snapshots.entry(seqno).or_default() += 1;
        SnapshotId { seqno, id: held.begin() }
    }

    /// Ends a snapshot.
    pub(crate) fn release(&self, snapshot: &SnapshotId) {
        let mut held = self.lock();
        held.begun.remove(&snapshot.id);
        if let Some(count) = held.snapshots.get_mut(&snapshot.seqno) {
            *count -= 1;
            if *count == 0 {
                held.snapshots.remove(&snapshot.seqno);
            }
        }
    }

    /// Notes that a view is held.
    pub(crate) fn register_view(&self) -> ViewId {
        ViewId(self.lock().begin())
    }

    /// Notes that a view is held no more.
    pub(crate) fn release_view(&self, view: &ViewId) {
        self.lock().begun.remove(&view.0);
    }

    /// The sequence numbers of the live snapshots, ascending.
    pub(crate) fn live(&self) -> Vec<SeqNo> {
        self.lock().snapshots.keys().copied().collect()
    }

    /// For how long the oldest snapshot or view has been held.
    pub(crate) fn oldest_age(&self) -> Option<Duration> {
        self.lock().begun.first_key_value().map(|(_, begun)| begun.elapsed())
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        // The maps are whole between any two statements: a panic elsewhere under the lock cannot have torn them.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_live_until_its_last_snapshot_goes() {
        // Catches a set instead of a count: the first of two equal snapshots to go would unprotect the other.
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
        let view = registry.register_view();
        let begun = Instant::now();
        let snapshot = registry.register(|| 5);
        assert!(registry.live() == [5] && registry.oldest_age().is_some_and(|age| age >= begun.elapsed()));
        registry.release_view(&view);
        let younger = registry.oldest_age().expect("the snapshot is held");
        assert!(younger <= begun.elapsed());
        registry.release(&snapshot);
        assert_eq!(registry.oldest_age(), None);
    }
}
