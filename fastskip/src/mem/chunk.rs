//! The free words, in two kinds of atomic word: the chunk of a shard, and the extent of the range that was allocated.
//!
//! The extent consists of the number of words that count for the limit, and the start of the untouched words. The two differ by the pieces that were
//! given back (`spares.rs`). A thread that takes words changes both in one step, so the reserved words never exceed the limit, whatever their
//! addresses.

use crossbeam_utils::CachePadded;

use super::budget::MemoryBudget;
use crate::sync::{AtomicU64, Ordering, ord};

/// A shard's current chunk: the words `next..end` are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Chunk {
    /// The mark of a shard whose chunk is being changed by a thread; the change adds or removes at most `words`. It differs from every real chunk: no
    /// real chunk ends before it begins.
    pub(super) fn refilling(words: u64) -> Self {
        Self { next: u32::try_from(words).unwrap_or(u32::MAX).max(1), end: 0 }
    }

    pub(super) fn is_refilling(self) -> bool {
        self.end < self.next
    }

    pub(super) fn unpack(word: u64) -> Self {
        Self { next: (word >> 32) as u32, end: word as u32 }
    }

    pub(super) fn pack(self) -> u64 {
        u64::from(self.next) << 32 | u64::from(self.end)
    }

    pub(super) fn room(self) -> u32 {
        self.end.saturating_sub(self.next)
    }

    /// Takes `words` from a chunk; if the chunk is too small, returns the chunk.
    #[inline]
    pub(super) fn bump(word: &AtomicU64, words: u32) -> Result<u32, Chunk> {
        let mut seen = word.load(Ordering::Relaxed);
        loop {
            let chunk = Chunk::unpack(seen);
            if chunk.room() < words {
                return Err(chunk);
            }
            let rest = Chunk { next: chunk.next + words, ..chunk }.pack();
            match word.compare_exchange_weak(seen, rest, Self::take_ordering(), Ordering::Relaxed) {
                Ok(_) => return Ok(chunk.next),
                Err(now) => seen = now,
            }
        }
    }

    /// Replaces the chunk `seen` by `mark`. Returns false if the chunk has changed.
    pub(super) fn claim(word: &AtomicU64, seen: Chunk, mark: Chunk) -> bool {
        word.compare_exchange(seen.pack(), mark.pack(), Self::take_ordering(), Ordering::Relaxed).is_ok()
    }

    /// The ordering for taking words from a chunk.
    #[inline(always)]
    fn take_ordering() -> Ordering {
        // ORDERING(arena.chunk.take): Acquire; pairs with `arena.chunk` and `arena.chunk.back`. Weaker: another thread could still write to the
        // words, as the link of a spare piece (loom `spare_pieces_in_a_chunk`).
        ord("arena.chunk.take", Ordering::Acquire)
    }

    /// Returns the words from `start` to `end` to the chunk, if the chunk continues at `end`. Returns false if it does not.
    pub(super) fn unbump(word: &AtomicU64, start: u32, end: u32) -> bool {
        let seen = word.load(Ordering::Relaxed);
        let chunk = Chunk::unpack(seen);
        let whole = Chunk { next: start, ..chunk }.pack();
        let fits = chunk.next == end && !chunk.is_refilling();
        // ORDERING(arena.chunk.back): Release; pairs with `arena.chunk.take`. Weaker: if the words were a spare piece after the chunk was stored,
        // they could be allocated while their first word is still being written (loom `spare_pieces_before_a_chunk`).
        let release = ord("arena.chunk.back", Ordering::Release);
        fits && word.compare_exchange(seen, whole, release, Ordering::Relaxed).is_ok()
    }
}

/// The extent at one moment, in words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    /// The number of words that belong to nodes, blocks and chunks.
    pub(super) reserved: u32,
    /// The first word that was never allocated, or that was given back at the end of the range.
    pub(super) frontier: u32,
}

impl Extent {
    fn unpack(word: u64) -> Self {
        Self { reserved: (word >> 32) as u32, frontier: word as u32 }
    }

    fn pack(self) -> u64 {
        u64::from(self.reserved) << 32 | u64::from(self.frontier)
    }

    /// The extent after it has grown by `words` from the frontier on.
    pub(super) fn grown(self, words: u64) -> Option<Self> {
        let frontier = u32::try_from(u64::from(self.frontier) + words).ok()?;
        Some(Self { reserved: self.reserved + words as u32, frontier })
    }
}

/// The word that holds the extent, and the number of words that were ever given back.
#[derive(Debug)]
pub(super) struct ExtentWord {
    now: CachePadded<AtomicU64>,
    /// The number of words that were ever given back. It grows before `reserved` shrinks, so a reader can detect a change that it may have missed.
    returned: AtomicU64,
    /// The highest frontier from which the range was ever moved back.
    highest: AtomicU64,
    /// The budget to which the reserved words are added.
    pub(super) budget: Option<MemoryBudget>,
}

impl ExtentWord {
    pub(super) fn new(frontier: u32, budget: Option<MemoryBudget>) -> Self {
        let now = CachePadded::new(AtomicU64::new(Extent { reserved: 0, frontier }.pack()));
        Self { now, returned: AtomicU64::new(0), highest: AtomicU64::new(0), budget }
    }

    pub(super) fn load(&self) -> Extent {
        // ORDERING(arena.frontier.read): Acquire; pairs with `change`, see there.
        Extent::unpack(self.now.load(ord("arena.frontier.read", Ordering::Acquire)))
    }

    /// The number of words given back so far.
    pub(super) fn returned(&self) -> u64 {
        // ORDERING(arena.frontier.read): Acquire; pairs with `give_back`: a reader does not see a shard's former chunk once words were taken back
        // from it.
        self.returned.load(ord("arena.frontier.read", Ordering::Acquire))
    }

    /// Changes the extent to the result of `to` for the present extent, which may also depend on other threads. Returns the old and the new extent.
    /// More words are taken from the budget first; words for the index may exceed it, and for others `to` returns no more than the budget has.
    pub(super) fn change(&self, for_index: bool, to: impl Fn(Extent) -> Option<Extent>) -> Option<(Extent, Extent)> {
        // ORDERING(arena.frontier): Release; pairs with `load`. Weaker: a thread could see words as reserved, but not yet the mark in their shard; it
        // would then count idle words as used. Acquire: pairs with itself. Weaker: another thread could still write to words behind a frontier that
        // moved back, as the links of spare pieces.
        let both = ord("arena.frontier", Ordering::AcqRel);
        let mut seen = self.now.load(Ordering::Relaxed);
        loop {
            let (was, is) = (Extent::unpack(seen), to(Extent::unpack(seen))?);
            let more = is.reserved.saturating_sub(was.reserved);
            if self.budget.as_ref().is_some_and(|budget| more != 0 && !budget.take(more, for_index)) {
                // Another table has taken the words after `to` had seen them in the budget.
                seen = self.now.load(Ordering::Relaxed);
                continue;
            }
            let changed = self.now.compare_exchange_weak(seen, is.pack(), both, Ordering::Relaxed);
            self.return_to_budget(if changed.is_ok() { was.reserved.saturating_sub(is.reserved) } else { more });
            match changed {
                Ok(_) => return Some((was, is)),
                Err(now) => seen = now,
            }
        }
    }

    fn return_to_budget(&self, words: u32) {
        self.budget.iter().filter(|_| words != 0).for_each(|budget| budget.give_back(words));
    }

    /// Counts `words` as free again. If they end at the frontier (`end` is their end, if known), the frontier moves back; returns whether it did.
    pub(super) fn give_back(&self, words: u32, end: Option<u32>) -> bool {
        // ORDERING(arena.returned): Release; pairs with `returned`, see there.
        self.returned.fetch_add(words.into(), ord("arena.returned", Ordering::Release));
        self.moves_back(|Extent { reserved, frontier }| {
            let back = if end == Some(frontier) { words } else { 0 };
            Some(Extent { reserved: reserved - words, frontier: frontier - back })
        })
    }

    /// Moves the frontier to the start of a free piece that ends there. Returns false if the piece does not end at the frontier.
    pub(super) fn retreat(&self, start: u32, end: u32) -> bool {
        self.moves_back(|extent| (extent.frontier == end).then_some(Extent { frontier: start, ..extent }))
    }

    /// Changes the extent. Returns whether the frontier moved back; if so, it is recorded in `highest`.
    fn moves_back(&self, to: impl Fn(Extent) -> Option<Extent>) -> bool {
        let Some((was, _)) = self.change(false, to).filter(|(was, is)| is.frontier < was.frontier) else {
            return false;
        };
        self.highest.fetch_max(was.frontier.into(), Ordering::Relaxed);
        true
    }

    /// The number of words that the budget has left.
    pub(super) fn budget_left(&self) -> u64 {
        self.budget.as_ref().map_or(u64::MAX, MemoryBudget::left_words)
    }

    /// The highest frontier so far; called when no other thread uses the arena.
    pub(super) fn highest(&self) -> u64 {
        self.highest.load(Ordering::Relaxed).max(self.load().frontier.into())
    }
}

impl Drop for ExtentWord {
    fn drop(&mut self) {
        self.return_to_budget(self.load().reserved);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches returned words that still count as used, or whose return a reader of the statistics misses; also a frontier that moves back over words
    /// that are not free, or does not move over free ones.
    #[test]
    fn only_what_ends_at_the_frontier_moves_it_back() {
        let word = ExtentWord::new(10, None);
        word.change(false, |extent| extent.grown(90)).unwrap();
        let moved = [(20, None), (20, Some(50)), (10, Some(100))].map(|(words, end)| word.give_back(words, end));
        assert_eq!(moved, [false, false, true]);
        assert_eq!((word.load(), word.returned()), (Extent { reserved: 40, frontier: 90 }, 50));
        assert_eq!([(50, 80), (50, 91), (70, 90)].map(|(start, end)| word.retreat(start, end)), [false, false, true]);
        assert_eq!((word.load(), word.returned()), (Extent { reserved: 40, frontier: 70 }, 50));
    }
}
