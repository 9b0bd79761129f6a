//! The operations on a block that need no lock: every thread may call them at any time.

use core::num::NonZeroU32;
use core::ops::Range;

use super::header::{Header, Rows};
use crate::index::steps;
use crate::key::PartialKey;
use crate::mem::lanes::{ROW_WORDS, Test};
use crate::mem::storage::{Storage, Words};
use crate::node::{self, Predecessor};
use crate::sync::{AtomicU64, Ordering, ord};
use crate::tuning::{SLOTS, STUCK_LOOKS};

/// The number of words of a block with two rows: 256 bytes, four cache lines.
pub(crate) const BLOCK_WORDS: u32 = 2 * ROW_WORDS;

/// The number of lanes of a row that precede its first slot.
pub(super) const FIRST: usize = 2;

/// The first words of rows 2 and 3.
pub(super) const RELATIVE: u32 = 2 * ROW_WORDS;
pub(super) const SEPARATORS: u32 = 3 * ROW_WORDS;

/// The mark that takes the place of the next block's id in a block that was replaced. No block has this offset.
pub(super) const RETIRED: u32 = 1;

/// A block of one table: its offset in the arena. Ids are made only in this file: from blocks that it writes, and from places where it stored ids
/// (I2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId(NonZeroU32);

impl BlockId {
    /// The id as a number to store. Never 0, because 0 stands for "none".
    #[inline(always)]
    pub(crate) fn to_stored(self) -> u32 {
        self.0.get()
    }

    /// The id that was stored, or `None` for 0.
    ///
    /// # Safety
    /// `stored` is 0, or was returned by [`to_stored`](Self::to_stored) for a block of this table, and the writes to the block happen before this
    /// call.
    #[inline(always)]
    pub(crate) unsafe fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }
}

/// A block in its table's storage.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block<'a> {
    pub(super) storage: &'a Storage,
    pub(super) words: Words<'a>,
    pub(super) off: u32,
}

/// The content of a slot.
#[derive(Debug, Clone, Copy)]
pub(crate) enum SlotContent {
    /// The hint that a slot of a leaf holds.
    Hint(Predecessor),
    /// The block that a slot above the leaves names, with the lower bound of that block.
    Child(BlockId, Predecessor),
}

impl SlotContent {
    #[inline(always)]
    pub(super) fn to_stored(self) -> u32 {
        match self {
            Self::Hint(hint) => hint.to_stored(),
            Self::Child(child, _) => child.to_stored(),
        }
    }

    /// The node that is the lower bound of the slot's content.
    #[inline(always)]
    pub(crate) fn separator(self) -> Predecessor {
        match self {
            Self::Hint(separator) | Self::Child(_, separator) => separator,
        }
    }
}

/// Methods that read a block. The results may be old, a mixture of old and new, or contradict each other.
impl<'a> Block<'a> {
    /// The block `id` of the table whose memory is `storage`.
    #[inline(always)]
    pub(crate) fn new(storage: &'a Storage, id: BlockId) -> Self {
        let off = id.to_stored();
        // SAFETY: the words of a block (`BlockId`), which are only ever atomics.
        Self { storage, words: unsafe { storage.words_from(off) }, off }
    }

    #[inline(always)]
    pub(crate) fn id(self) -> BlockId {
        // The offset comes from an id, so it is not 0.
        BlockId(NonZeroU32::new(self.off).unwrap_or(NonZeroU32::MIN))
    }

    #[inline(always)]
    pub(super) fn word(self, index: u32) -> &'a AtomicU64 {
        debug_assert!(index < BLOCK_WORDS || index < self.load_header().rows().words());
        // SAFETY: one of the block's words (`BlockId`), which are only ever atomics. Rows 2 and 3 are accessed only if the block's header, or its
        // level, shows that they exist.
        unsafe { self.words.word(index) }
    }

    /// The header as it is now.
    #[inline(always)]
    pub(crate) fn load_header(self) -> Header {
        // Relaxed: the header only guides the search.
        Header(self.word(0).load(Ordering::Relaxed))
    }

    /// The block with its header as it is now.
    #[inline(always)]
    pub(crate) fn read(self) -> ReadBlock<'a> {
        self.with_header(self.load_header())
    }

    /// The block with a header that the caller has read from it.
    #[inline(always)]
    pub(crate) fn with_header(self, header: Header) -> ReadBlock<'a> {
        ReadBlock { block: self, header }
    }

    /// The partial key of a slot.
    #[inline(always)]
    pub(crate) fn partial(self, slot: usize) -> i32 {
        debug_assert!(slot < SLOTS);
        // SAFETY: a word of the block's first row (`BlockId`).
        unsafe { self.words.lane(0, FIRST + slot, Ordering::Relaxed) as i32 }
    }

    /// The difference of a slot's key from the key of the slot before it, in a tied block.
    #[inline(always)]
    pub(crate) fn relative(self, slot: usize) -> PartialKey {
        debug_assert!(slot < SLOTS);
        // SAFETY: a word of row 2, which a tied block has.
        PartialKey(unsafe { self.words.lane(RELATIVE, FIRST + slot, Ordering::Relaxed) })
    }

    /// The values of two adjacent slots, the first of which has an even number, in row 1 or 3: the row that begins with word `row`.
    #[inline(always)]
    fn lanes(self, row: u32, pair: usize) -> u64 {
        debug_assert!(pair < SLOTS.div_ceil(2));
        // ORDERING(block.slot.read): Acquire; pairs with `block.slot`. Weaker: a thread could read the bytes of the node, or the words of the block,
        // before they are written (loom `hints_lead_to_written_nodes`).
        self.word(row + (FIRST / 2 + pair) as u32).load(ord("block.slot.read", Ordering::Acquire))
    }

    /// The value of a slot in row 1 or 3.
    #[inline(always)]
    pub(super) fn lane(self, row: u32, slot: usize) -> u32 {
        debug_assert!(slot < SLOTS);
        // ORDERING(block.slot.read): Acquire; as in `lanes`.
        let acquire = ord("block.slot.read", Ordering::Acquire);
        // SAFETY: a word of row 1, or of row 3 of a block that has one (`BlockId`).
        unsafe { self.words.lane(row, FIRST + slot, acquire) }
    }

    /// The node that a slot of a leaf names.
    #[inline(always)]
    pub(crate) fn hint(self, slot: usize) -> Option<Predecessor> {
        // SAFETY: I2, and the slot was acquired.
        unsafe { Predecessor::from_stored(self.lane(ROW_WORDS, slot)) }
    }

    /// The nodes that slots `2 * pair` and `2 * pair + 1` of a leaf name.
    #[inline(always)]
    pub(crate) fn hint_pair(self, pair: usize) -> [Option<Predecessor>; 2] {
        let lanes = self.lanes(ROW_WORDS, pair);
        // SAFETY: I2, and the slots were acquired.
        [lanes as u32, (lanes >> 32) as u32].map(|stored| unsafe { Predecessor::from_stored(stored) })
    }

    /// Prefetches the nodes that slots `2 * pair` and `2 * pair + 1` of a leaf name, for a walk over them.
    #[inline(always)]
    pub(crate) fn prefetch_entries(self, pair: usize) {
        let lanes = self.lanes(ROW_WORDS, pair);
        node::prefetch_entry(self.storage, lanes as u32);
        node::prefetch_entry(self.storage, (lanes >> 32) as u32);
    }

    /// The block that a slot above the leaves names.
    #[inline(always)]
    pub(crate) fn child(self, slot: usize) -> Option<BlockId> {
        // SAFETY: I2, and the slot was acquired.
        unsafe { BlockId::from_stored(self.lane(ROW_WORDS, slot)) }
    }

    #[inline(always)]
    fn bounds(self) -> u64 {
        // ORDERING(block.bounds.read): Acquire; pairs with `block.bounds`. Weaker: the same failure as for `block.slot.read`.
        self.word(ROW_WORDS).load(ord("block.bounds.read", Ordering::Acquire))
    }

    /// The lower bound: no node in the block precedes it.
    #[inline]
    pub(crate) fn lower(self) -> Predecessor {
        // SAFETY: I2, and the word was acquired. A published block has a lower bound.
        unsafe { Predecessor::from_stored(self.bounds() as u32) }.unwrap_or(Predecessor::HEAD)
    }

    /// The next block of the same level.
    #[inline]
    pub(crate) fn next(self) -> Option<BlockId> {
        let stored = (self.bounds() >> 32) as u32;
        // SAFETY: I2, and the word was acquired; the mark `RETIRED` was excluded above.
        if stored == RETIRED { None } else { unsafe { BlockId::from_stored(stored) } }
    }

    #[inline(always)]
    pub(crate) fn is_retired(self) -> bool {
        self.word(ROW_WORDS).load(Ordering::Relaxed) >> 32 == u64::from(RETIRED)
    }

    /// Prefetches the lower bound.
    #[inline]
    pub(crate) fn prefetch_bounds(self) {
        self.words.prefetch(ROW_WORDS);
    }

    /// Prefetches rows, even if the block does not have them: a prefetch is only a hint and does no harm past the end of the memory.
    #[inline(always)]
    pub(crate) fn prefetch(self, rows: Range<u32>) {
        for row in rows {
            self.words.prefetch(row * ROW_WORDS);
            self.words.prefetch(row * ROW_WORDS + 8);
        }
    }
}

/// A block, and its header as it was at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadBlock<'a> {
    pub(super) block: Block<'a>,
    pub(crate) header: Header,
}

impl<'a> core::ops::Deref for ReadBlock<'a> {
    type Target = Block<'a>;

    #[inline(always)]
    fn deref(&self) -> &Block<'a> {
        &self.block
    }
}

impl<'a> ReadBlock<'a> {
    /// The number of slots whose partial keys are not greater than `partial`.
    #[inline(always)]
    pub(crate) fn count_not_greater(self, partial: i32) -> usize {
        let count = self.header.count();
        // SAFETY: the block's first row (`BlockId`).
        let greater = unsafe { self.words.lanes(0, Test::Greater(partial), count + FIRST) };
        ((greater >> FIRST | 1 << SLOTS).trailing_zeros() as usize).min(count)
    }

    /// A slot of a leaf that names `hint`: most likely `slot`, or the last slot if the leaf has fewer.
    #[inline(always)]
    pub(crate) fn find_hint(self, hint: Predecessor, slot: usize) -> Option<usize> {
        let slot = slot.min(self.header.count().max(1) - 1);
        if self.hint(slot) == Some(hint) { Some(slot) } else { self.find(hint.to_stored()) }
    }

    /// The first slot above the leaves that names `child`.
    #[inline]
    pub(crate) fn find_child(self, child: BlockId) -> Option<usize> {
        self.find(child.to_stored())
    }

    #[inline]
    fn find(self, stored: u32) -> Option<usize> {
        let count = self.header.count();
        // SAFETY: the block's second row (`BlockId`).
        let equal = unsafe { self.words.lanes(ROW_WORDS, Test::Equal(stored as i32), count + FIRST) };
        let found = equal >> FIRST & !(!0 << count);
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    /// The content of a slot.
    #[inline]
    pub(crate) fn content(self, slot: usize) -> Option<SlotContent> {
        match self.header.level() {
            0 => self.hint(slot).map(SlotContent::Hint),
            // The child's own lower bound is used, because slots move: row 3 of this block may already belong to another slot.
            _ => self.child(slot).map(|child| SlotContent::Child(child, Block::new(self.storage, child).lower())),
        }
    }

    /// The lower bound of a slot.
    #[inline(always)]
    pub(crate) fn separator(self, slot: usize) -> Option<Predecessor> {
        if self.header.rows() != Rows::Four {
            return self.content(slot).map(SlotContent::separator);
        }
        // SAFETY: I2, and the slot was acquired.
        unsafe { Predecessor::from_stored(self.lane(SEPARATORS, slot)) }
    }
}

/// Changes to a block.
impl<'a> Block<'a> {
    /// Counts a look at the lock if the lock is taken. Returns whether this was the last of [`STUCK_LOOKS`] looks that found the same holder, with an
    /// unchanged header; if so, the count restarts at zero.
    pub(crate) fn look(self) -> bool {
        const { assert!(STUCK_LOOKS > 1 && STUCK_LOOKS * Header::LOOK <= Header::LOOKS) };
        let header = self.load_header();
        let looks = ((header.0 & Header::LOOKS) / Header::LOOK + 1) % STUCK_LOOKS;
        let looked = header.0 & !Header::LOOKS | (looks * Header::LOOK);
        // Relaxed: the count publishes no other memory. In modification order, the CAS directly follows the header that it has read, and the same
        // holder had the lock when that header was written. So it comes before the holder's next header, and no unlocking is lost
        // (loom `too_few_looks_leave_a_block_to_its_holder_i2`). It also never comes between `block.unlock` and the `block.lock` that reads the
        // unlocked header.
        let counted = || self.word(0).compare_exchange(header.0, looked, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        header.is_locked() && counted() && looks == 0
    }

    /// Marks the block as replaced permanently: it is never locked again. Returns the block that followed it.
    pub(crate) fn retire(self) -> Option<BlockId> {
        let next = self.next();
        let mark = |bounds| Some(u64::from(RETIRED) << 32 | bounds & u64::from(u32::MAX));
        // Relaxed: the mark leads to no memory, and the lower bound in the same word does not change. If a splitter misses the mark, and the copy
        // misses the splitter's changes, some nodes lose their hints; later searches add them again.
        let _ = self.word(ROW_WORDS).fetch_update(Ordering::Relaxed, Ordering::Relaxed, mark);
        next
    }

    /// Sets the lower bound and the next block of a block that other threads may be reading.
    #[cfg(feature = "scramble")]
    pub(in crate::index) fn scramble_bounds(self, lower: Predecessor, next: Option<BlockId>) {
        // ORDERING(block.bounds): Release; pairs with `block.bounds.read`, see there.
        self.word(ROW_WORDS).store(bounds(lower, next), ord("block.bounds", Ordering::Release));
    }

    /// Makes `next` the next block in place of `was`, unless the next block is no longer `was`.
    #[inline]
    pub(crate) fn replace_next(self, was: Option<BlockId>, next: BlockId) {
        let seen = self.bounds();
        steps::step();
        if seen >> 32 == u64::from(was.map_or(0, BlockId::to_stored)) {
            let replaced = u64::from(next.to_stored()) << 32 | seen & u64::from(u32::MAX);
            // ORDERING(block.bounds): Release; pairs with `block.bounds.read`, see there. If the exchange fails, `next` is not the nearest block:
            // readahead then skips a block.
            let release = ord("block.bounds", Ordering::Release);
            let _ = self.word(ROW_WORDS).compare_exchange(seen, replaced, release, Ordering::Relaxed);
        }
    }
}

/// The word that holds the lower bound and the next block.
#[inline]
pub(super) fn bounds(lower: Predecessor, next: Option<BlockId>) -> u64 {
    u64::from(next.map_or(0, BlockId::to_stored)) << 32 | u64::from(lower.to_stored())
}
