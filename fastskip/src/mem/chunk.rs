//! A shard's chunk of the arena, packed into one word.

use crate::sync::{AtomicU64, Ordering};

/// A shard's current chunk: the words `next..end` are free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) next: u32,
    pub(super) end: u32,
}

impl Chunk {
    /// The mark of a shard whose next chunk a thread fetches. No real chunk ends before it begins.
    pub(super) const REFILLING: Self = Self { next: 1, end: 0 };

    pub(super) fn unpack(word: u64) -> Self {
        Self { next: (word >> 32) as u32, end: word as u32 }
    }

    pub(super) fn pack(self) -> u64 {
        u64::from(self.next) << 32 | u64::from(self.end)
    }

    pub(super) fn room(self) -> u32 {
        self.end.saturating_sub(self.next)
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
            match word.compare_exchange_weak(seen, rest, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(chunk.next),
                Err(now) => seen = now,
            }
        }
    }
}
