//! Hands out the words of one reserved range to any number of threads.
//!
//! A shard takes a chunk from the range, and its threads bump nodes off the chunk; so threads on different shards share no
//! cache line. Any number of threads may use one shard: the chunk is one word {next free, end}, which they move by CAS. A
//! thread that finds the chunk too small installs a REFILLING mark and fetches the next chunk; threads that see the mark
//! allocate directly from the range. So no thread waits, and no chunk is lost.
//!
//! Chunks shrink towards the limit on memory. When no chunk has room for an allocation and too little is left below the
//! limit, that allocation may pass the limit. It is the last: it marks the arena as full.
//!
//! I6 accounting: reserved = used + idle, and used = sizes of linked nodes and of blocks + waste. Checked by `validate`.
//! I8 lifetime: nothing is given back before the arena is dropped or, through `&mut`, reset.
//!
//! Dividing the range needs no ordering: a read-modify-write always sees the latest value of its word, so no two
//! allocations overlap, and what is written into them is published by links. The two orderings here serve the readers
//! of the figures.

use std::io;

use crossbeam_utils::CachePadded;

use super::chunk::Chunk;
use super::storage::{MAX_WORDS, Storage, WORD};
use crate::sync::{AtomicBool, AtomicU64, Ordering, ord};
use crate::tuning::{MAX_CHUNK, MIN_CHUNK};

/// What a table without a limit reserves. A table may grow into it; thousands of tables still fit in 47 bits.
/// Windows charges a mapping when it is made, not when it is touched.
const UNLIMITED_BYTES: usize = if cfg!(windows) { 1 << 30 } else { 16 << 30 };

/// How an arena is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Shards, at least 1.
    pub(crate) shards: usize,
    /// Size of a shard's first chunk, in bytes.
    pub(crate) chunk_bytes: usize,
    /// Limit on the memory used; 0 means none.
    pub(crate) max_memory_bytes: usize,
    /// Whether to ask for huge pages.
    pub(crate) huge_pages: bool,
    /// Words at the front that are laid out by the caller and not counted.
    pub(crate) head_words: u32,
}

/// What one shard owns, on cache lines of its own.
#[derive(Debug, Default)]
struct Shard<T> {
    chunk: AtomicU64,
    /// The chunk that blocks of the index come from: apart from nodes, so that they are aligned and lie close together.
    blocks: AtomicU64,
    /// Words of blocks in use.
    index: AtomicU64,
    wasted: AtomicU64,
    /// What the list above keeps for the shard.
    upper: T,
}

/// What a moment's look at the arena's words found, in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) reserved: u64,
    pub(crate) idle: u64,
    pub(crate) wasted: u64,
    /// Words of the index's blocks.
    pub(crate) index: u64,
}

impl Usage {
    /// Words that hold nodes or blocks or were lost between them. A look that takes the shards one after the other can count words as idle
    /// twice, if they are given back to another shard than they came from meanwhile: hence not simply the difference.
    pub(crate) fn used(&self) -> u64 {
        self.reserved.saturating_sub(self.idle)
    }
}

/// The arena of one table. `T` is what the list above keeps for each shard, on the same cache lines.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    pub(crate) storage: Storage,
    layout: Layout,
    /// Where the part that is handed out begins and, for the limit, should end.
    first: u64,
    limit: u64,
    capacity: u64,
    /// The first word that no shard has.
    frontier: CachePadded<AtomicU64>,
    shards: Box<[CachePadded<Shard<T>>]>,
    /// Set once a limit was reached, and only cleared by a reset: what little room is left then must not reopen the table.
    /// Relaxed: it is advice to stop, and no other memory is published through it.
    full: AtomicBool,
}

impl<T: Default> Arena<T> {
    /// Reserves the range.
    ///
    /// # Errors
    /// The system refuses even the least range that could work.
    pub(crate) fn new(layout: Layout) -> io::Result<Self> {
        let first = u64::from(layout.head_words);
        let least = layout.head_words as usize * WORD + layout.chunk_bytes.clamp(MIN_CHUNK as usize * WORD, 1 << 20);
        let storage = Storage::reserve(Self::range_bytes(&layout).max(least), least)?;
        if layout.huge_pages {
            storage.advise_huge_pages();
        }
        let capacity = storage.words().min(MAX_WORDS - 1);
        let limit = match layout.max_memory_bytes {
            0 => capacity,
            bytes => capacity.min(first + bytes.div_ceil(WORD) as u64),
        };
        let shards = (0..layout.shards).map(|_| CachePadded::default()).collect();
        let frontier = CachePadded::new(AtomicU64::new(first));
        storage.poison(0, layout.head_words);
        Ok(Self { storage, layout, first, limit, capacity, frontier, shards, full: AtomicBool::new(false) })
    }

    /// The limit, and a quarter more for the one entry that may pass it. On Windows the limit itself.
    fn range_bytes(layout: &Layout) -> usize {
        let most = MAX_WORDS as usize * WORD;
        match layout.max_memory_bytes {
            0 => UNLIMITED_BYTES.max(layout.chunk_bytes.min(most)),
            bytes if cfg!(windows) => bytes.min(most),
            bytes => bytes.saturating_add(bytes / 4).saturating_add(1 << 20).min(most),
        }
    }

    pub(crate) fn shard(&self, shard: usize) -> &T {
        &self.shards[shard].upper
    }

    pub(crate) fn shards(&self) -> impl ExactSizeIterator<Item = &T> {
        self.shards.iter().map(|shard| &shard.upper)
    }

    /// Whether an empty table could hold `words`, all but the last `tail` of them within the limit.
    pub(crate) fn could_hold(&self, words: u64, tail: u64) -> bool {
        words <= self.capacity - self.first && words - tail < self.limit - self.first
    }

    /// Hands out `words` in one piece, all but the last `tail` of them within the limit. `None` when that cannot be.
    #[inline]
    pub(crate) fn alloc(&self, shard: usize, words: u32, tail: u32) -> Option<u32> {
        let off = match Chunk::bump(&self.shards[shard].chunk, words) {
            Ok(off) => off,
            Err(short) => self.alloc_past(shard, short, words, tail)?,
        };
        self.storage.poison(off, words);
        Some(off)
    }

    /// Hands out `words` for a block of the index, within the limit and at a multiple of 8. `None` when that cannot be.
    pub(crate) fn alloc_block(&self, shard: usize, words: u32) -> Option<u32> {
        let shard = &self.shards[shard % self.shards.len()];
        let off = match Chunk::bump(&shard.blocks, words) {
            Ok(off) => off,
            Err(short) => match self.refill_blocks(shard, short, words) {
                Some(off) => off,
                None => self.last_block(words)?,
            },
        };
        shard.index.fetch_add(words.into(), Ordering::Relaxed);
        Some(off)
    }

    /// Gives `shard` a new chunk of blocks, and takes one of `words` from it.
    #[cold]
    fn refill_blocks(&self, shard: &Shard<T>, short: Chunk, words: u32) -> Option<u32> {
        let mark = Chunk::REFILLING.pack();
        let claimed = short != Chunk::REFILLING
            && shard.blocks.compare_exchange(short.pack(), mark, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        let block = u64::from(words);
        let wish = if claimed { (self.chunk_words() / 64).next_multiple_of(block).max(block) } else { block };
        let start = |begin: u64| begin.next_multiple_of(8);
        let piece = self.grow(|begin| {
            let room = self.limit.checked_sub(start(begin)).filter(|room| *room >= block)?;
            Some(start(begin) + wish.min(room / block * block))
        });
        let Some(piece) = piece else {
            if claimed {
                shard.blocks.swap(short.pack(), Ordering::Relaxed);
            }
            return None;
        };
        let off = start(piece.next.into()) as u32;
        let rest = if claimed { short.room() } else { 0 };
        shard.wasted.fetch_add((off - piece.next + rest).into(), Ordering::Relaxed);
        if claimed {
            // ORDERING(arena.chunk): Release; as in `refill`.
            let chunk = Chunk { next: off + words, end: piece.end }.pack();
            shard.blocks.store(chunk, ord("arena.chunk", Ordering::Release));
        }
        Some(off)
    }

    /// A block from what any shard has left, when the range has no more below the limit: nodes are taken from there too.
    #[cold]
    fn last_block(&self, words: u32) -> Option<u32> {
        let spare = self.shards.iter().find_map(|shard| Chunk::bump(&shard.blocks, words).ok());
        spare.or_else(|| {
            let (shard, piece) =
                self.shards.iter().find_map(|shard| Some((shard, Chunk::bump(&shard.chunk, words + 7).ok()?)))?;
            shard.wasted.fetch_add(7, Ordering::Relaxed);
            Some(piece.next_multiple_of(8))
        })
    }

    /// Counts a block as waste that was replaced or never used.
    pub(crate) fn waste_block(&self, shard: usize, words: u32) {
        let shard = &self.shards[shard % self.shards.len()];
        shard.wasted.fetch_add(words.into(), Ordering::Relaxed);
        // The sum over all shards is right, whichever had handed it out.
        shard.index.fetch_sub(words.into(), Ordering::Relaxed);
    }

    #[cold]
    fn alloc_past(&self, shard: usize, short: Chunk, words: u32, tail: u32) -> Option<u32> {
        let size = self.chunk_words();
        let found = if u64::from(words) > size / 4 || short == Chunk::REFILLING {
            self.extend(words, words.into()).map(|piece| piece.next)
        } else {
            self.refill(shard, short, words, size)
        };
        found
            .or_else(|| self.shards.iter().find_map(|other| Chunk::bump(&other.chunk, words).ok()))
            .or_else(|| self.pass_limit(words, tail))
    }

    /// Gives `shard` a new chunk and takes `words` from it.
    fn refill(&self, shard: usize, short: Chunk, words: u32, size: u64) -> Option<u32> {
        let shard = &self.shards[shard];
        let mark = Chunk::REFILLING.pack();
        let claim = shard.chunk.compare_exchange(short.pack(), mark, Ordering::Relaxed, Ordering::Relaxed);
        if claim.is_err() {
            // The shard changed meanwhile: it may have room, or be refilling in other hands.
            return match Chunk::bump(&shard.chunk, words) {
                Ok(off) => Some(off),
                Err(_) => self.extend(words, words.into()).map(|piece| piece.next),
            };
        }
        let Some(piece) = self.extend(words, size) else {
            // A swap and not a store: so what was released with the chunk is still acquired with it.
            shard.chunk.swap(short.pack(), Ordering::Relaxed);
            return None;
        };
        // The range often grows right behind the old chunk; then its rest is no waste.
        let begin = if short.end == piece.next {
            short.next
        } else {
            shard.wasted.fetch_add(short.room().into(), Ordering::Relaxed);
            piece.next
        };
        // ORDERING(arena.chunk): Release; pairs with `usage`. Weaker: idle words could be seen before they are reserved.
        shard.chunk.store(Chunk { next: begin + words, end: piece.end }.pack(), ord("arena.chunk", Ordering::Release));
        Some(begin)
    }

    /// A shard's share grows with the table, so that little is idle in a small one and refills are few in a large one.
    fn chunk_words(&self) -> u64 {
        let taken = self.frontier.load(Ordering::Relaxed) - self.first;
        let first = (self.layout.chunk_bytes as u64 / WORD as u64).max(MIN_CHUNK);
        (taken / (8 * self.shards.len() as u64)).clamp(first, first.max(MAX_CHUNK))
    }

    /// Takes at least `words` and about `wish` from the range, less towards the limit, and nothing past it.
    fn extend(&self, words: u32, wish: u64) -> Option<Chunk> {
        let words = u64::from(words);
        self.grow(|begin| {
            let before_limit = self.limit.checked_sub(begin).filter(|left| *left >= words)?;
            let share = (before_limit / (2 * self.shards.len() as u64)).clamp(MIN_CHUNK, wish.max(MIN_CHUNK));
            Some(begin + if wish == words { words } else { share.min(before_limit).max(words) })
        })
    }

    /// Takes `words` of which the last `tail` may lie past the limit. If any does, nothing is handed out afterwards.
    fn pass_limit(&self, words: u32, tail: u32) -> Option<u32> {
        let piece = self.grow(|begin| {
            let end = begin + u64::from(words);
            (end - u64::from(tail) < self.limit && end <= self.capacity).then_some(end)
        })?;
        if u64::from(piece.end) > self.limit {
            self.mark_full();
        }
        Some(piece.next)
    }

    /// Moves the frontier to where `end` says, given where it is; returns what lies between.
    fn grow(&self, end: impl Fn(u64) -> Option<u64>) -> Option<Chunk> {
        // ORDERING(arena.frontier): Release; pairs with `uses_at_least`. Weaker: the piece could be seen as reserved, and
        // the mark in its shard not yet, so that idle words would count as used.
        let grown = self.frontier.fetch_update(ord("arena.frontier", Ordering::Release), Ordering::Relaxed, &end);
        let begin = grown.ok()?;
        Some(Chunk { next: begin as u32, end: end(begin)? as u32 })
    }

    /// Whether a limit was reached: then nothing more is to be stored.
    pub(crate) fn is_marked_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Says that a limit was reached.
    pub(crate) fn mark_full(&self) {
        self.full.store(true, Ordering::Relaxed);
    }

    /// Takes the words from `start` to `end`, the last ones that were handed out to this shard in one piece, back into its
    /// chunk. False if the shard has handed out others since, or if they lie past the limit, where only one entry may.
    pub(crate) fn give_back(&self, shard: usize, start: u32, end: u32) -> bool {
        let chunk = &self.shards[shard].chunk;
        let seen = chunk.load(Ordering::Relaxed);
        let Chunk { next, end: limit } = Chunk::unpack(seen);
        let whole = Chunk { next: start, end: limit }.pack();
        let fits = next == end && u64::from(end) <= self.limit;
        fits && chunk.compare_exchange(seen, whole, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    }

    /// Counts words that were allocated for nothing.
    pub(crate) fn count_waste(&self, shard: usize, words: u32) {
        self.shards[shard].wasted.fetch_add(words.into(), Ordering::Relaxed);
    }

    /// Words handed out, and of those idle and wasted. `reserved - idle` is never too small: what is idle was handed out
    /// before, and that is read last.
    pub(crate) fn usage(&self) -> Usage {
        let (mut idle, mut wasted, mut index) = (0, 0, 0_u64);
        for shard in &self.shards {
            wasted += shard.wasted.load(Ordering::Relaxed);
            index = index.wrapping_add(shard.index.load(Ordering::Relaxed));
            for chunk in [&shard.chunk, &shard.blocks] {
                // ORDERING(arena.chunk.read): Acquire; pairs with `refill`, see there.
                let chunk = chunk.load(ord("arena.chunk.read", Ordering::Acquire));
                idle += u64::from(Chunk::unpack(chunk).room());
            }
        }
        Usage { reserved: self.frontier.load(Ordering::Relaxed) - self.first, idle, wasted, index }
    }

    /// Whether at least `words` are used for certain: a chunk that is just being fetched does not count.
    fn uses_at_least(&self, words: u64) -> bool {
        // ORDERING(arena.frontier.read): Acquire; pairs with `extend`, see there.
        let mut used = self.frontier.load(ord("arena.frontier.read", Ordering::Acquire)) - self.first;
        if used < words {
            return false;
        }
        for chunk in self.shards.iter().flat_map(|shard| [&shard.chunk, &shard.blocks]) {
            let chunk = Chunk::unpack(chunk.load(Ordering::Relaxed));
            if chunk == Chunk::REFILLING {
                return false;
            }
            used = used.saturating_sub(chunk.room().into());
        }
        used >= words
    }

    /// Whether no shard can get more.
    pub(crate) fn is_handed_out(&self) -> bool {
        self.frontier.load(Ordering::Relaxed) >= self.limit
    }

    /// Whether the memory limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        self.uses_at_least(self.limit - self.first)
    }

    /// Whether `part` of the limit is used. A table without one is limited by its range.
    pub(crate) fn uses_part(&self, part: f64) -> bool {
        self.uses_at_least(((self.limit - self.first) as f64 * part).ceil() as u64)
    }

    /// Forgets every allocation; the counters begin anew.
    pub(crate) fn reset(&mut self) {
        let shards = (0..self.layout.shards).map(|_| CachePadded::default()).collect();
        self.frontier = CachePadded::new(AtomicU64::new(self.first));
        self.shards = shards;
        self.full = AtomicBool::new(false);
    }
}

#[cfg(test)]
mod tests;
