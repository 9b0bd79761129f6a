//! What a list can say of itself.

use super::List;
use crate::budget::Lease;
use crate::search::Schema;
use crate::stats::{Stats, Totals, ratio};
use crate::storage::WORD;
use crate::sync::Ordering;

fn bytes(words: u64) -> usize {
    (words * WORD as u64) as usize
}

impl<S: Schema> List<S> {
    /// Whether a limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.arena.is_closed() || self.arena.is_spent() || self.budget.is_used(1.0, || self.entries() as u64)
    }

    pub(super) fn leases(&self) -> impl ExactSizeIterator<Item = &Lease> {
        self.arena.shards().map(|shard| &shard.lease)
    }

    fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for shard in self.arena.shards() {
            shard.counts.add_to(&mut totals);
        }
        totals
    }

    /// Entries stored, less those deleted since.
    pub(crate) fn live_entries(&self) -> usize {
        let totals = self.totals();
        totals.entries.saturating_sub(totals.tombstones) as usize
    }

    /// Entries stored.
    pub(crate) fn entries(&self) -> usize {
        self.totals().entries as usize
    }

    /// Bytes that hold nodes or were lost between them. A look at a word of each shard: an engine asks after every write.
    pub(crate) fn memory_usage(&self) -> usize {
        bytes(self.arena.usage().used())
    }

    /// All figures; `len` counts live entries.
    pub(crate) fn stats(&self) -> Stats {
        let totals = self.totals();
        let usage = self.arena.usage();
        Stats {
            len: totals.entries.saturating_sub(totals.tombstones) as usize,
            entries: totals.entries as usize,
            tombstones: totals.tombstones as usize,
            cas_failures: totals.cas_failures as usize,
            total_inserts: self.arena.shards().map(|shard| shard.gate.attempts() as usize).sum(),
            memory_usage: bytes(usage.used()),
            memory_reserved: bytes(usage.reserved),
            memory_idle: bytes(usage.reserved - usage.used()),
            memory_wasted: bytes(usage.wasted),
            avg_key_size: ratio(totals.key_bytes, totals.entries),
            avg_value_size: ratio(totals.value_bytes, totals.entries),
            max_memory_bytes: self.config.max_memory_bytes,
            max_entries: self.config.max_entries,
            is_sealed: self.is_frozen(),
            is_under_backpressure: self.is_under_backpressure(),
        }
    }

    /// Whether the configured part of a limit is used up, now or ever before.
    pub(crate) fn is_under_backpressure(&self) -> bool {
        if self.pressed.load(Ordering::Relaxed) {
            return true;
        }
        let part = self.config.backpressure_at;
        let pressed =
            self.arena.is_closed() || self.arena.uses_part(part) || self.budget.is_used(part, || self.entries() as u64);
        if pressed {
            self.pressed.store(true, Ordering::Relaxed);
        }
        pressed
    }
}
