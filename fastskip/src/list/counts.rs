//! The counters of a shard.

use crate::sync::{AtomicU64, Ordering, ord};

/// A figure of a shard, kept in two halves. A writer that is alone in its shard (see `gate.rs`) changes one half without a read-modify-write; all
/// other writers change the other half.
#[derive(Debug, Default)]
pub(super) struct Counter {
    by_lone: AtomicU64,
    by_others: AtomicU64,
}

impl Counter {
    /// Adds to a sum, modulo 2^64; so it can also subtract.
    #[inline]
    fn add(&self, more: u64, alone: bool) {
        // ORDERING(counts.add): Release; pairs with `sum`. Weaker: a reader could see an entry as counted, but not yet its attempt and its memory
        // (loom `entry_is_counted_after_its_memory`).
        let release = ord("counts.add", Ordering::Release);
        if alone {
            self.by_lone.store(self.by_lone.load(Ordering::Relaxed).wrapping_add(more), release);
        } else {
            self.by_others.fetch_add(more, release);
        }
    }

    pub(super) fn sum(&self) -> u64 {
        // ORDERING(counts.read): Acquire; pairs with `add`, see there.
        let acquire = ord("counts.read", Ordering::Acquire);
        self.by_lone.load(acquire).wrapping_add(self.by_others.load(acquire))
    }

    /// Raises a recorded maximum.
    #[inline]
    fn raise(&self, to: u64, alone: bool) {
        // Relaxed: the count of the entry, which follows, publishes it.
        if !alone {
            self.by_others.fetch_max(to, Ordering::Relaxed);
        } else if self.by_lone.load(Ordering::Relaxed) < to {
            self.by_lone.store(to, Ordering::Relaxed);
        }
    }

    fn highest(&self) -> u64 {
        self.by_lone.load(Ordering::Relaxed).max(self.by_others.load(Ordering::Relaxed))
    }
}

/// One shard's counters.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(super) entries: Counter,
    pub(super) tombstones: Counter,
    pub(super) key_bytes: Counter,
    pub(super) value_bytes: Counter,
    pub(super) cas_failures: AtomicU64,
    highest_seqno: Counter,
    /// The number is stored with all bits inverted, so its minimum is a maximum.
    lowest_seqno: Counter,
}

/// Sums of these counters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) cas_failures: u64,
}

impl Totals {
    /// The totals of one entry whose key and value have these lengths.
    #[inline]
    pub(crate) fn entry(key_len: usize, value_len: usize, is_tombstone: bool) -> Self {
        let (key_bytes, value_bytes) = (key_len as u64, value_len as u64);
        Self { entries: 1, tombstones: is_tombstone.into(), key_bytes, value_bytes, cas_failures: 0 }
    }
}

impl Counts {
    /// Counts `entries` before they are linked. `alone`: whether the writer is alone in the shard.
    #[inline]
    pub(crate) fn stored(&self, entries: Totals, alone: bool) {
        self.entries.add(entries.entries, alone);
        self.key_bytes.add(entries.key_bytes, alone);
        self.value_bytes.add(entries.value_bytes, alone);
        if entries.tombstones != 0 {
            self.tombstones.add(entries.tombstones, alone);
        }
    }

    /// Records the sequence number of an entry that is about to be counted.
    #[inline]
    pub(super) fn note_seqno(&self, seqno: u64, alone: bool) {
        self.highest_seqno.raise(seqno, alone);
        self.lowest_seqno.raise(!seqno, alone);
    }

    /// The lowest and the highest sequence number, if there is any.
    pub(super) fn seqnos(&self) -> Option<(u64, u64)> {
        let (low, high) = (!self.lowest_seqno.highest(), self.highest_seqno.highest());
        (low <= high).then_some((low, high))
    }

    /// Counts a CAS that failed because another thread changed the link first.
    #[cold]
    pub(crate) fn cas_failed(&self) {
        self.cas_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Subtracts an entry that was counted, but whose key another thread has stored first.
    #[cold]
    pub(crate) fn not_stored(&self, entry: Totals, alone: bool) {
        let Totals { entries, tombstones, key_bytes, value_bytes, .. } = entry;
        let [entries, tombstones, key_bytes, value_bytes] =
            [entries, tombstones, key_bytes, value_bytes].map(u64::wrapping_neg);
        self.stored(Totals { entries, tombstones, key_bytes, value_bytes, ..entry }, alone);
    }
}
