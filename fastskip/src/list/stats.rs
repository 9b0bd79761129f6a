//! What a table counts, and how it is shown.

use super::List;
use super::order::Visits;
use super::schema::Schema;
use crate::mem::storage::WORD;
use crate::node::Target;
use crate::sync::{AtomicU64, Ordering, ord};

/// A sum. Who is alone in its shard (see `gate.rs`) adds without a read-modify-write, to a word that others leave alone.
#[derive(Debug, Default)]
struct Counter {
    by_lone: AtomicU64,
    by_others: AtomicU64,
}

impl Counter {
    #[inline]
    fn add(&self, more: u64, alone: bool) {
        // ORDERING(counts.add): Release; pairs with `sum`. Weaker: an entry could be seen counted, and its attempt and its memory
        // not yet (loom `entry_is_counted_after_its_memory`).
        let release = ord("counts.add", Ordering::Release);
        if alone {
            self.by_lone.store(self.by_lone.load(Ordering::Relaxed) + more, release);
        } else {
            self.by_others.fetch_add(more, release);
        }
    }

    fn take_back(&self, less: u64, alone: bool) {
        // ORDERING(counts.add): Release; as in `add`.
        let release = ord("counts.add", Ordering::Release);
        if alone {
            self.by_lone.store(self.by_lone.load(Ordering::Relaxed) - less, release);
        } else {
            self.by_others.fetch_sub(less, release);
        }
    }

    fn sum(&self) -> u64 {
        // ORDERING(counts.read): Acquire; pairs with `add`, see there.
        let acquire = ord("counts.read", Ordering::Acquire);
        self.by_lone.load(acquire) + self.by_others.load(acquire)
    }
}

/// One shard's counters.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    entries: Counter,
    tombstones: Counter,
    key_bytes: Counter,
    value_bytes: Counter,
    cas_failures: AtomicU64,
}

/// Sums of such counters.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Totals {
    pub(crate) entries: u64,
    pub(crate) tombstones: u64,
    pub(crate) key_bytes: u64,
    pub(crate) value_bytes: u64,
    pub(crate) cas_failures: u64,
}

impl Totals {
    /// One entry with these parts.
    #[inline]
    pub(crate) fn entry(key_len: usize, value_len: usize, is_tombstone: bool) -> Self {
        let (key_bytes, value_bytes) = (key_len as u64, value_len as u64);
        Self { entries: 1, tombstones: is_tombstone.into(), key_bytes, value_bytes, cas_failures: 0 }
    }
}

impl Counts {
    /// Counts `entries`, before they are linked; whoever counts must say whether it is alone in the shard.
    #[inline]
    pub(crate) fn stored(&self, entries: Totals, alone: bool) {
        self.entries.add(entries.entries, alone);
        self.key_bytes.add(entries.key_bytes, alone);
        self.value_bytes.add(entries.value_bytes, alone);
        if entries.tombstones != 0 {
            self.tombstones.add(entries.tombstones, alone);
        }
    }

    /// Counts a link that another thread changed first.
    #[cold]
    pub(crate) fn cas_failed(&self) {
        self.cas_failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Takes an entry back that was counted and found stored by another thread.
    #[cold]
    pub(crate) fn not_stored(&self, entry: Totals, alone: bool) {
        self.entries.take_back(entry.entries, alone);
        self.key_bytes.take_back(entry.key_bytes, alone);
        self.value_bytes.take_back(entry.value_bytes, alone);
        if entry.tombstones != 0 {
            self.tombstones.take_back(entry.tombstones, alone);
        }
    }

    fn add_to(&self, totals: &mut Totals) {
        totals.entries += self.entries.sum();
        totals.key_bytes += self.key_bytes.sum();
        totals.value_bytes += self.value_bytes.sum();
        totals.cas_failures += self.cas_failures.load(Ordering::Relaxed);
    }
}

/// All figures of a table, read in one pass. Sizes are in bytes.
///
/// `memory_usage + memory_idle == memory_reserved` holds in every value of this type, and no entry is counted before its memory
/// and its attempt are. Counts are exact when no writer is active.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct Stats {
    /// Live keys of a list; versions, tombstones included, of a memtable.
    pub len: usize,
    /// Entries stored, live or not.
    pub entries: usize,
    /// Entries that are tombstones.
    pub tombstones: usize,
    /// Inserts attempted, refused ones included, modulo 2^43 a shard.
    pub total_inserts: usize,
    /// Links that changed between a writer's look and its CAS: how often writers met each other.
    pub cas_failures: usize,
    /// Bytes of the arena that hold nodes or blocks of the index, or were lost between them. A lookup that mends the index may
    /// add to them, within the limit.
    pub memory_usage: usize,
    /// Bytes of the arena handed out to shards.
    pub memory_reserved: usize,
    /// Bytes handed out to shards and not used yet.
    pub memory_idle: usize,
    /// Bytes of `memory_usage` that hold no entry: ends of chunks, nodes whose key another thread stored
    /// first, and blocks that were replaced.
    pub memory_wasted: usize,
    /// Bytes of `memory_usage` that hold blocks of the index, their unused slots included.
    pub memory_index: usize,
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
    pub is_sealed: bool,
    /// Whether a limit is near: see the builder's `backpressure_at`.
    pub is_under_backpressure: bool,
}

impl Stats {
    /// `memory_usage` as a fraction of `memory_reserved`, from 0.0 to 1.0; 0.0 for an empty table.
    #[must_use]
    pub fn memory_utilization(&self) -> f64 {
        ratio(self.memory_usage as u64, self.memory_reserved as u64)
    }
}

/// What one lookup looks at: a measure of its cost that no machine changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct SearchCost {
    /// Nodes of the list, each one cache miss in a large table.
    pub nodes: usize,
    /// Blocks of the index.
    pub blocks: usize,
}

impl Visits for SearchCost {
    fn node(&mut self) {
        self.nodes += 1;
    }

    fn block(&mut self) {
        self.blocks += 1;
    }
}

/// `part / whole`, and 0.0 where there is no whole.
pub(crate) fn ratio(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn bytes(words: u64) -> usize {
    (words * WORD as u64) as usize
}

impl<S: Schema> List<S> {
    /// Whether a limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.arena.is_passed() || self.arena.is_spent() || self.quota.is_used(1.0, || self.entries() as u64)
    }

    fn totals(&self) -> Totals {
        // Tombstones of all shards first. An entry is counted before it is linked, hence before it can be deleted: so the entries that
        // are read afterwards contain all that these tombstones replaced, whichever shards count the two.
        let tombstones = self.arena.shards().map(|shard| shard.counts.tombstones.sum()).sum();
        let mut totals = Totals { tombstones, ..Totals::default() };
        self.arena.shards().for_each(|shard| shard.counts.add_to(&mut totals));
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

    /// Bytes that hold nodes or blocks or were lost between them. A look at a word of each shard: an engine asks after every write.
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
            memory_index: bytes(usage.index),
            avg_key_size: ratio(totals.key_bytes, totals.entries),
            avg_value_size: ratio(totals.value_bytes, totals.entries),
            max_memory_bytes: self.config.max_memory_bytes,
            effective_max_memory_bytes: bytes(self.arena.limit()),
            max_entries: self.config.max_entries,
            is_sealed: self.is_frozen(),
            is_under_backpressure: self.is_under_backpressure(),
        }
    }

    /// What a lookup of `target` looks at as things are.
    pub(crate) fn search_cost(&self, target: Target<'_>) -> SearchCost {
        let mut cost = SearchCost::default();
        self.seek(target, &mut cost);
        cost
    }

    /// Whether the configured part of a limit is used up, now or ever before.
    pub(crate) fn is_under_backpressure(&self) -> bool {
        if self.pressed.load(Ordering::Relaxed) {
            return true;
        }
        let part = self.config.backpressure_at;
        let pressed =
            self.arena.is_passed() || self.arena.uses_part(part) || self.quota.is_used(part, || self.entries() as u64);
        if pressed {
            self.press();
        }
        pressed
    }

    /// Turns backpressure on.
    pub(super) fn press(&self) {
        self.pressed.store(true, Ordering::Relaxed);
    }
}
