//! Statistics of a table, computed from the counters of its shards; and the check of the invariants that hold whenever no writer is inside.

use super::counts::{Counts, Totals};
use super::state::List;
use crate::builder::Config;
use crate::mem::storage::WORD;
use crate::node::{Cost, Schema, Target};
use crate::sync::Ordering;

/// All statistics of a table, read in one pass. Sizes are in bytes.
///
/// `memory_usage + memory_idle == memory_reserved` holds in every value of this type. An entry is never counted before its memory and its attempt are
/// counted. Counts are exact when no writer is active.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Live keys of a list, or versions of a memtable, tombstones included.
    pub len: usize,
    /// Entries stored, live or not.
    pub entries: usize,
    /// Entries that are tombstones, at most `entries`.
    pub tombstones: usize,
    /// Attempted inserts, refused ones included, modulo 2^43 for each shard.
    pub total_inserts: usize,
    /// Links that changed between a writer's read and its CAS: a measure of the contention between writers.
    pub cas_failures: usize,
    /// The lowest sequence number of a stored version; `None` for an empty memtable and for a list.
    pub lowest_seqno: Option<u64>,
    /// The highest sequence number of a stored version; `None` for an empty memtable and for a list.
    pub highest_seqno: Option<u64>,
    /// Bytes of the arena that hold nodes or blocks of the index, or were lost between them. A lookup that mends the index may
    /// add to them, within the limit.
    pub memory_usage: usize,
    /// Bytes of the arena handed out to shards.
    pub memory_reserved: usize,
    /// Bytes handed out to shards and not used yet.
    pub memory_idle: usize,
    /// Bytes of `memory_usage` that hold no entry: ends of chunks, nodes whose key another thread stored first, and values that later writes of the
    /// same key and sequence number replaced. Also the blocks of the index that were replaced because a thread was stopped while it changed them: at
    /// most a sixteenth of the limit.
    pub memory_wasted: usize,
    /// Bytes of `memory_usage` that hold blocks of the index, their unused slots included.
    pub memory_index: usize,
    /// Bytes of the keys of all `entries`.
    pub key_bytes: usize,
    /// Bytes of the values of all `entries`, as the writes passed them; without replaced values. While writers replace values, the figure may be any
    /// number.
    pub value_bytes: usize,
    /// Mean length of the stored keys.
    pub avg_key_size: f64,
    /// Mean length of the stored values.
    pub avg_value_size: f64,
    /// The configured limit on `memory_usage`; 0 means none.
    pub max_memory_bytes: usize,
    /// The limit on `memory_usage` that is in force: the configured one, or the size of the address range if that is smaller.
    pub effective_max_memory_bytes: usize,
    /// The limit on `entries`; 0 means none.
    pub max_entries: usize,
    /// Whether the table is frozen.
    pub is_frozen: bool,
    /// Whether a limit is near: see the builder's method `backpressure_at`.
    pub is_under_backpressure: bool,
}

impl Stats {
    /// The statistics of a table that has no memory yet.
    pub(super) fn of_untouched(config: &Config, is_frozen: bool, attempts: u64) -> Self {
        Self {
            total_inserts: attempts as usize,
            max_memory_bytes: config.arena.max_memory_bytes,
            effective_max_memory_bytes: bytes(config.arena.whole().1),
            max_entries: config.max_entries,
            is_frozen,
            is_under_backpressure: config.is_budget_pressed(),
            ..Self::default()
        }
    }

    /// `memory_usage` as a fraction of `memory_reserved`, from 0.0 to 1.0; 0.0 for an empty table.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        ratio(self.memory_usage as u64, self.memory_reserved as u64)
    }
}

/// The number of nodes and blocks that one lookup visits: a measure of its cost that is the same on every machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchCost {
    /// Nodes of the list, each one cache miss in a large table.
    pub nodes: usize,
    /// Blocks of the index.
    pub blocks: usize,
}

impl Cost for SearchCost {
    fn node(&mut self) {
        self.nodes += 1;
    }

    fn block(&mut self) {
        self.blocks += 1;
    }
}

/// `part / whole`; 0.0 if `whole` is 0.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn bytes(words: u64) -> usize {
    (words * WORD as u64) as usize
}

impl<S: Schema> List<S> {
    /// Whether a limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.nodes().arena.is_passed()
            || self.nodes().arena.uses_part(1.0)
            || self.quota.is_used(1.0, || self.entries() as u64)
    }

    fn totals(&self) -> Totals {
        // The tombstones of all shards are read first. An entry is counted before it is linked, hence before it can be deleted. So the entries, which
        // are read afterwards, include all that these tombstones have deleted, whichever shards have counted the two.
        let tombstones = self.shards().fold(0, |sum: u64, shard| sum.wrapping_add(shard.counts.tombstones.sum()));
        let mut totals = Totals { tombstones, ..Totals::default() };
        for Counts { entries, key_bytes, value_bytes, cas_failures, .. } in self.shards().map(|shard| &shard.counts) {
            totals.entries += entries.sum();
            totals.key_bytes += key_bytes.sum();
            totals.value_bytes = totals.value_bytes.wrapping_add(value_bytes.sum());
            totals.cas_failures += cas_failures.load(Ordering::Relaxed);
        }
        // If a value is replaced, one shard may subtract what another has added. While such a writer is active, a reader may miss either change.
        let at_least_0 = |sum: u64| (sum as i64).max(0) as u64;
        let tombstones = at_least_0(tombstones).min(totals.entries);
        Totals { tombstones, value_bytes: at_least_0(totals.value_bytes), ..totals }
    }

    /// The number of stored entries, without those that were deleted.
    pub(crate) fn live_entries(&self) -> usize {
        let totals = self.totals();
        totals.entries.saturating_sub(totals.tombstones) as usize
    }

    /// Entries stored.
    pub(crate) fn entries(&self) -> usize {
        self.totals().entries as usize
    }

    /// Bytes that hold nodes or blocks or were lost between them. Reads one word of each shard, because an engine calls this after every write.
    pub(crate) fn memory_usage(&self) -> usize {
        bytes(self.nodes().arena.usage().used())
    }

    /// All statistics; `len` counts live entries.
    pub(crate) fn stats(&self) -> Stats {
        let totals = self.totals();
        let usage = self.nodes().arena.usage();
        // Read after the entries: every entry that was counted above has its sequence number here.
        let seqnos = self.shards().filter_map(|shard| shard.counts.seqnos());
        let seqnos = seqnos.reduce(|(low, high), (lower, higher)| (low.min(lower), high.max(higher)));
        Stats {
            len: totals.entries.saturating_sub(totals.tombstones) as usize,
            entries: totals.entries as usize,
            tombstones: totals.tombstones as usize,
            cas_failures: totals.cas_failures as usize,
            total_inserts: self.shards().map(|shard| shard.gate.attempts() as usize).sum(),
            lowest_seqno: seqnos.map(|(low, _)| low),
            highest_seqno: seqnos.map(|(_, high)| high),
            memory_usage: bytes(usage.used()),
            memory_reserved: bytes(usage.reserved),
            memory_idle: bytes(usage.reserved - usage.used()),
            memory_wasted: bytes(usage.wasted),
            memory_index: bytes(usage.index),
            key_bytes: totals.key_bytes as usize,
            value_bytes: totals.value_bytes as usize,
            avg_key_size: ratio(totals.key_bytes, totals.entries),
            avg_value_size: ratio(totals.value_bytes, totals.entries),
            max_memory_bytes: self.config.arena.max_memory_bytes,
            effective_max_memory_bytes: bytes(self.nodes().arena.limit),
            max_entries: self.config.max_entries,
            is_frozen: self.is_frozen(),
            is_under_backpressure: self.is_under_backpressure(),
        }
    }

    /// The nodes and blocks that a lookup of `target` would visit now.
    pub(crate) fn search_cost(&self, target: Target<'_>) -> SearchCost {
        let mut cost = SearchCost::default();
        self.index.seek(target, &mut cost);
        cost
    }

    /// Whether the configured part of a limit is used up, now or at any earlier time, or that of the budget now.
    pub(crate) fn is_under_backpressure(&self) -> bool {
        let part = self.config.backpressure_at;
        if self.pressed.load(Ordering::Relaxed) || self.config.is_budget_pressed() {
            return true;
        }
        let pressed = self.nodes().arena.is_passed()
            || self.nodes().arena.uses_part(part)
            || self.quota.is_used(part, || self.entries() as u64);
        if pressed {
            self.press();
        }
        pressed
    }

    /// Turns backpressure on.
    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }

    /// Panics with the invariant's number if one does not hold: order (1), hints (2), accounting (6), partial key (9). With `tidy`, also checks the
    /// properties that make searches fast; wrong hints may break these properties, but nothing else.
    pub(crate) fn validate(&self, tidy: bool) {
        let nodes = self.index.nodes.validate();
        let words: u64 = nodes.iter().map(|&id| u64::from(self.nodes().words_in_use(id))).sum();
        let stats = self.stats();
        let used = (stats.memory_usage - stats.memory_wasted - stats.memory_index) / WORD;
        assert_eq!(words, used as u64, "I6 broken: words of nodes, and words used less waste and index");
        assert_eq!(nodes.len(), stats.entries, "I6 broken: nodes linked, and entries counted");
        self.index.validate(&nodes, tidy);
    }
}
