//! [`MemtableRanges`]: the range tombstones of a memtable, stored separately from its entries.
//!
//! Usually there are no range tombstones: then a read costs one load. Otherwise they are in a few immutable sets, which readers share. New range
//! tombstones become a set, merged with the sets that are small in comparison: each set is at least [`GROWTH`] times as large as the next (the
//! logarithmic method of Bentley and Saxe). So each of n range tombstones is copied into a new set O(log n) times, and a read searches O(log n) sets.
//!
//! R1 the first key of each range is also removed by an ordinary tombstone with the same sequence number, among the entries. So a memtable with range
//!    tombstones is not empty, and its operations have sequence numbers without gaps.
//! R2 a sequence number is published after the range tombstones of all numbers up to it were added (`db/core/publication.rs`), as with entries. So a
//! reader that sees a number sees these range tombstones, whatever memory orderings are used here; it ignores newer ones by their numbers.
//! R3 after the freeze no range tombstone is added.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use crate::epoch::Slot;
use crate::lock::lock;
use crate::types::{RangeTombstone, RangeTombstones};

/// The minimum ratio between the sizes of a set and the next one. With a larger ratio, a read searches fewer sets, and a range tombstone is copied
/// into new sets more often.
const GROWTH: usize = 8;

/// Sets of range tombstones, the largest first.
pub(crate) type RangeSets = Vec<Arc<RangeTombstones>>;

#[derive(Debug, Default)]
pub(super) struct MemtableRanges {
    /// Relaxed: by R2 every reader that must see it set has synchronised with the thread that set it.
    is_used: AtomicBool,
    sets: Slot<RangeSets>,
    /// Held by a writer that adds range tombstones.
    adding: Mutex<()>,
    /// Relaxed: only an estimate.
    memory: AtomicUsize,
}

impl MemtableRanges {
    pub(super) fn add(&self, more: impl IntoIterator<Item = RangeTombstone>) {
        let newest: Vec<RangeTombstone> = more.into_iter().collect();
        if newest.is_empty() {
            return;
        }
        // The sets are replaced in one step, so they are consistent after a panic anywhere.
        let _adding = lock(&self.adding);
        self.memory.fetch_add(newest.iter().map(memory_of).sum(), Ordering::Relaxed);
        let mut sets = self.sets.get().map(|sets| RangeSets::clone(&sets)).unwrap_or_default();
        let (mut kept, mut len) = (sets.len(), newest.len());
        while let Some(set) = sets[..kept].last().filter(|set| set.len() < GROWTH * len) {
            (kept, len) = (kept - 1, len + set.len());
        }
        let small = sets.split_off(kept);
        sets.push(Arc::new(RangeTombstones::new(small.iter().flat_map(|set| set.iter()).chain(newest))));
        self.sets.swap(Some(Arc::new(sets)));
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether any range tombstones were added.
    #[inline]
    pub(super) fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// The sets that were added; `None` if there are none.
    #[inline]
    pub(super) fn get(&self) -> Option<Arc<RangeSets>> {
        if self.is_used() { self.sets.get() } else { None }
    }

    /// The approximate memory of the range tombstones in bytes.
    pub(super) fn memory_usage(&self) -> usize {
        self.memory.load(Ordering::Relaxed)
    }
}

/// An upper estimate of the memory of a range tombstone, in bytes, unless many are nested.
pub(crate) fn memory_of(range: &RangeTombstone) -> usize {
    RANGE_BYTES + range.start.len() + range.end.len()
}

/// The memory of a range tombstone without its keys.
pub(super) const RANGE_BYTES: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::{MAX_SEQNO, Slice};

    #[test]
    fn range_tombstones_are_put_into_new_sets_seldom_and_are_in_few() {
        // Catches an addition that copies all existing range tombstones, and a read that searches one set for each addition.
        const COUNT: u64 = 20_000;
        let ranges = MemtableRanges::default();
        let key = |n: u64| Slice::from(&n.to_be_bytes()[..]);
        let (mut put, mut before) = (0, RangeSets::new());
        for n in 0..COUNT {
            // The ranges are far apart and in random order.
            let at = n.wrapping_mul(0x9e37_79b9) % COUNT * 2;
            ranges.add([RangeTombstone { start: key(at), end: key(at + 1), seqno: n }]);
            let sets = RangeSets::clone(&ranges.get().expect("added"));
            let is_new = |set: &&Arc<RangeTombstones>| !before.iter().any(|old| Arc::ptr_eq(old, set));
            put += sets.iter().filter(is_new).map(|set| set.len() as u64).sum::<u64>();
            assert!(sets.len() <= 6, "{} sets of {n}", sets.len());
            before = sets;
        }
        assert!(put < 40 * COUNT, "{put} times");
        for n in 0..COUNT {
            let at = n.wrapping_mul(0x9e37_79b9) % COUNT * 2;
            let covering = |key: &Slice| before.iter().filter_map(|set| set.covering(key, MAX_SEQNO)).max();
            assert_eq!((covering(&key(at)), covering(&key(at + 1))), (Some(n), None));
        }
    }
}
