//! A shard's chunk of the arena, packed into one word.

use crate::sync::{AtomicU64, Ordering, ord};

/// A shard's current chunk: the words `next..end` are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Chunk {
    /// The mark of a shard whose chunk a thread is changing; the change adds or removes at most `words`. No real chunk ends before it begins.
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

    /// The maximum number of free words; for a shard that is being refilled, all that it may get.
    pub(super) fn room_at_most(self) -> u32 {
        if self.is_refilling() { self.next } else { self.room() }
    }

    /// Takes `words` from a chunk, or returns the chunk that is too small.
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

    /// Replaces the chunk `seen` by `mark`. False if the chunk has changed.
    pub(super) fn claim(word: &AtomicU64, seen: Chunk, mark: Chunk) -> bool {
        word.compare_exchange(seen.pack(), mark.pack(), Self::take_ordering(), Ordering::Relaxed).is_ok()
    }

    /// The ordering for taking words from a chunk.
    #[inline(always)]
    fn take_ordering() -> Ordering {
        // ORDERING(arena.chunk.take): Acquire; pairs with `arena.chunk` and `arena.chunk.back`. Weaker: another thread could still write to the
        // words, as a
        // link of spare pieces (loom `spare_pieces_in_a_chunk`).
        ord("arena.chunk.take", Ordering::Acquire)
    }

    /// Returns the words from `start` to `end` to the chunk, if it continues there. False if it does not.
    pub(super) fn unbump(word: &AtomicU64, start: u32, end: u32) -> bool {
        let seen = word.load(Ordering::Relaxed);
        let chunk = Chunk::unpack(seen);
        let whole = Chunk { next: start, ..chunk }.pack();
        let fits = chunk.next == end && !chunk.is_refilling();
        // ORDERING(arena.chunk.back): Release; pairs with `arena.chunk.take`. Weaker: words that were never the chunk's, but a spare piece since
        // the chunk was stored, could be allocated while their first word is still being written (loom `spare_pieces_before_a_chunk`).
        let release = ord("arena.chunk.back", Ordering::Release);
        fits && word.compare_exchange(seen, whole, release, Ordering::Relaxed).is_ok()
    }
}
