//! Allocates the words of one reserved range for any number of threads.
//!
//! A shard takes a chunk from the range, and its threads bump nodes off the chunk; so threads on different shards share no
//! cache line. Any number of threads may use one shard: the chunk is one word {next free, end}, which they move by CAS. A
//! thread that finds the chunk too small installs a REFILLING mark and fetches the next chunk; threads that see the mark
//! allocate directly from the range. So no thread waits, and no chunk is lost.
//!
//! Chunks shrink towards the limit on memory. If an allocation finds too little within the limit, it takes back the rest of the chunks of all
//! shards, which become spare pieces (`spares.rs`). So the limit applies to used memory. When even that is too little, one allocation may exceed
//! the limit. It finds all chunks empty, and nothing else is allocated until it is given back.
//!
//! Blocks of the index take their words from the same limit, when entries are linked. So an allocation of nodes leaves what the index needs for the
//! entries that have words and are not linked yet ([`Pending`]): however much of the limit is reserved at once, applying it finds room for blocks.
//!
//! A reservation that gives memory back returns it to its origin: to the chunk if that continues directly after it, to the range if that does, or
//! else to the spare pieces, which are allocated before the range grows. Neighbouring pieces are joined when enough words have come since the last
//! time. A join sorts all pieces; the part that is not joined yet is a small part of the limit.
//!
//! I6 accounting: reserved = used + idle, and used = sizes of linked nodes and of blocks + waste. Checked by `validate`.
//! I8 lifetime: nothing is unmapped before the arena is dropped, and nothing that was written is handed out again before it is
//! reset, through `&mut`.
//!
//! Dividing the range needs little ordering: a read-modify-write always sees the latest value of its word, so no two allocations overlap, and links
//! publish the written contents. The orderings here are for readers of the figures, and for threads that receive words of a former spare piece,
//! whose first word was written.

use std::io;

use crossbeam_utils::CachePadded;

use super::chunk::{Chunk, Extent, ExtentWord};
use super::spares::Spares;
use super::storage::{MAX_WORDS, Storage, TablePool, UNLIMITED_BYTES, WORD, unlimited_bytes};
use crate::sync::{AtomicU64, Ordering, ord, yield_now};
use crate::tuning::{MAX_CHUNK, MIN_CHUNK};

/// Spare pieces are joined when the words that came since the last time are one part in this many: of the reserved words, before the range grows;
/// of the limit, before a request is refused.
const FRESH_PART: u64 = 64;

/// The number of further looks of a thread that finds no room, while other threads hold pieces that they will put back.
const HELD_LOOKS: u32 = 8;

/// Words that are left to the index for each pending entry: 32 bytes. It needs 7 to 12 bytes in most orders of keys, and up to 30 in the worst that
/// were measured.
pub(crate) const INDEX_WORDS: u64 = 4;

/// The smallest entry.
const ENTRY_WORDS: u64 = 3;

/// While it has fewer words for each pending entry, the index makes a block only where many nodes have no hint (`hint.rs`). Some orders of keys leave
/// blocks almost empty; this way they cannot use up what the rest of a batch needs.
const SCARCE_WORDS: u64 = 3;

const _: () =
    assert!(SCARCE_WORDS <= ENTRY_WORDS && INDEX_WORDS <= 2 * ENTRY_WORDS, "as `is_scarce` and `left` expect");

/// The figure that the arena needs of the state that the layers above keep for each shard.
pub(crate) trait Pending {
    /// The number of entries that were announced and are not linked yet.
    fn pending(&self) -> u64;
}

/// Of tests and models, which have no such state.
impl Pending for () {
    fn pending(&self) -> u64 {
        0
    }
}

/// Where the words of a block come from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BlockSource {
    pub(crate) shard: usize,
    /// Whether many nodes have no hint: then they may be [scarce](SCARCE_WORDS) words.
    pub(crate) is_due: bool,
}

/// The layout of an arena.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Layout {
    /// Shards, at least 1.
    pub(crate) shards: usize,
    /// Size of a shard's first chunk, in bytes.
    pub(crate) chunk_bytes: usize,
    /// Limit on the memory used; 0 means none.
    pub(crate) max_memory_bytes: usize,
    /// The expected memory use of the table, in bytes; 0 means unknown.
    pub(crate) size_hint: usize,
    /// Whether to ask for huge pages.
    pub(crate) huge_pages: bool,
    /// Words at the front that the caller lays out, and that are not counted.
    pub(crate) head_words: u32,
}

impl Layout {
    /// The words behind the head of a range of `words`, and those within the limit.
    fn bounds(&self, words: u64) -> (u64, u64) {
        let capacity = words.min(MAX_WORDS - 1) - u64::from(self.head_words);
        match self.max_memory_bytes {
            0 => (capacity, capacity),
            bytes => (capacity, capacity.min(bytes.div_ceil(WORD) as u64)),
        }
    }

    /// The limit; half of it more, because pieces that came back and are not used yet have addresses too; and up to a mebibyte for the one entry
    /// that may exceed it. On Windows the limit itself.
    fn range_bytes(&self, unlimited: usize) -> usize {
        let most = MAX_WORDS as usize * WORD;
        match self.max_memory_bytes {
            0 => unlimited.max(self.chunk_bytes.min(most)),
            bytes if cfg!(windows) => bytes.min(most),
            bytes => bytes.saturating_add(bytes / 2).saturating_add(bytes.min(1 << 20)).min(most),
        }
    }

    /// The smallest range that could work.
    fn least_bytes(&self) -> usize {
        self.head_words as usize * WORD + self.chunk_bytes.clamp(MIN_CHUNK as usize * WORD, 1 << 20)
    }

    /// [`bounds`](Self::bounds) of the range that a table gets if nobody refuses it.
    pub(crate) fn whole(&self) -> (u64, u64) {
        self.bounds((self.range_bytes(UNLIMITED_BYTES).max(self.least_bytes()) / WORD) as u64)
    }
}

/// The state of one shard, on its own cache lines.
#[derive(Debug, Default)]
struct Shard<T> {
    chunk: AtomicU64,
    /// The chunk for blocks of the index, separate from nodes, so that blocks are aligned and lie close together.
    blocks: AtomicU64,
    /// Words of blocks in use.
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
    /// Words of the index's blocks.
    pub(crate) index: u64,
}

impl Usage {
    /// Words that hold nodes or blocks, or were lost between them. The subtraction saturates, because the shards are read one after the other: words
    /// that are meanwhile given back to a shard other than their own can be counted as idle twice.
    pub(crate) fn used(&self) -> u64 {
        self.reserved.saturating_sub(self.idle)
    }
}

/// The arena of one table. `T` is the list's state for each shard, on the same cache lines.
#[derive(Debug)]
pub(crate) struct Arena<T> {
    pub(crate) storage: Storage,
    layout: Layout,
    /// The first word that is handed out.
    first: u64,
    /// The maximum number of allocated words, without and with the one entry that may exceed the limit: the configured one, unless the range is
    /// smaller.
    pub(crate) limit: u64,
    capacity: u64,
    extent: ExtentWord,
    spares: Spares,
    shards: Box<[CachePadded<Shard<T>>]>,
}

impl<T: Default> Arena<T> {
    /// Reserves the range, or takes it from the pool.
    ///
    /// # Errors
    /// The system refuses even the smallest range that could work.
    pub(crate) fn new(mut layout: Layout, pool: Option<&TablePool>) -> io::Result<Self> {
        if layout.size_hint != 0 {
            layout.chunk_bytes = layout.chunk_bytes.min(layout.size_hint / (4 * layout.shards));
        }
        let first = u64::from(layout.head_words);
        let bytes = layout.range_bytes(unlimited_bytes());
        let storage = Storage::reserve(bytes, layout.least_bytes(), layout.huge_pages, pool)?;
        let (capacity, limit) = layout.bounds(storage.words());
        let shards = (0..layout.shards).map(|_| CachePadded::default()).collect();
        let extent = ExtentWord::new(layout.head_words);
        storage.poison(0, layout.head_words);
        Ok(Self { storage, layout, first, limit, capacity, extent, spares: Spares::new(), shards })
    }

    /// Forgets every allocation, and resets the counters.
    pub(crate) fn reset(&mut self) {
        self.storage.set_used(self.extent.highest());
        self.shards = (0..self.layout.shards).map(|_| CachePadded::default()).collect();
        self.extent = ExtentWord::new(self.layout.head_words);
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

    /// Whether an empty table with this layout could hold `words`, all but the last `tail` of them within the limit. This one has perhaps got a
    /// smaller range than another would.
    pub(crate) fn could_hold(&self, words: u64, tail: u64) -> bool {
        let (capacity, limit) = self.layout.whole();
        words <= capacity.max(self.capacity) && words - tail < limit.max(self.limit)
    }

    /// Whether the range is smaller than the layout asks for.
    pub(crate) fn is_short(&self) -> bool {
        self.capacity < self.layout.whole().0
    }

    /// Allocates `words` in one piece, all but the last `tail` of them within the limit. `None` if that is not possible.
    #[inline]
    pub(crate) fn alloc(&self, shard: usize, words: u32, tail: u32) -> Option<u32> {
        let off = match Chunk::bump(&self.shards[shard].chunk, words) {
            Ok(off) => off,
            Err(short) => self.alloc_past(shard, short, words, tail)?,
        };
        self.storage.poison(off, words);
        Some(off)
    }

    /// Allocates `words` for a block of the index, within the limit and at a multiple of 8. `None` if that is not possible.
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

    /// Gives `shard` a new chunk of blocks, and takes one of `words` from it.
    #[cold]
    fn refill_blocks(&self, shard: &Shard<T>, short: Chunk, words: u32) -> Option<u32> {
        let block = u64::from(words);
        let wish = (self.chunk_words() / 64).next_multiple_of(block).max(block);
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

    /// A block from the rest of any shard's chunk, when the range has no more below the limit. Nodes are then taken from there too.
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

    /// Whether the index has little room for the entries that are to be linked, whoever has the words now.
    fn is_scarce(&self) -> bool {
        2 * u64::from(self.extent.load().reserved) > self.limit
            && self.usage().used() + SCARCE_WORDS * self.pending() > self.limit
    }

    /// Whether nodes that were just allocated, of which the last `tail` words may exceed the limit, have left room to the index. Those that lie in the
    /// chunk of a shard were allocated without a look at that.
    #[cold]
    pub(crate) fn has_index_room(&self, tail: u64) -> bool {
        self.left(self.extent.load(), 0, INDEX_WORDS) > 0
            || self.usage().used() + INDEX_WORDS * self.pending() < self.limit + tail
    }

    /// The number of entries that are announced and not linked yet.
    fn pending(&self) -> u64 {
        // Acquires what the threads announced before that took the words which the extent counts: of two large reservations, the later one leaves
        // room for the index of both.
        let _ = self.extent.load();
        self.shards.iter().map(|shard| shard.upper.pending()).sum()
    }

    /// Counts a replaced or never used block as waste.
    pub(crate) fn waste_block(&self, shard: usize, words: u32) {
        let shard = &self.shards[shard % self.shards.len()];
        shard.wasted.fetch_add(words.into(), Ordering::Relaxed);
        // The sum over all shards is right, whichever shard had allocated it.
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
            // Too small for a chunk: the rest of the present chunk would be wasted, and soon that of the next.
            return Some(self.cut(spare, words, words.into(), INDEX_WORDS)?.next);
        }
        if !Chunk::claim(&shard.chunk, short, Chunk::refilling(wish)) {
            if let Some(spare) = spare {
                self.spares.put_rest(&self.storage, spare);
            }
            // The shard changed meanwhile: it may have room, or another thread may be refilling it.
            return match Chunk::bump(&shard.chunk, words) {
                Ok(off) => Some(off),
                Err(_) => self.extend_by(words, INDEX_WORDS),
            };
        }
        let Some(piece) = self.cut_or_grow(spare, words, wish, INDEX_WORDS) else {
            // A swap and not a store, so that everything released with the chunk is still acquired with it.
            shard.chunk.swap(short.pack(), Ordering::Relaxed);
            return None;
        };
        // The range often grows directly after the old chunk; then its rest is not wasted.
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

    /// A shard's share grows with the table, so that a small table has little idle memory and a large one few refills.
    fn chunk_words(&self) -> u64 {
        let reserved = u64::from(self.extent.load().reserved);
        let first = (self.layout.chunk_bytes as u64 / WORD as u64).max(MIN_CHUNK);
        (reserved / (8 * self.shards.len() as u64)).clamp(first, first.max(MAX_CHUNK))
    }

    /// Words left below the limit for a request of `words` that leaves `each` for every pending entry.
    fn left(&self, extent: Extent, words: u64, each: u64) -> u64 {
        let reserved = u64::from(extent.reserved);
        let left = self.limit.saturating_sub(reserved);
        // Pending entries have words themselves. While far more is left, they need not be counted.
        if each == 0 || words + 2 * (reserved + words) <= left {
            left
        } else {
            left.saturating_sub(each * self.pending())
        }
    }

    /// The number of words to take at once, if about `wish` are wanted and at least `words`: less towards the limit. Leaves `each` for every pending
    /// entry.
    fn share(&self, extent: Extent, words: u64, wish: u64, each: u64) -> Option<u64> {
        let left = Some(self.left(extent, words, each)).filter(|left| *left >= words)?;
        let share = (left / (2 * self.shards.len() as u64)).clamp(MIN_CHUNK, wish.max(MIN_CHUNK));
        Some(if wish == words { words } else { share.min(left).max(words) })
    }

    /// Takes exactly `words`, from a spare piece or from the range, and nothing beyond the limit less `each` for every pending entry.
    fn extend_by(&self, words: u32, each: u64) -> Option<u32> {
        Some(self.cut_or_grow(self.spare(words), words, words.into(), each)?.next)
    }

    /// Takes about `wish` and at least `words`, less towards the limit: of `spare`, or else of the range.
    fn cut_or_grow(&self, spare: Option<Chunk>, words: u32, wish: u64, each: u64) -> Option<Chunk> {
        match spare {
            Some(spare) => self.cut(spare, words, wish, each),
            None => self.grow(each, |extent| self.share(extent, words.into(), wish, each)),
        }
    }

    /// A spare piece of at least `words`.
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

    /// Takes about `wish` and at least `words` of `spare`, less towards the limit, and nothing beyond it. The rest stays a spare piece.
    fn cut(&self, spare: Chunk, words: u32, wish: u64, each: u64) -> Option<Chunk> {
        let granted = self.extent.change(|extent| {
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

    /// Takes back the rest of all chunks, if that and the words left below the limit are enough for `words`, of which the last `tail` may exceed
    /// it; then allocates them.
    #[cold]
    fn take_back_for(&self, words: u32, tail: u32) -> Option<u32> {
        if self.usage().used() + u64::from(words - tail) + INDEX_WORDS * self.pending() >= self.limit {
            return None;
        }
        for chunk in self.shards.iter().map(|shard| &shard.chunk) {
            let rest @ Chunk { end, .. } = Chunk::unpack(chunk.load(Ordering::Relaxed));
            // The rest becomes a spare piece. The mark ensures that readers of the figures see the rest or its return.
            if rest.room() != 0 && Chunk::claim(chunk, rest, Chunk::refilling(rest.room().into())) {
                self.free(rest);
                // ORDERING(arena.chunk): Release; as in `refill`: a thread that sees the chunk empty also sees that its rest is not reserved.
                chunk.store(Chunk { next: end, end }.pack(), ord("arena.chunk", Ordering::Release));
            }
        }
        // Only the last `tail` words may exceed the limit. If any does, nothing is allocated afterwards.
        let past_limit = |extent: Extent| {
            let within = u64::from(extent.reserved) + u64::from(words - tail) + INDEX_WORDS * self.pending();
            (within < self.limit).then_some(words.into())
        };
        for _ in 0..HELD_LOOKS {
            let exact = self.cut_or_grow(self.spare(words), words, words.into(), INDEX_WORDS);
            if let Some(piece) = exact.or_else(|| self.grow(INDEX_WORDS, past_limit)) {
                return Some(piece.next);
            }
            // There is room below the limit, but not in one piece, or not where a few looks find it.
            if self.spares.fresh() > self.limit / FRESH_PART {
                self.join_spares();
            }
            if let Some(spare) = self.spares.take_any(&self.storage, words) {
                return Some(self.cut(spare, words, words.into(), INDEX_WORDS)?.next);
            }
            if !self.spares.are_held() {
                break;
            }
            // Another thread may have just taken the needed piece to look at it.
            yield_now();
        }
        None
    }

    /// Frees a piece that was allocated and never written to.
    fn free(&self, piece: Chunk) {
        if !self.extent.give_back(piece.room(), Some(piece.end)) {
            self.spares.put(&self.storage, piece);
        }
    }

    /// Moves the frontier by the number of words that `words` returns for the extent. Returns the words in between. Nodes, which leave something to
    /// the index (`each`), leave addresses too: as many as half of the words below the limit. Nodes may fill the pieces that came back, blocks are
    /// often too large for them.
    fn grow(&self, each: u64, words: impl Fn(Extent) -> Option<u64>) -> Option<Chunk> {
        let grown = |extent: Extent| {
            let grown = extent.grown(words(extent)?)?;
            let to_blocks = if each == 0 { 0 } else { self.left(grown, 0, 0) / 2 };
            (u64::from(grown.frontier) + to_blocks <= self.first + self.capacity).then_some(grown)
        };
        let (was, is) = self.extent.change(grown)?;
        Some(Chunk { next: was.frontier, end: is.frontier })
    }

    /// Whether the limit is exceeded: then nothing more is allocated.
    pub(crate) fn is_passed(&self) -> bool {
        u64::from(self.extent.load().reserved) > self.limit
    }

    /// Takes back the words from `start` to `end`, which were allocated for this shard and not written to.
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

    /// The allocated words, and the idle and wasted ones among them. `reserved - idle` is never too small: idle words were allocated before, and
    /// `reserved` is read last; words that were given back meanwhile count as if they were not.
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

    /// Whether `part` of the limit is certainly used: words that a shard is just fetching count as idle. A table without a limit is limited by its
    /// range.
    pub(crate) fn uses_part(&self, part: f64) -> bool {
        let words = (self.limit as f64 * part).ceil() as u64;
        let returned = self.extent.returned();
        let mut used = u64::from(self.extent.load().reserved);
        for chunk in self.shards.iter().flat_map(|shard| [&shard.chunk, &shard.blocks]) {
            if used < words {
                return false;
            }
            // ORDERING(arena.chunk.read): Acquire; pairs with `take_back_for`, see there.
            let chunk = Chunk::unpack(chunk.load(ord("arena.chunk.read", Ordering::Acquire)));
            // Of a shard that is being refilled, all that it may get.
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
