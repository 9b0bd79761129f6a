//! A block of the index: a sorted row of partial keys, and beside it the nodes or blocks that they stand for.
//!
//! ```text
//! row 0    header | partial key of slot 0, 1 | 2, 3 | ...      4 bytes a slot, the top bit flipped for signed comparison
//! row 1    bounds | slot 0, 1                | 2, 3 | ...      4 bytes a slot: hints (nodes) in a leaf, else blocks
//! row 2    -      | slot 0, 1                | 2, 3 | ...      4 bytes a slot: how it differs from the slot before (`relative.rs`)
//! header   { slots in use: 8 bits, length of the shared prefix: 8, level: 4, has row 2: 1, tied: 1, locked: 1, version: 39 }
//! bounds   { lower bound: a node (or the head) at or before all that the slots name, the next block of the level }
//! ```
//!
//! Row 2 is there above the leaves, and in leaves that were made where partial keys tied; it is kept from the first tie on.
//!
//! Blocks only guide searches. What a search finds through them it verifies (`search.rs`), so nothing here is needed for a
//! right answer but this:
//!
//! I2 hints: once a block is published, each of its fields is empty or holds
//!
//! * in a slot of a leaf, and as a lower bound: the head, or a node that was linked before it was stored there;
//! * in a slot above the leaves: a block of the level below, completely written before;
//! * as `next`: such a block of the same level.
//!
//! Blocks are never freed, moved or used for another level while the table lives. `validate` checks this, and so do the models,
//! where words that were never written name nothing that exists.
//!
//! Only the holder of a block's lock writes its slots. The lock is a bit that is tried and never waited for: a writer that finds
//! it taken leaves the index as it is. If the lock stays taken, the block is retired (`replace.rs`).

use core::num::NonZeroU32;

use super::steps;
use crate::key::PartialKey;
use crate::mem::lanes::ROW_WORDS;
use crate::mem::storage::Storage;
use crate::node::Predecessor;
use crate::sync::{AtomicU64, Ordering, ord};
use crate::tuning::SLOTS;

/// Words of a block without row 2: 256 bytes, four cache lines.
pub(crate) const BLOCK_WORDS: u32 = 2 * ROW_WORDS;

/// Words of a block with it: 384 bytes.
pub(super) const WIDE_BLOCK_WORDS: u32 = 3 * ROW_WORDS;

/// The lanes of a row before its first slot.
const FIRST: usize = 2;

/// The first word of row 2.
const RELATIVE: u32 = 2 * ROW_WORDS;

/// In place of the next block: this block was replaced. No block lies there.
const RETIRED: u32 = 1;

/// A block of one table: its offset in the arena. Only this file makes ids: from blocks it has written, and from where it
/// stored them (I2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId(NonZeroU32);

impl BlockId {
    /// The number to store where an id cannot be. Never 0, which says "none".
    #[inline(always)]
    pub(crate) fn to_stored(self) -> u32 {
        self.0.get()
    }

    /// The id that was stored, or `None` for 0.
    ///
    /// # Safety
    /// `stored` is 0, or was returned by [`to_stored`](Self::to_stored) of a block of the same table, whose writing happens before.
    #[inline(always)]
    pub(crate) unsafe fn from_stored(stored: u32) -> Option<Self> {
        NonZeroU32::new(stored).map(Self)
    }
}

/// How many rows a block has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Width {
    Two,
    Three,
}

impl Width {
    pub(super) fn words(self) -> u32 {
        match self {
            Self::Two => BLOCK_WORDS,
            Self::Three => WIDE_BLOCK_WORDS,
        }
    }
}

/// The first word of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header(u64);

impl Header {
    const WIDE: u64 = 1 << 20;
    const TIED: u64 = 1 << 21;
    const LOCKED: u64 = 1 << 24;
    const VERSION: u64 = 1 << 25;

    fn new(level: u32, prefix: u32, width: Width) -> Self {
        let wide = if width == Width::Three { Self::WIDE } else { 0 };
        Self(u64::from(prefix) << 8 | u64::from(level) << 16 | wide)
    }

    /// Slots in use.
    #[inline(always)]
    pub(super) fn count(self) -> usize {
        // No published header says more; the bound spares the callers a check.
        (self.0 as u8 as usize).min(SLOTS)
    }

    /// How many bytes the keys under this block share, which its partial keys leave out.
    #[inline(always)]
    pub(super) fn prefix(self) -> u32 {
        (self.0 >> 8) as u8 as u32
    }

    /// 0 for a leaf.
    #[inline(always)]
    pub(super) fn level(self) -> u32 {
        (self.0 >> 16) as u32 & 0xf
    }

    /// How many rows the block has.
    pub(super) fn width(self) -> Width {
        if self.0 & Self::WIDE != 0 { Width::Three } else { Width::Two }
    }

    /// Whether row 2 is kept.
    #[inline(always)]
    pub(super) fn is_tied(self) -> bool {
        self.0 & Self::TIED != 0
    }

    #[inline(always)]
    pub(super) fn is_locked(self) -> bool {
        self.0 & Self::LOCKED != 0
    }

    /// Whether all slots are in use.
    #[inline(always)]
    pub(super) fn is_full(self) -> bool {
        self.count() == SLOTS
    }

    fn with_count(self, count: usize) -> Self {
        Self(self.0 & !0xff | count as u64)
    }

    fn with_prefix(self, prefix: u32) -> Self {
        Self(self.0 & !0xff00 | u64::from(prefix) << 8)
    }

    fn unlocked(self) -> Self {
        Self((self.0 & !Self::LOCKED).wrapping_add(Self::VERSION))
    }
}

/// Biases a partial key so that the signed order of the results is the unsigned order of the arguments.
#[inline(always)]
pub(super) fn bias(partial: u32) -> i32 {
    (partial ^ 1 << 31) as i32
}

/// A block in its table's storage.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    storage: &'a Storage,
    off: u32,
}

/// What a slot holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Held {
    /// In a leaf.
    Hint(Predecessor),
    /// Above the leaves.
    Child(BlockId),
}

impl Held {
    #[inline(always)]
    fn to_stored(self) -> u32 {
        match self {
            Self::Hint(hint) => hint.to_stored(),
            Self::Child(child) => child.to_stored(),
        }
    }
}

/// How a new slot and the one behind it differ from the slots before them.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relative {
    pub(super) own: PartialKey,
    /// `None` if there is no slot behind.
    pub(super) next: Option<PartialKey>,
}

impl From<Predecessor> for Held {
    #[inline(always)]
    fn from(hint: Predecessor) -> Self {
        Self::Hint(hint)
    }
}

impl From<BlockId> for Held {
    #[inline(always)]
    fn from(child: BlockId) -> Self {
        Self::Child(child)
    }
}

/// Reading. The answers may be old, torn between old and new, or contradict each other.
impl<'a> Block<'a> {
    /// The block `id` of the table that lies in `storage`.
    #[inline(always)]
    pub(super) fn new(storage: &'a Storage, id: BlockId) -> Self {
        Self { storage, off: id.to_stored() }
    }

    #[inline(always)]
    pub(super) fn id(self) -> BlockId {
        // Made from an id, so not 0.
        BlockId(NonZeroU32::new(self.off).unwrap_or(NonZeroU32::MIN))
    }

    #[inline(always)]
    fn word(self, index: u32) -> &'a AtomicU64 {
        debug_assert!(index < BLOCK_WORDS || index < WIDE_BLOCK_WORDS && self.header().width() == Width::Three);
        // SAFETY: one of the block's words (`BlockId`), which are only ever atomics. Row 2 is asked for where a header says that it is
        // there, which never changes.
        unsafe { self.storage.word(self.off + index) }
    }

    #[inline(always)]
    pub(super) fn header(self) -> Header {
        // Relaxed: it only says where to look.
        Header(self.word(0).load(Ordering::Relaxed))
    }

    /// How many slots have partial keys not greater than `partial`.
    #[inline(always)]
    pub(super) fn count_not_greater(self, header: Header, partial: i32) -> usize {
        let count = header.count();
        // SAFETY: the block's first row (`BlockId`).
        let greater = unsafe { self.storage.lanes_greater(self.off, partial, count + FIRST) };
        (greater >> FIRST | !0 << count).trailing_zeros() as usize
    }

    /// The first slot that holds `held`.
    #[inline(always)]
    pub(super) fn find(self, header: Header, held: impl Into<Held>) -> Option<usize> {
        let count = header.count();
        // SAFETY: the block's second row (`BlockId`).
        let equal = unsafe { self.storage.lanes_equal(self.off + ROW_WORDS, held.into().to_stored(), count + FIRST) };
        let found = equal >> FIRST & !(!0 << count);
        (found != 0).then(|| found.trailing_zeros() as usize)
    }

    /// The partial key of a slot.
    #[inline(always)]
    pub(super) fn partial(self, slot: usize) -> i32 {
        let lane = slot + FIRST;
        (self.word(lane as u32 / 2).load(Ordering::Relaxed) >> (32 * (lane & 1))) as i32
    }

    /// How a slot's key differs from that of the slot before, in a tied block.
    #[inline(always)]
    pub(super) fn relative(self, slot: usize) -> PartialKey {
        let lane = slot + FIRST;
        PartialKey((self.word(RELATIVE + lane as u32 / 2).load(Ordering::Relaxed) >> (32 * (lane & 1))) as u32)
    }

    /// What a slot holds, whatever the block's level.
    #[inline(always)]
    fn slot(self, slot: usize) -> u32 {
        let lane = slot + FIRST;
        // ORDERING(block.slot.read): Acquire; pairs with `block.slot`. Weaker: the bytes of the node, or the words of the block,
        // could be read before they are written (loom `hints_lead_to_written_nodes`).
        let word = self.word(ROW_WORDS + lane as u32 / 2).load(ord("block.slot.read", Ordering::Acquire));
        (word >> (32 * (lane & 1))) as u32
    }

    /// What a slot of this block, which is of `level`, holds.
    pub(super) fn held(self, level: u32, slot: usize) -> Option<Held> {
        match level {
            0 => self.hint(slot).map(Held::Hint),
            _ => self.child(slot).map(Held::Child),
        }
    }

    /// The node that a slot of a leaf names.
    #[inline(always)]
    pub(super) fn hint(self, slot: usize) -> Option<Predecessor> {
        // SAFETY: I2, and the slot was acquired.
        unsafe { Predecessor::from_stored(self.slot(slot)) }
    }

    /// The block that a slot above the leaves names.
    #[inline(always)]
    pub(super) fn child(self, slot: usize) -> Option<BlockId> {
        // SAFETY: I2, and the slot was acquired.
        unsafe { BlockId::from_stored(self.slot(slot)) }
    }

    #[inline(always)]
    fn bounds(self) -> u64 {
        // ORDERING(block.bounds.read): Acquire; pairs with `block.bounds`. Weaker: as `block.slot.read`.
        self.word(ROW_WORDS).load(ord("block.bounds.read", Ordering::Acquire))
    }

    /// The node that none of the block's is before.
    pub(super) fn lower(self) -> Predecessor {
        // SAFETY: I2, and the word was acquired. A published block has a lower bound.
        unsafe { Predecessor::from_stored(self.bounds() as u32) }.unwrap_or(Predecessor::HEAD)
    }

    /// The next block of the same level.
    pub(super) fn next(self) -> Option<BlockId> {
        let stored = (self.bounds() >> 32) as u32;
        // SAFETY: I2, and the word was acquired; the mark is no block.
        if stored == RETIRED { None } else { unsafe { BlockId::from_stored(stored) } }
    }

    #[inline(always)]
    pub(super) fn is_retired(self) -> bool {
        self.word(ROW_WORDS).load(Ordering::Relaxed) >> 32 == u64::from(RETIRED)
    }

    /// Asks the processor for the whole block.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        for line in 0..BLOCK_WORDS.div_ceil(8) {
            self.storage.prefetch(self.off + 8 * line);
        }
    }

    /// Asks the processor for row 2.
    pub(super) fn prefetch_relative(self) {
        for line in BLOCK_WORDS / 8..WIDE_BLOCK_WORDS.div_ceil(8) {
            self.storage.prefetch(self.off + 8 * line);
        }
    }

    /// Asks the processor for the lower bound.
    pub(super) fn prefetch_bounds(self) {
        self.storage.prefetch(self.off + ROW_WORDS);
    }
}

/// Changing.
impl<'a> Block<'a> {
    /// Locks the block; `None` if it is locked or retired.
    #[inline(always)]
    pub(super) fn try_lock(self) -> Option<Locked<'a>> {
        let header = self.header();
        if header.is_locked() {
            return None;
        }
        // ORDERING(block.lock): Acquire; pairs with `block.unlock`. Weaker: the slots could be seen as they were before the last
        // holder changed them, and a hint be lost or doubled (loom `hints_of_two_writers_are_all_there`).
        let locked = self.word(0).compare_exchange(
            header.0,
            header.0 | Header::LOCKED,
            ord("block.lock", Ordering::Acquire),
            Ordering::Relaxed,
        );
        steps::step();
        // A retired block stays locked: nobody has a use for it.
        // Made only then: dropping it would unlock the block of another.
        (locked.is_ok() && !self.is_retired()).then(|| Locked { block: self, header })
    }

    /// Says for good that the block was replaced: it is not locked again. Returns what was the next one.
    pub(super) fn retire(self) -> Option<BlockId> {
        let next = self.next();
        let mark = |bounds| Some(u64::from(RETIRED) << 32 | bounds & u64::from(u32::MAX));
        // Relaxed: the mark leads to nothing, and the lower bound beside it stays what was published. A splitter that misses the
        // mark while the copy misses what it did costs hints, which are mended.
        let _ = self.word(ROW_WORDS).fetch_update(Ordering::Relaxed, Ordering::Relaxed, mark);
        next
    }

    /// Lets the block be followed by `next` and not `was`, unless it has another next one by now.
    pub(super) fn replace_next(self, was: Option<BlockId>, next: BlockId) {
        let stored = |id: Option<BlockId>| u64::from(id.map_or(0, BlockId::to_stored)) << 32;
        let seen = self.bounds();
        steps::step();
        if seen >> 32 << 32 == stored(was) {
            let lower = seen & u64::from(u32::MAX);
            // ORDERING(block.bounds): Release; pairs with `block.bounds.read`, see there. A failure leaves a `next` that is not
            // the nearest: readahead skips a block.
            let _ = self.word(ROW_WORDS).compare_exchange(
                seen,
                lower | stored(Some(next)),
                ord("block.bounds", Ordering::Release),
                Ordering::Relaxed,
            );
        }
    }
}

/// A block whose slots may be changed, for it is locked, or not published yet. Unlocks it when dropped.
pub(super) struct Locked<'a> {
    block: Block<'a>,
    header: Header,
}

impl core::ops::Deref for Locked<'_> {
    type Target = Header;

    fn deref(&self) -> &Header {
        &self.header
    }
}

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        steps::step();
        self.header = self.header.unlocked();
        // ORDERING(block.unlock): Release; pairs with `block.lock`, see there.
        self.block.word(0).store(self.header.0, ord("block.unlock", Ordering::Release));
    }
}

impl<'a> Locked<'a> {
    /// Makes an empty block.
    ///
    /// # Safety
    /// The [`words`](Width::words) from `off` on, which is a multiple of 8 and greater than 1, are the caller's and were used for
    /// nothing else since the table was made or reset.
    pub(super) unsafe fn make(
        storage: &'a Storage,
        off: u32,
        level: u32,
        prefix: u32,
        lower: Predecessor,
        width: Width,
    ) -> Self {
        storage.unpoison(off, width.words() as usize * crate::mem::storage::WORD);
        let block = Block { storage, off };
        let header = Header::new(level, prefix, width);
        block.word(0).store(header.0 | Header::LOCKED, Ordering::Relaxed);
        for index in 1..width.words() {
            // Relaxed: publishing the block publishes them.
            block.word(index).store(0, Ordering::Relaxed);
        }
        block.word(ROW_WORDS).store(lower.to_stored().into(), Ordering::Relaxed);
        Self { block, header }
    }

    #[inline(always)]
    pub(super) fn block(&self) -> Block<'a> {
        self.block
    }

    /// Says where an unpublished block begins and what follows it.
    pub(super) fn set_bounds(&mut self, lower: Predecessor, next: Option<BlockId>) {
        let next = u64::from(next.map_or(0, BlockId::to_stored)) << 32;
        // Relaxed: publishing the block publishes it.
        self.block.word(ROW_WORDS).store(next | u64::from(lower.to_stored()), Ordering::Relaxed);
    }

    /// Puts a hint into a leaf, or a block of the level below into a block above. Moves the slots from `slot` on one further.
    /// Above the leaves the last one is doubled and counted first, so that none is out of sight at any time; then offsets move
    /// before partial keys. A tied block must be told how the slot differs.
    #[inline(always)]
    pub(super) fn insert(&mut self, slot: usize, partial: i32, held: impl Into<Held>, relative: Option<Relative>) {
        let held = held.into();
        debug_assert_eq!(relative.is_some(), self.is_tied());
        debug_assert_eq!(self.level() == 0, matches!(held, Held::Hint(_)));
        let count = self.count();
        debug_assert!(slot <= count && count < SLOTS);
        if slot < count && self.level() > 0 {
            self.set_lane(ROW_WORDS, count, self.block.slot(count - 1));
            self.set_lane(0, count, self.block.partial(count - 1) as u32);
            self.set_count(count + 1);
        }
        self.shift_in(ROW_WORDS, slot, count, held.to_stored());
        self.shift_in(0, slot, count, partial as u32);
        if let Some(Relative { own, next }) = relative {
            self.shift_in(RELATIVE, slot, count, own.0);
            next.into_iter().for_each(|next| self.set_relative(slot + 1, next));
        }
        self.set_count(count + 1);
    }

    /// Changes how a slot differs from the one before, in a block that has row 2.
    pub(super) fn set_relative(&mut self, slot: usize, relative: PartialKey) {
        debug_assert_eq!(self.width(), Width::Three);
        self.set_lane(RELATIVE, slot, relative.0);
    }

    /// Says that row 2 is right, and from now on kept.
    pub(super) fn set_tied(&mut self) {
        self.set_header(Header(self.header.0 | Header::TIED));
    }

    /// Puts `value` into the lane of `slot` in the row that begins with word `row`, after moving the lanes of the slots up
    /// to `end` one further, the last one first.
    #[inline(always)]
    fn shift_in(&self, row: u32, slot: usize, end: usize, value: u32) {
        let (lane, end) = (slot + FIRST, end + FIRST);
        let first = row + lane as u32 / 2;
        let mut at = row + end as u32 / 2;
        let mut here = self.block.word(at).load(Ordering::Relaxed);
        while at > first {
            let before = self.block.word(at - 1).load(Ordering::Relaxed);
            self.store(at, here << 32 | before >> 32);
            here = before;
            at -= 1;
        }
        let value = u64::from(value);
        let word = if lane & 1 == 0 { here << 32 | value } else { here & u64::from(u32::MAX) | value << 32 };
        self.store(first, word);
    }

    #[inline(always)]
    fn store(&self, word: u32, value: u64) {
        steps::step();
        // ORDERING(block.slot): Release; pairs with `block.slot.read`, see there.
        self.block.word(word).store(value, ord("block.slot", Ordering::Release));
    }

    fn set_lane(&self, row: u32, slot: usize, value: u32) {
        let lane = slot + FIRST;
        let (word, shift) = (row + lane as u32 / 2, 32 * (lane & 1));
        let other = self.block.word(word).load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        self.store(word, other | u64::from(value) << shift);
    }

    /// Changes the partial key of a slot.
    pub(super) fn set_partial(&mut self, slot: usize, partial: i32) {
        self.set_lane(0, slot, partial as u32);
    }

    /// Lets a slot name `child`, whose nodes are those of the block that it named before.
    pub(super) fn set_child(&mut self, slot: usize, child: BlockId) {
        debug_assert_ne!(self.level(), 0);
        self.set_lane(ROW_WORDS, slot, child.to_stored());
    }

    /// Whether the block was retired before what was just put into it could be copied.
    pub(super) fn is_retired(&self) -> bool {
        // Relaxed, but a read-modify-write, as `retire` is: it sees the latest mark.
        let bounds = self.block.word(ROW_WORDS).fetch_or(0, Ordering::Relaxed);
        bounds >> 32 == u64::from(RETIRED)
    }

    /// Forgets the slots from `count` on. Readers that see the old count see what is still true.
    pub(super) fn cut(&mut self, count: usize) {
        self.set_count(count);
    }

    fn set_count(&mut self, count: usize) {
        self.set_header(self.header.with_count(count));
    }

    /// Says how many bytes the partial keys leave out; readers between this and [`set_partial`](Self::set_partial) are misled, and
    /// notice.
    pub(super) fn set_prefix(&mut self, prefix: u32) {
        self.set_header(self.header.with_prefix(prefix));
    }

    fn set_header(&mut self, header: Header) {
        steps::step();
        self.header = header;
        self.block.word(0).store(header.0 | Header::LOCKED, Ordering::Relaxed);
    }
}
