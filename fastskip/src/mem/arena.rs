//! Hands out the words of one reserved range to any number of threads.
//!
//! A shard takes a chunk from the range, and its threads bump nodes off the chunk; so threads on different shards share no
//! cache line. Any number of threads may use one shard: the chunk is one word {next free, end}, which they move by CAS. A
//! thread that finds the chunk too small installs a REFILLING mark and fetches the next chunk; threads that see the mark
//! allocate directly from the range. So no thread waits, and no chunk is lost.
//!
//! Chunks shrink towards the limit on memory. What one allocation no longer finds within the limit, it takes back from the
//! chunks of all shards, whose rests become spare pieces (`spares.rs`). So what counts for the limit is what is used. When even
//! that is too little, one allocation may pass the limit; it finds all chunks empty, and nothing else is handed out until it is given
//! back.
//!
//! What a reservation gives back goes to where it came from: into the chunk that goes on behind it, back to the range that
//! does, or else to the spare pieces, which are handed out before the range grows. Those that touch are joined when enough words have
//! come since the last time. A join sorts all pieces; what is not joined yet is a small part of the limit.
//!
//! I6 accounting: reserved = used + idle, and used = sizes of linked nodes and of blocks + waste. Checked by `validate`.
//! I8 lifetime: nothing is unmapped before the arena is dropped, and nothing that was written is handed out again before it is
//! reset, through `&mut`.
//!
//! To divide the range needs little ordering: a read-modify-write always sees the latest value of its word, so no two
//! allocations overlap, and what is written into them is published by links. The orderings here serve the readers
//! of the figures, and those who are handed words that were a spare piece, whose first one was written.

use std::io;

use crossbeam_utils::CachePadded;

use super::chunk::Chunk;
use super::extent::{Extent, ExtentWord};
use super::spares::Spares;
use super::storage::{MAX_WORDS, Storage, TablePool, WORD};
use crate::sync::{AtomicU64, Ordering, ord, yield_now};
use crate::tuning::{MAX_CHUNK, MIN_CHUNK};

/// What a table without a limit reserves. A table may grow into it; thousands of tables still fit in 47 bits.
/// Windows charges a mapping when it is made, not when it is touched.
const UNLIMITED_BYTES: usize = if cfg!(windows) { 1 << 30 } else { 16 << 30 };

/// Spare pieces are joined when the words that came since the last time are one part in so many: of what is reserved, before the range grows;
/// of the limit, before something is refused.
const FRESH_PART: u64 = 64;

/// Times that one who finds no room looks again, as long as other threads have pieces which they will put back.
const HELD_LOOKS: u32 = 8;

/// How an arena is laid out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Shards, at least 1.
    pub(crate) shards: usize,
    /// Size of a shard's first chunk, in bytes.
    pub(crate) chunk_bytes: usize,
    /// Limit on the memory used; 0 means none.
    pub(crate) max_memory_bytes: usize,
    /// What the table is expected to use, in bytes; 0 means unknown.
    pub(crate) size_hint: usize,
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
    /// The first word that is handed out.
    first: u64,
    /// The most words that are handed out, but for the one entry that may pass the limit, and with it.
    limit: u64,
    capacity: u64,
    extent: ExtentWord,
    spares: Spares,
    shards: Box<[CachePadded<Shard<T>>]>,
}

impl<T: Default> Arena<T> {
    /// Reserves the range, or takes it from the pool.
    ///
    /// # Errors
    /// The system refuses even the least range that could work.
    pub(crate) fn new(mut layout: Layout, pool: Option<&TablePool>) -> io::Result<Self> {
        if layout.size_hint != 0 {
            layout.chunk_bytes = layout.chunk_bytes.min(layout.size_hint / (4 * layout.shards));
        }
        let first = u64::from(layout.head_words);
        let least = layout.head_words as usize * WORD + layout.chunk_bytes.clamp(MIN_CHUNK as usize * WORD, 1 << 20);
        let storage = Storage::reserve(Self::range_bytes(&layout), least, layout.huge_pages, pool)?;
        let capacity = storage.words().min(MAX_WORDS - 1) - first;
        let limit = match layout.max_memory_bytes {
            0 => capacity,
            bytes => capacity.min(bytes.div_ceil(WORD) as u64),
        };
        let shards = (0..layout.shards).map(|_| CachePadded::default()).collect();
        let extent = ExtentWord::new(layout.head_words);
        storage.poison(0, layout.head_words);
        Ok(Self { storage, layout, first, limit, capacity, extent, spares: Spares::new(), shards })
    }

    /// The limit, and a quarter and up to a mebibyte more for the one entry that may pass it. On Windows the limit itself.
    fn range_bytes(layout: &Layout) -> usize {
        let most = MAX_WORDS as usize * WORD;
        match layout.max_memory_bytes {
            0 => UNLIMITED_BYTES.max(layout.chunk_bytes.min(most)),
            bytes if cfg!(windows) => bytes.min(most),
            bytes => bytes.saturating_add(bytes / 4).saturating_add(bytes.min(1 << 20)).min(most),
        }
    }

    /// Forgets every allocation; the counters begin anew.
    pub(crate) fn reset(&mut self) {
        self.say_used();
        self.shards = (0..self.layout.shards).map(|_| CachePadded::default()).collect();
        self.extent = ExtentWord::new(self.layout.head_words);
        self.spares = Spares::new();
    }
}

impl<T> Arena<T> {
    /// Tells the storage how much was used.
    fn say_used(&mut self) {
        self.storage.set_used(self.extent.highest());
    }

    pub(crate) fn shard(&self, shard: usize) -> &T {
        &self.shards[shard].upper
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &T> + Clone {
        self.shards.iter().map(|shard| &shard.upper)
    }

    /// Whether an empty table could hold `words`, all but the last `tail` of them within the limit.
    pub(crate) fn could_hold(&self, words: u64, tail: u64) -> bool {
        words <= self.capacity && words - tail < self.limit
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
        let block = u64::from(words);
        let wish = (self.chunk_words() / 64).next_multiple_of(block).max(block);
        let claimed = !short.is_refilling() && Chunk::claim(&shard.blocks, short, Chunk::refilling(wish + 7));
        let wish = if claimed { wish } else { block };
        let skipped = |extent: Extent| u64::from(extent.frontier).next_multiple_of(8) - u64::from(extent.frontier);
        let piece = self.grow(|extent| {
            let room = self.left(extent).checked_sub(skipped(extent)).filter(|room| *room >= block)?;
            Some(skipped(extent) + wish.min(room / block * block))
        });
        let Some(piece) = piece else {
            if claimed {
                shard.blocks.swap(short.pack(), Ordering::Relaxed);
            }
            return None;
        };
        let off = piece.next.next_multiple_of(8);
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
            let bump = |shard: &CachePadded<Shard<T>>| Chunk::bump(&shard.chunk, words + 7).ok();
            let piece = self.shards.iter().find_map(bump).or_else(|| self.extend_by(words + 7))?;
            self.count_waste(0, 7);
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
        let found = if u64::from(words) > size / 4 || short.is_refilling() {
            self.extend_by(words)
        } else {
            self.refill(shard, short, words, size)
        };
        found
            .or_else(|| self.shards.iter().find_map(|other| Chunk::bump(&other.chunk, words).ok()))
            .or_else(|| self.take_back_for(words, tail))
    }

    /// Gives `shard` a new chunk and takes `words` from it.
    fn refill(&self, shard: usize, short: Chunk, words: u32, size: u64) -> Option<u32> {
        let shard = &self.shards[shard];
        let wish = self.share(self.extent.load(), words.into(), size).unwrap_or(words.into());
        let spare = self.spare(words);
        if let Some(spare) = spare.filter(|spare| u64::from(spare.room()) < wish) {
            // Too small for a chunk: the rest of the present one would be waste, and soon that of the next.
            return Some(self.cut(spare, words, words.into())?.next);
        }
        if !Chunk::claim(&shard.chunk, short, Chunk::refilling(wish)) {
            if let Some(spare) = spare {
                self.spares.put_rest(&self.storage, spare);
            }
            // The shard changed meanwhile: it may have room, or be refilling in other hands.
            return match Chunk::bump(&shard.chunk, words) {
                Ok(off) => Some(off),
                Err(_) => self.extend_by(words),
            };
        }
        let piece = match spare {
            Some(spare) => self.cut(spare, words, wish),
            None => self.grow(|extent| self.share(extent, words.into(), wish)),
        };
        let Some(piece) = piece else {
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
        let reserved = u64::from(self.extent.load().reserved);
        let first = (self.layout.chunk_bytes as u64 / WORD as u64).max(MIN_CHUNK);
        (reserved / (8 * self.shards.len() as u64)).clamp(first, first.max(MAX_CHUNK))
    }

    /// Words left below the limit.
    fn left(&self, extent: Extent) -> u64 {
        self.limit.saturating_sub(extent.reserved.into())
    }

    /// How much to take at once where about `wish` words are wanted, and `words` at least: less towards the limit.
    fn share(&self, extent: Extent, words: u64, wish: u64) -> Option<u64> {
        let left = Some(self.left(extent)).filter(|left| *left >= words)?;
        let share = (left / (2 * self.shards.len() as u64)).clamp(MIN_CHUNK, wish.max(MIN_CHUNK));
        Some(if wish == words { words } else { share.min(left).max(words) })
    }

    /// Takes `words` and no more, and nothing past the limit: of a spare piece, or from the range.
    fn extend_by(&self, words: u32) -> Option<u32> {
        let piece = match self.spare(words) {
            Some(spare) => self.cut(spare, words, words.into()),
            None => self.grow(|extent| self.share(extent, words.into(), words.into())),
        };
        Some(piece?.next)
    }

    /// A spare piece of `words` at least.
    fn spare(&self, words: u32) -> Option<Chunk> {
        if self.spares.are_none() {
            return None;
        }
        self.spares.take_fitting(&self.storage, words).or_else(|| {
            let many = (u64::from(self.extent.load().reserved) / FRESH_PART).max(MAX_CHUNK);
            if self.spares.fresh() < many {
                return None;
            }
            self.join_spares();
            self.spares.take_fitting(&self.storage, words)
        })
    }

    /// Takes at least `words` and about `wish` of `spare`, less towards the limit, and nothing past it. The rest stays a spare piece.
    fn cut(&self, spare: Chunk, words: u32, wish: u64) -> Option<Chunk> {
        let granted = self.extent.change(|extent| {
            let share = self.share(extent, words.into(), wish)?.min(spare.room().into());
            Some(Extent { reserved: extent.reserved + share as u32, ..extent })
        });
        let end = spare.next + granted.map_or(0, |(was, is)| is.reserved - was.reserved);
        self.spares.put_rest(&self.storage, Chunk { next: end, ..spare });
        granted.map(|_| Chunk { end, ..spare })
    }

    /// Joins the spare pieces that touch, and moves the frontier back over the last one.
    #[cold]
    fn join_spares(&self) {
        self.spares.join(&self.storage, |piece| self.extent.retreat(piece.next, piece.end));
    }

    /// Takes what all chunks have left back, if that and the rest below the limit are enough for `words`, of which the last `tail` may
    /// lie past it; then hands them out.
    #[cold]
    fn take_back_for(&self, words: u32, tail: u32) -> Option<u32> {
        if self.usage().used() + u64::from(words - tail) >= self.limit {
            return None;
        }
        for shard in &self.shards {
            self.take_back(&shard.chunk);
        }
        for _ in 0..HELD_LOOKS {
            if let Some(off) = self.extend_by(words).or_else(|| self.pass_limit(words, tail)) {
                return Some(off);
            }
            // Below the limit there is room, but not in one piece, or not where a few looks find it.
            if self.spares.fresh() > self.limit / FRESH_PART {
                self.join_spares();
            }
            if let Some(spare) = self.spares.take_any(&self.storage, words) {
                return Some(self.cut(spare, words, words.into())?.next);
            }
            if !self.spares.are_held() {
                break;
            }
            // It may be what another thread has just taken to look at.
            yield_now();
        }
        None
    }

    /// Makes what a chunk has left a spare piece.
    fn take_back(&self, chunk: &AtomicU64) {
        let rest @ Chunk { end, .. } = Chunk::unpack(chunk.load(Ordering::Relaxed));
        // The mark keeps readers of the figures from seeing neither the rest nor that it was given back.
        if rest.room() == 0 || !Chunk::claim(chunk, rest, Chunk::refilling(rest.room().into())) {
            return;
        }
        self.free(rest);
        // ORDERING(arena.chunk): Release; as in `refill`: who sees the chunk empty sees that its rest is not reserved.
        chunk.store(Chunk { next: end, end }.pack(), ord("arena.chunk", Ordering::Release));
    }

    /// Frees a piece that was handed out and never written to.
    fn free(&self, piece: Chunk) {
        if !self.extent.give_back(piece.room(), Some(piece.end)) {
            self.spares.put(&self.storage, piece);
        }
    }

    /// Takes `words` of which the last `tail` may lie past the limit. If any does, nothing is handed out afterwards.
    fn pass_limit(&self, words: u32, tail: u32) -> Option<u32> {
        let within = u64::from(words - tail);
        let piece = self.grow(|extent| (u64::from(extent.reserved) + within < self.limit).then_some(words.into()))?;
        Some(piece.next)
    }

    /// Moves the frontier as many words as `words` says, given the extent; returns what lies between.
    fn grow(&self, words: impl Fn(Extent) -> Option<u64>) -> Option<Chunk> {
        let grown = |extent: Extent| {
            let grown = extent.grown(words(extent)?)?;
            (u64::from(grown.frontier) <= self.first + self.capacity).then_some(grown)
        };
        let (was, is) = self.extent.change(grown)?;
        Some(Chunk { next: was.frontier, end: is.frontier })
    }

    /// Whether the limit is passed: then nothing more is handed out.
    pub(crate) fn is_passed(&self) -> bool {
        u64::from(self.extent.load().reserved) > self.limit
    }

    /// Takes the words from `start` to `end` back, which were handed out to this shard and not written to.
    pub(crate) fn give_back(&self, shard: usize, start: u32, end: u32) {
        let chunk = &self.shards[shard].chunk;
        if self.is_passed() || !Chunk::unbump(chunk, start, end) {
            self.free(Chunk { next: start, end });
        }
    }

    /// Counts words that were allocated for nothing.
    pub(crate) fn count_waste(&self, shard: usize, words: u32) {
        self.shards[shard].wasted.fetch_add(words.into(), Ordering::Relaxed);
    }

    /// Words handed out, and of those idle and wasted. `reserved - idle` is never too small: what is idle was handed out
    /// before, and that is read last; what was given back meanwhile counts as if it were not.
    pub(crate) fn usage(&self) -> Usage {
        let returned = self.extent.returned();
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
        let reserved = u64::from(self.extent.load().reserved);
        Usage { reserved: reserved + (self.extent.returned() - returned), idle, wasted, index }
    }

    /// Whether at least `words` are used for certain: what a shard is just fetching counts as idle.
    fn uses_at_least(&self, words: u64) -> bool {
        let returned = self.extent.returned();
        let mut used = u64::from(self.extent.load().reserved);
        for chunk in self.shards.iter().flat_map(|shard| [&shard.chunk, &shard.blocks]) {
            if used < words {
                return false;
            }
            // ORDERING(arena.chunk.read): Acquire; pairs with `take_back`, see there.
            let chunk = Chunk::unpack(chunk.load(ord("arena.chunk.read", Ordering::Acquire)));
            used = used.saturating_sub(chunk.room_at_most().into());
        }
        // What was given back meanwhile may have been counted as used.
        used >= words && self.extent.returned() == returned
    }

    /// Whether the memory limit is reached.
    pub(crate) fn is_spent(&self) -> bool {
        self.uses_at_least(self.limit)
    }

    /// Whether `part` of the limit is used. A table without one is limited by its range.
    pub(crate) fn uses_part(&self, part: f64) -> bool {
        self.uses_at_least((self.limit as f64 * part).ceil() as u64)
    }

    /// The limit in force, in words: the configured one, unless the range is smaller.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        self.say_used();
    }
}

#[cfg(test)]
mod tests;
