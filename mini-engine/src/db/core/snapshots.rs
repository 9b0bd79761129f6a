//! The sequence numbers of the live snapshots, which merges must keep readable.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::types::SeqNo;

/// Live snapshots by sequence number, with how many there are of each.
#[derive(Debug, Default)]
pub(crate) struct SnapshotRegistry(Mutex<BTreeMap<SeqNo, usize>>);

impl SnapshotRegistry {
    /// Registers what `pin` makes under the number that it returns with it. `pin` runs under the registry's lock, so
    /// that a snapshot is either in what [`SnapshotRegistry::live`] returns or was pinned after it, at a number that is
    /// not older than anything visible then (rule 16).
    pub(crate) fn register<T>(&self, pin: impl FnOnce() -> (T, SeqNo)) -> (T, SeqNo) {
        let mut live = self.lock();
        let (pinned, seqno) = pin();
        *live.entry(seqno).or_default() += 1;
        (pinned, seqno)
    }

    /// Ends one registration of `seqno`.
    pub(crate) fn release(&self, seqno: SeqNo) {
        let mut live = self.lock();
        if let Some(count) = live.get_mut(&seqno) {
            *count -= 1;
            if *count == 0 {
                live.remove(&seqno);
            }
        }
    }

    /// The live sequence numbers, ascending.
    pub(crate) fn live(&self) -> Vec<SeqNo> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<SeqNo, usize>> {
        // The map is whole between any two statements: a panic elsewhere under the lock cannot have torn it.
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
        for seqno in [7, 3, 7] {
            registry.register(|| ((), seqno));
        }
        assert_eq!(registry.live(), [3, 7]);
        registry.release(7);
        assert_eq!(registry.live(), [3, 7]);
        registry.release(7);
        assert_eq!(registry.live(), [3]);
        registry.release(3);
        assert!(registry.live().is_empty());
    }
}
