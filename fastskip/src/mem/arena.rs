//! Allocates words from one reserved range, for any number of threads.
//!
//! A shard takes a chunk from the range, and its threads allocate nodes from the chunk by moving its start; so threads on different shards share no
//! cache line. Any number of threads may use one shard: the chunk is one word {next free, end}, which they change by CAS. A thread that finds the
//! chunk too small installs a REFILLING mark and fetches the next chunk; threads that see the mark allocate directly from the range. So no thread
//! waits, and no chunk is lost.
//!
//! Chunks become smaller as the limit on memory comes near. If an allocation finds too little room within the limit, it takes back the unused rest of
//! the chunks of all shards; the rests become spare pieces (`spares.rs`). So the limit applies to used memory, not to idle memory. If even that is
//! not enough, one allocation may exceed the limit. That allocation finds all chunks empty, and no further one succeeds until its words are given
//! back.
//!
//! Blocks of the index take their words from the same limit, when entries are linked. So an allocation of nodes leaves the words that the index needs
//! for entries that have words and are not yet linked ([`Pending`]). Thus a reservation of any size finds room for blocks when it is applied.
//!
//! A reservation returns memory to the place where it came from: to the chunk if the chunk continues directly after it, to the range if the range
//! does, or else to the spare pieces, which are allocated before the range grows. Neighbouring pieces are joined when enough words were given back
//! since the last join. A join sorts all pieces; the words that are not joined yet are a small part of the limit.
//!
//! I6 accounting: reserved = used + idle, and used = sizes of linked nodes and of blocks + waste. Checked by `validate`. I8 lifetime: nothing is
//! unmapped before the arena is dropped. No word that was written is handed out again before the arena is reset, which takes `&mut`.
//!
//! The division of the range needs little ordering: a read-modify-write always sees the latest value of its word, so no two allocations overlap; the
//! written contents are published by links. The orderings here serve readers of the statistics, and threads that receive words of a former spare
//! piece, whose first word was written.

use alloc::boxed::Box;

use crossbeam_utils::CachePadded;

use super::budget::MemoryBudget;
use super::chunk::{Chunk, Extent, ExtentWord};
use super::spares::Spares;
use super::storage::{MAX_WORDS, Storage, TablePool, UNLIMITED_BYTES, WORD, unlimited_bytes};
use crate::error::Refusal;
use crate::sync::{AtomicU64, Ordering, ord, yield_now};
use crate::tuning::{MAX_CHUNK, MIN_CHUNK};

/// Spare pieces are joined when the words given back since the last join exceed this part: of the reserved words, before the range grows; of the
/// limit, before a request is refused.
const FRESH_PART: u64 = 64;

/// The number of times that a thread that finds no room looks again, while other threads hold pieces that they will put back.
const HELD_LOOKS: u32 = 8;

/// Words that are left to the index for each pending entry: 32 bytes. The index needs 7 to 12 bytes for each entry in most orders of keys, and up to
/// 30 in the worst order that was measured.
pub(crate) const INDEX_WORDS: u64 = 4;

/// The number of words of the smallest entry.
const ENTRY_WORDS: u64 = 3;

/// If fewer words than this are left for each pending entry, the index makes a block only where many nodes have no hint (`hint.rs`). Some orders of
/// keys leave blocks almost empty; with this rule they cannot use up the words that the rest of a batch needs.
const SCARCE_WORDS: u64 = 3;

const _: () =
    assert!(SCARCE_WORDS <= ENTRY_WORDS && INDEX_WORDS <= 2 * ENTRY_WORDS, "as `is_scarce` and `left` expect");

/// The maximum number of bytes of a range: 32 GiB, or just less than 2 GiB on 32-bit targets.
const MOST_BYTES: usize = if usize::BITS > 32 { MAX_WORDS as usize * WORD } else { (2 << 30) - (64 << 10) };

/// The only part of the list's state for each shard that the arena needs.
pub(crate) trait Pending {
    /// The number of entries that were announced and are not linked yet.
    fn pending(&self) -> u64;
}

/// For tests and models, which have no state of a list.
impl Pending for () {
    fn pending(&self) -> u64 {
        0
    }
}

/// The source of the words of a block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockSource {
    pub(crate) shard: usize,
    /// Whether many nodes have no hint: then the block may take [scarce](SCARCE_WORDS) words.
    pub(crate) is_due: bool,
}

/// The layout of an arena.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    /// The number of shards, at least 1.
    pub(crate) shards: usize,
    /// The size of a shard's first chunk, in bytes.
    pub(crate) chunk_bytes: usize,
    /// The limit on used memory, in bytes; 0 means none.
    pub(crate) max_memory_bytes: usize,
    /// The expected memory use of the table, in bytes; 0 means unknown.
    pub(crate) size_hint: usize,
    /// Whether to ask the system for huge pages.
    pub(crate) huge_pages: bool,
    /// The number of words at the front that the caller lays out; they are not counted as used.
    pub(crate) head_words: u32,
    /// The budget that this arena shares with others.
    pub(crate) budget: Option<MemoryBudget>,
}

impl Layout {
    /// For a range of `words`: the number of words behind the head, and the number of those within the limit.
    fn bounds(&self, words: u64) -> (u64, u64) {
        let capacity = words.min(MAX_WORDS - 1) - u64::from(self.head_words);
        match self.max_memory_bytes {
            0 => (capacity, capacity),
            bytes => (capacity, capacity.min(bytes.div_ceil(WORD) as u64)),
        }
    }

    /// The limit, plus half of it for pieces that were given back and are not used yet, plus up to a mebibyte for the one entry that may exceed the
    /// limit. On Windows the limit itself.
    fn range_bytes(&self, unlimited: usize) -> usize {
        match self.max_memory_bytes {
            0 => unlimited.max(self.chunk_bytes.min(MOST_BYTES)),
            bytes if cfg!(windows) => bytes.min(MOST_BYTES),
            bytes => bytes.saturating_add(bytes / 2).saturating_add(bytes.min(1 << 20)).min(MOST_BYTES),
        }
    }

    /// The smallest range that could work.
    fn least_bytes(&self) -> usize {
        self.head_words as usize * WORD + self.chunk_bytes.clamp(MIN_CHUNK as usize * WORD, 1 << 20)
    }

    /// The [`bounds`](Self::bounds) of the range that a table gets if no request is refused.
    pub(crate) fn whole(&self) -> (u64, u64) {
        self.bounds((self.range_bytes(UNLIMITED_BYTES).max(self.least_bytes()) / WORD) as u64)
    }
}

/// The state of one shard, on its own cache lines.
#[derive(Debug, Default)]
struct Shard<T> {
    chunk: AtomicU64,
    /// The chunk for blocks of the index; it is separate from nodes, so that blocks are aligned and adjacent.
    blocks: AtomicU64,
    /// The number of words of blocks in use.
    index: AtomicU64,
    wasted: AtomicU64,
    /// The list's state for the shard.
    upper: T,
}

/// The figures of the arena at one moment, in words.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Usage {
    pub(crate) reserved: u64,
    pub(crate) idle: u64,
    pub(crate) wasted: u64,
    /// The words of the index's blocks.
    pub(crate) index: u64,
}

impl Usage {
    /// The number of words that hold nodes or blocks, or were lost between them. The subtraction saturates, because the shards are read one after the
    /// other: words that are meanwhile given back to another shard can be counted as idle twice.
    pub(crate) fn used(&self) -> u64 {
        self.reserved.saturating_sub(self.idle)
    }
}

/// The arena of one table. `T` is the list's state for each shard, on the same cache lines.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    pub(crate) storage: Storage,
    layout: Layout,
    /// The offset of the first word that is handed out.
    first: u64,
    /// The maximum number of allocated words, without and with the one entry that may exceed the limit. The configured limit, unless the range is
    /// smaller.
    pub(crate) limit: u64,
    capacity: u64,
    extent: ExtentWord,
    spares: Spares,
    shards: Box<[CachePadded<Shard<T>>]>,
}

impl<T: Default> Arena<T> {
    /// Takes the range from the pool, or reserves it.
    ///
    /// # Errors
    /// Returns an error if the system refuses even the smallest range that could work.
    pub(crate) fn new(mut layout: Layout, pool: Option<&TablePool>) -> Result<Self, Refusal> {
        if layout.size_hint != 0 {
            layout.chunk_bytes = layout.chunk_bytes.min(layout.size_hint / (4 * layout.shards));
        }
        let first = u64::from(layout.head_words);
        let bytes = layout.range_bytes(unlimited_bytes());
        let storage = Storage::reserve(bytes, layout.least_bytes(), layout.huge_pages, pool)?;
        let (capacity, limit) = layout.bounds(storage.words());
        let shards = (0..layout.shards).map(|_| CachePadded::default()).collect();
        let extent = ExtentWord::new(layout.head_words, layout.budget.clone());
        storage.poison(0, layout.head_words);
        Ok(Self { storage, layout, first, limit, capacity, extent, spares: Spares::new(), shards })
    }

    /// Frees every allocation, and resets the counters.
    pub(crate) fn reset(&mut self) {
        self.storage.set_used(self.extent.highest());
        self.shards = (0..self.layout.shards).map(|_| CachePadded::default()).collect();
        self.extent = ExtentWord::new(self.layout.head_words, self.layout.budget.clone());
        self.spares = Spares::new();
    }
}

impl<T: Pending> Arena<T> {
    pub(crate) fn shard(&self, shard: usize) -> &T {
        &self.shards[shard].upper
    }

    pub(crate) fn shards(&self) -> impl Iterator<Item = &T> + Clone {
        self.shards.iter().map(|shard| &shard.upper)
    }

    /// Whether an empty table with this layout could hold `words`, all but the last `tail` of them within the limit. This table may have a smaller
    /// range than another table would get.
    pub(crate) fn could_hold(&self, words: u64, tail: u64) -> bool {
        let (capacity, limit) = self.layout.whole();
        words <= capacity.max(self.capacity).min(self.budget_words()) && words - tail < limit.max(self.limit)
    }

    /// The words of the limit or of the budget, whichever is less.
    pub(crate) fn most_words(&self) -> u64 {
        self.limit.min(self.budget_words())
    }

    /// The words of the empty budget.
    fn budget_words(&self) -> u64 {
        self.layout.budget.as_ref().map_or(u64::MAX, MemoryBudget::most_words)
    }

    /// Whether the table's own limit has fewer than `words` left.
    pub(crate) fn is_own_limit_short(&self, words: u64) -> bool {
        self.left(self.extent.load(), words, 0) < words
    }

    /// Whether the budget has fewer than `words` left.
    fn is_budget_short(&self, words: u64) -> bool {
        self.extent.budget_left() < words
    }

    /// Whether the range is smaller than the size that the layout requests.
    pub(crate) fn is_short(&self) -> bool {
        self.capacity < self.layout.whole().0
    }

    /// Allocates `words` in one piece, all but the last `tail` of them within the limit. Returns `None` if that is not possible.
    #[inline]
    pub(crate) fn alloc(&self, shard: usize, words: u32, tail: u32) -> Option<u32> {
        let off = match Chunk::bump(&self.shards[shard].chunk, words) {
            Ok(off) => off,
            Err(short) => self.alloc_past(shard, short, words, tail)?,
        };
        self.storage.poison(off, words);
        Some(off)
    }

    /// Allocates `words` for a block of the index, within the limit and at a multiple of 8. Returns `None` if that is not possible.
    pub(crate) fn alloc_block(&self, source: BlockSource, words: u32) -> Option<u32> {
        let shard = &self.shards[source.shard % self.shards.len()];
        let off = match Chunk::bump(&shard.blocks, words) {
            Ok(off) => off,
            Err(_) if !source.is_due && self.is_scarce() => return None,
            Err(short) => match self.refill_blocks(shard, short, words) {
                Some(off) => off,
                None => self.last_block(words)?,
            },
        };
        shard.index.fetch_add(words.into(), Ordering::Relaxed);
        Some(off)
    }

    /// Gives `shard` a new chunk for blocks, and takes a block of `words` from it.
    #[cold]
    fn refill_blocks(&self, shard: &Shard<T>, short: Chunk, words: u32) -> Option<u32> {
        let block = u64::from(words);
        let wish = (self.chunk_words() / 64).min(self.extent.budget_left()).next_multiple_of(block).max(block);
        let claimed = !short.is_refilling() && Chunk::claim(&shard.blocks, short, Chunk::refilling(wish + 7));
        let wish = if claimed { wish } else { block };
        let skipped = |extent: Extent| u64::from(extent.frontier).next_multiple_of(8) - u64::from(extent.frontier);
        let piece = self.grow(0, |extent| {
            let room = self.left(extent, 0, 0).checked_sub(skipped(extent)).filter(|room| *room >= block)?;
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

    /// Takes a block from the rest of any shard's chunk, when the range has no more words below the limit. Nodes are then allocated from there too.
    #[cold]
    fn last_block(&self, words: u32) -> Option<u32> {
        let spare = self.shards.iter().find_map(|shard| Chunk::bump(&shard.blocks, words).ok());
        spare.or_else(|| {
            let bump = |shard: &CachePadded<Shard<T>>| Chunk::bump(&shard.chunk, words + 7).ok();
            let piece = self.shards.iter().find_map(bump).or_else(|| self.extend_by(words + 7, 0))?;
            self.count_waste(0, 7);
            Some(piece.next_multiple_of(8))
        })
    }

    /// Whether the index has little room for the entries that are to be linked, whichever threads hold their words now.
    fn is_scarce(&self) -> bool {
        2 * u64::from(self.extent.load().reserved) > self.most_words()
            && self.usage().used() + SCARCE_WORDS * self.pending() > self.most_words()
    }

    /// Whether nodes that were just allocated have left enough room for the index; their last `tail` words may exceed the limit. Nodes that lie in a
    /// shard's chunk were allocated without this check.
    #[cold]
    pub(crate) fn has_index_room(&self, tail: u64) -> bool {
        self.left(self.extent.load(), 0, INDEX_WORDS) > 0
            || self.usage().used() + INDEX_WORDS * self.pending() < self.limit + tail
    }

    /// The number of entries that are announced and not linked yet.
    fn pending(&self) -> u64 {
        // Acquires the announcements of all threads whose words the extent counts: of two large reservations, the later leaves room for the index of
        // both.
        let _ = self.extent.load();
        self.shards.iter().map(|shard| shard.upper.pending()).sum()
    }

    /// Counts as waste a block that was replaced or never used.
    pub(crate) fn waste_block(&self, shard: usize, words: u32) {
        let shard = &self.shards[shard % self.shards.len()];
        shard.wasted.fetch_add(words.into(), Ordering::Relaxed);
        // The sum over all shards is right, whichever shard has allocated the block.
        shard.index.fetch_sub(words.into(), Ordering::Relaxed);
    }

    #[cold]
    fn alloc_past(&self, shard: usize, short: Chunk, words: u32, tail: u32) -> Option<u32> {
        let size = self.chunk_words();
        let found = if u64::from(words) > size / 4 || short.is_refilling() {
            self.extend_by(words, INDEX_WORDS)
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
        let wish = self.share(self.extent.load(), words.into(), size, INDEX_WORDS).unwrap_or(words.into());
        let spare = self.spare(words);
        if let Some(spare) = spare.filter(|spare| u64::from(spare.room()) < wish) {
            // The spare piece is too small for a chunk: the rest of the present chunk would be wasted, and soon that of the next chunk.
            return Some(self.cut(spare, words, words.into(), INDEX_WORDS)?.next);
        }
        if !Chunk::claim(&shard.chunk, short, Chunk::refilling(wish)) {
            if let Some(spare) = spare {
                self.spares.put_rest(&self.storage, spare);
            }
            // The shard has changed meanwhile: it may have room now, or another thread may be refilling it.
            return match Chunk::bump(&shard.chunk, words) {
                Ok(off) => Some(off),
                Err(_) => self.extend_by(words, INDEX_WORDS),
            };
        }
        let Some(piece) = self.cut_or_grow(spare, words, wish, INDEX_WORDS) else {
            // A swap instead of a store: so a thread that acquires this chunk still acquires everything that was released with the old one.
            shard.chunk.swap(short.pack(), Ordering::Relaxed);
            return None;
        };
        // The range often grows directly after the old chunk; then the rest of the old chunk is not wasted.
        let begin = if short.end == piece.next {
            short.next
        } else {
            shard.wasted.fetch_add(short.room().into(), Ordering::Relaxed);
            piece.next
        };
        // ORDERING(arena.chunk): Release; pairs with `usage`. Weaker: a reader could count words as idle before it counts them as reserved.
        shard.chunk.store(Chunk { next: begin + words, end: piece.end }.pack(), ord("arena.chunk", Ordering::Release));
        Some(begin)
    }

    /// The size of a shard's next chunk grows with the table, so a small table has little idle memory and a large table has few refills.
    fn chunk_words(&self) -> u64 {
        let reserved = u64::from(self.extent.load().reserved);
        let first = (self.layout.chunk_bytes as u64 / WORD as u64).max(MIN_CHUNK);
        (reserved / (8 * self.shards.len() as u64)).clamp(first, first.max(MAX_CHUNK))
    }

    /// The words left below the limit and in the budget for a request of `words`, if `each` words are left for every pending entry. If that is 0, the
    /// request is for the index, which the budget does not refuse: other tables may have taken the words that were left for it.
    fn left(&self, extent: Extent, words: u64, each: u64) -> u64 {
        let reserved = u64::from(extent.reserved);
        let left = self.limit.saturating_sub(reserved);
        let left = if each == 0 { left } else { left.min(self.extent.budget_left()) };
        // Pending entries already have words for their nodes. While far more words are left, the pending entries need not be counted.
        if each == 0 || words + 2 * (reserved + words) <= left {
            left
        } else {
            left.saturating_sub(each * self.pending())
        }
    }

    /// The number of words to take at once if the caller wants about `wish` and needs at least `words`; it becomes smaller towards the limit. Leaves
    /// `each` words for every pending entry.
    fn share(&self, extent: Extent, words: u64, wish: u64, each: u64) -> Option<u64> {
        let left = Some(self.left(extent, words, each)).filter(|left| *left >= words)?;
        let share = (left / (2 * self.shards.len() as u64)).clamp(MIN_CHUNK, wish.max(MIN_CHUNK));
        Some(if wish == words { words } else { share.min(left).max(words) })
    }

    /// Takes exactly `words`, from a spare piece or from the range, within the limit. Leaves `each` words below the limit for every pending entry.
    fn extend_by(&self, words: u32, each: u64) -> Option<u32> {
        Some(self.cut_or_grow(self.spare(words), words, words.into(), each)?.next)
    }

    /// Takes about `wish` and at least `words` from `spare` or else from the range; takes fewer towards the limit.
    fn cut_or_grow(&self, spare: Option<Chunk>, words: u32, wish: u64, each: u64) -> Option<Chunk> {
        match spare {
            Some(spare) => self.cut(spare, words, wish, each),
            None => self.grow(each, |extent| self.share(extent, words.into(), wish, each)),
        }
    }

    /// Finds a spare piece of at least `words`.
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

    /// Takes about `wish` and at least `words` from `spare`; takes fewer towards the limit, and none beyond it. The rest stays a spare piece.
    fn cut(&self, spare: Chunk, words: u32, wish: u64, each: u64) -> Option<Chunk> {
        let granted = self.extent.change(each == 0, |extent| {
            let share = self.share(extent, words.into(), wish, each)?.min(spare.room().into());
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

    /// Takes back the rest of all chunks, if these rests and the words left below the limit are enough for `words`; the last `tail` of these may
    /// exceed the limit. Then allocates them.
    #[cold]
    fn take_back_for(&self, words: u32, tail: u32) -> Option<u32> {
        let usage = self.usage();
        if usage.used() + u64::from(words - tail) + INDEX_WORDS * self.pending() >= self.limit
            || self.is_budget_short(u64::from(words).saturating_sub(usage.idle))
        {
            return None;
        }
        for chunk in self.shards.iter().map(|shard| &shard.chunk) {
            let rest @ Chunk { end, .. } = Chunk::unpack(chunk.load(Ordering::Relaxed));
            // The rest of the chunk becomes a spare piece. The mark ensures that readers of the statistics see either the rest or its return.
            if rest.room() != 0 && Chunk::claim(chunk, rest, Chunk::refilling(rest.room().into())) {
                self.free(rest);
                // ORDERING(arena.chunk): Release; as in `refill`: a thread that sees the chunk empty also sees that its rest is no longer reserved.
                chunk.store(Chunk { next: end, end }.pack(), ord("arena.chunk", Ordering::Release));
            }
        }
        // Only the last `tail` words may exceed the limit. If any word exceeds the limit, nothing is allocated afterwards.
        let past_limit = |extent: Extent| {
            let within = u64::from(extent.reserved) + u64::from(words - tail) + INDEX_WORDS * self.pending();
            (within < self.limit && !self.is_budget_short(words.into())).then_some(words.into())
        };
        for _ in 0..HELD_LOOKS {
            let exact = self.cut_or_grow(self.spare(words), words, words.into(), INDEX_WORDS);
            if let Some(piece) = exact.or_else(|| self.grow(INDEX_WORDS, past_limit)) {
                return Some(piece.next);
            }
            // There is room below the limit, but not in one piece, or the limited search of a bin did not find it.
            if self.spares.fresh() > self.limit / FRESH_PART {
                self.join_spares();
            }
            if let Some(spare) = self.spares.take_any(&self.storage, words) {
                return Some(self.cut(spare, words, words.into(), INDEX_WORDS)?.next);
            }
            if !self.spares.are_held() {
                break;
            }
            // Another thread may have just taken the needed piece to examine it.
            yield_now();
        }
        None
    }

    /// Frees a piece that was allocated but never written to.
    fn free(&self, piece: Chunk) {
        if !self.extent.give_back(piece.room(), Some(piece.end)) {
            self.spares.put(&self.storage, piece);
        }
    }

    /// Moves the frontier forward by the number of words that `words` returns for the extent. Returns the words that the frontier has passed. An
    /// allocation of nodes leaves words for the index (`each`), and also leaves addresses: half as many as there are words below the limit. Nodes can
    /// fill the pieces that were given back; blocks are often too large for them.
    fn grow(&self, each: u64, words: impl Fn(Extent) -> Option<u64>) -> Option<Chunk> {
        let grown = |extent: Extent| {
            let grown = extent.grown(words(extent)?)?;
            let to_blocks = if each == 0 { 0 } else { self.left(grown, 0, 0) / 2 };
            (u64::from(grown.frontier) + to_blocks <= self.first + self.capacity).then_some(grown)
        };
        let (was, is) = self.extent.change(each == 0, grown)?;
        Some(Chunk { next: was.frontier, end: is.frontier })
    }

    /// Whether the limit is exceeded: then nothing is allocated any more.
    pub(crate) fn is_passed(&self) -> bool {
        u64::from(self.extent.load().reserved) > self.limit
    }

    /// Gives back the words from `start` to `end`, which were allocated for this shard and not written to.
    pub(crate) fn give_back(&self, shard: usize, start: u32, end: u32) {
        let chunk = &self.shards[shard].chunk;
        if self.is_passed() || !Chunk::unbump(chunk, start, end) {
            self.free(Chunk { next: start, end });
        }
    }

    /// Counts words that were allocated in vain.
    pub(crate) fn count_waste(&self, shard: usize, words: u32) {
        self.shards[shard].wasted.fetch_add(words.into(), Ordering::Relaxed);
    }

    /// The number of allocated words, and the idle and wasted words among them. `reserved - idle` is never too small: idle words were allocated
    /// before, and `reserved` is read last. Words that are given back meanwhile count as if they were still allocated.
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

    /// Whether `part` of the limit is certainly used: words that a shard is just fetching count as idle. For a table without a limit, the limit is
    /// the size of its range.
    pub(crate) fn uses_part(&self, part: f64) -> bool {
        let part = self.limit as f64 * part;
        // Rounded up, which `core` has no function for.
        let words = part as u64 + u64::from((part as u64 as f64) < part);
        let returned = self.extent.returned();
        let mut used = u64::from(self.extent.load().reserved);
        for chunk in self.shards.iter().flat_map(|shard| [&shard.chunk, &shard.blocks]) {
            if used < words {
                return false;
            }
            // ORDERING(arena.chunk.read): Acquire; pairs with `take_back_for`, see there.
            let chunk = Chunk::unpack(chunk.load(ord("arena.chunk.read", Ordering::Acquire)));
            // For a shard that is being refilled, the most words that it may get.
            let room = if chunk.is_refilling() { chunk.next } else { chunk.room() };
            used = used.saturating_sub(room.into());
        }
        // Words that were given back meanwhile may have been counted as used.
        used >= words && self.extent.returned() == returned
    }
}

impl<T> Drop for Arena<T> {
    fn drop(&mut self) {
        self.storage.set_used(self.extent.highest());
    }
}

#[cfg(test)]
mod tests;
