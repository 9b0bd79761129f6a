//! Changes the slots of a block: done by the holder of the block's lock, or before the block is published.

use core::ops::Range;

use super::header::{Header, Rows};
use super::shared::{Block, BlockId, FIRST, RELATIVE, RETIRED, ReadBlock, SEPARATORS, SlotContent, bounds};
use crate::index::steps;
use crate::key::PartialKey;
use crate::mem::lanes::ROW_WORDS;
use crate::mem::storage::Storage;
use crate::node::Predecessor;
use crate::sync::{Ordering, ord, overwrite};
use crate::tuning::SLOTS;

/// Two differences: of a new slot from the slot before it, and of the slot after it from the new slot.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Relative {
    pub(crate) own: PartialKey,
    /// `None` if the new slot is the last one.
    pub(crate) next: Option<PartialKey>,
}

impl<'a> Block<'a> {
    /// Locks the block; `None` if it is locked or retired.
    #[inline(always)]
    pub(crate) fn try_lock(self) -> Option<Locked<'a>> {
        let read = self.read();
        if read.header.is_locked() {
            return None;
        }
        // ORDERING(block.lock): Acquire; pairs with `block.unlock`. Weaker: a writer could see the slots as they were before the last holder changed
        // them, and a hint could be lost or doubled (loom `hints_of_two_writers_are_all_there`).
        let (unlocked, acquire) = (read.header.0, ord("block.lock", Ordering::Acquire));
        let locked = self.word(0).compare_exchange(unlocked, unlocked | Header::LOCKED, acquire, Ordering::Relaxed);
        steps::step();
        // A retired block stays locked, since no thread uses it. The guard is made only after the check: dropping it earlier would release another
        // thread's lock.
        (locked.is_ok() && !self.is_retired()).then(|| Locked(read))
    }
}

/// A block whose slots may be changed, because it is locked or not yet published. Dropping this guard unlocks the block.
pub(crate) struct Locked<'a>(ReadBlock<'a>);

impl<'a> core::ops::Deref for Locked<'a> {
    type Target = ReadBlock<'a>;

    #[inline(always)]
    fn deref(&self) -> &ReadBlock<'a> {
        &self.0
    }
}

impl Drop for Locked<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        steps::step();
        let unlocked = (self.header.0 & !Header::LOCKED).wrapping_add(Header::VERSION);
        // ORDERING(block.unlock): Release; pairs with `block.lock`, see there.
        overwrite(self.word(0), unlocked, ord("block.unlock", Ordering::Release));
    }
}

impl<'a> Locked<'a> {
    /// Makes an empty block.
    ///
    /// # Safety
    /// The [`words`](Rows::words) words from `off` on belong to the caller, and were used for nothing else since the table was made or reset. `off`
    /// is a multiple of 8 and greater than 1.
    #[inline]
    pub(crate) unsafe fn make(storage: &'a Storage, off: u32, header: Header, lower: Predecessor) -> Self {
        debug_assert!(header.rows() != if header.level() == 0 { Rows::Four } else { Rows::Three });
        storage.unpoison(off, header.rows().words() as usize * crate::mem::storage::WORD);
        // SAFETY: the caller owns these words.
        let block = Block { storage, words: unsafe { storage.words_from(off) }, off };
        block.word(0).store(header.0 | Header::LOCKED, Ordering::Relaxed);
        for index in 1..header.rows().words() {
            // Relaxed: publishing the block publishes these words.
            block.word(index).store(0, Ordering::Relaxed);
        }
        let mut made = Self(ReadBlock { block, header });
        made.set_bounds(lower, None);
        made
    }

    /// Sets the lower bound of an unpublished block, and the block that follows it.
    #[inline]
    pub(crate) fn set_bounds(&mut self, lower: Predecessor, next: Option<BlockId>) {
        // Relaxed: publishing the block publishes this word.
        self.word(ROW_WORDS).store(bounds(lower, next), Ordering::Relaxed);
    }

    /// Puts a hint into a leaf, or a block of the level below into a higher block. Moves the slots from `slot` on by one. Above the leaves, the last
    /// slot is first doubled and counted, so that no child is invisible at any time. Then the slots are moved: for each word, first the offsets and
    /// then the partial keys. For a tied block, the caller must pass the difference of the slot.
    #[inline(always)]
    pub(crate) fn insert(&mut self, slot: usize, partial: i32, content: SlotContent, relative: Option<Relative>) {
        debug_assert_eq!(relative.is_some(), self.header.is_tied());
        debug_assert_eq!(self.header.level() == 0, matches!(content, SlotContent::Hint(_)));
        let (above, bounded) = (self.header.level() > 0, self.header.rows() == Rows::Four);
        let count = self.header.count();
        debug_assert!(slot <= count && count < SLOTS);
        if slot < count && above {
            if bounded {
                self.set_lane(SEPARATORS, count, self.lane(SEPARATORS, count - 1));
            }
            self.set_lane(ROW_WORDS, count, self.lane(ROW_WORDS, count - 1));
            self.set_lane(0, count, self.partial(count - 1) as u32);
            self.set_count(count + 1);
        }
        if bounded {
            self.shift_in([SEPARATORS], slot, count, [content.separator().to_stored()]);
        }
        self.shift_in([ROW_WORDS, 0], slot, count, [content.to_stored(), partial as u32]);
        if let Some(Relative { own, next }) = relative {
            self.shift_in([RELATIVE], slot, count, [own.0]);
            next.into_iter().for_each(|next| self.set_relative(slot + 1, next));
        }
        self.set_count(count + 1);
    }

    /// Copies slots of a locked block of the same level into this empty block, which is not shared yet.
    #[inline]
    pub(crate) fn copy_slots(&mut self, from: ReadBlock<'_>, slots: Range<usize>) {
        let mut count = 0;
        for slot in slots {
            let Some(content) = from.content(slot) else { continue };
            self.set_lane(0, count, from.partial(slot) as u32);
            self.set_lane(ROW_WORDS, count, content.to_stored());
            if self.header.rows() == Rows::Four {
                self.set_lane(SEPARATORS, count, content.separator().to_stored());
            }
            if self.header.is_tied() {
                self.set_relative(count, from.relative(slot));
            }
            count += 1;
        }
        self.set_count(count);
    }

    /// Sets the difference of a slot from the slot before it, in a block that has row 2.
    #[inline]
    pub(crate) fn set_relative(&mut self, slot: usize, relative: PartialKey) {
        debug_assert!(self.header.rows() > Rows::Two);
        self.set_lane(RELATIVE, slot, relative.0);
    }

    /// Marks row 2 as valid; it is maintained from now on.
    #[inline]
    pub(crate) fn set_tied(&mut self) {
        self.set_header(Header(self.header.0 | Header::TIED));
    }

    /// Puts `values` into the lanes of `slot` in the rows that begin at words `rows`. Before, moves the lanes of the slots up to `end` by one, the
    /// last first.
    #[inline(always)]
    fn shift_in<const ROWS: usize>(&self, rows: [u32; ROWS], slot: usize, end: usize, values: [u32; ROWS]) {
        let (lane, end) = (slot + FIRST, end + FIRST);
        let first = lane as u32 / 2;
        let mut at = end as u32 / 2;
        let load = |at: u32| rows.map(|row| self.word(row + at).load(Ordering::Relaxed));
        let mut here = load(at);
        while at > first {
            let before = load(at - 1);
            for index in 0..ROWS {
                self.store(rows[index] + at, here[index] << 32 | before[index] >> 32);
            }
            here = before;
            at -= 1;
        }
        for index in 0..ROWS {
            let (here, value) = (here[index], u64::from(values[index]));
            let word = if lane & 1 == 0 { here << 32 | value } else { here & u64::from(u32::MAX) | value << 32 };
            self.store(rows[index] + first, word);
        }
    }

    #[inline(always)]
    fn store(&self, word: u32, value: u64) {
        steps::step();
        // ORDERING(block.slot): Release; pairs with `block.slot.read`, see there.
        self.word(word).store(value, ord("block.slot", Ordering::Release));
    }

    #[inline]
    fn set_lane(&self, row: u32, slot: usize, value: u32) {
        let lane = slot + FIRST;
        let (word, shift) = (row + lane as u32 / 2, 32 * (lane & 1));
        let other = self.word(word).load(Ordering::Relaxed) & !(u64::from(u32::MAX) << shift);
        self.store(word, other | u64::from(value) << shift);
    }

    /// Changes the partial key of a slot.
    #[inline]
    pub(crate) fn set_partial(&mut self, slot: usize, partial: i32) {
        self.set_lane(0, slot, partial as u32);
    }

    /// Makes a slot name `child`, which has the same lower bound and nodes as the block that the slot named before.
    #[inline]
    pub(crate) fn set_child(&mut self, slot: usize, child: BlockId) {
        debug_assert_ne!(self.header.level(), 0);
        self.set_lane(ROW_WORDS, slot, child.to_stored());
    }

    /// Whether the block was retired meanwhile: then the copy of the block may lack the latest changes.
    #[inline]
    pub(crate) fn is_retired(&self) -> bool {
        // Relaxed, but a read-modify-write, as in `retire`: so this read sees the latest mark.
        let bounds = self.word(ROW_WORDS).fetch_or(0, Ordering::Relaxed);
        bounds >> 32 == u64::from(RETIRED)
    }

    /// Sets the number of slots in use. A reader that still sees a greater count finds valid contents in the dropped slots.
    #[inline]
    pub(crate) fn set_count(&mut self, count: usize) {
        self.set_header(Header(self.header.0 & !0xff | count as u64));
    }

    /// Sets the length of the prefix that the partial keys leave out. Between this call and [`set_partial`](Self::set_partial) the partial keys
    /// mislead readers, which detect it.
    #[inline]
    pub(crate) fn set_prefix(&mut self, prefix: u32) {
        self.set_header(Header(self.header.0 & !0xff00 | u64::from(prefix) << 8));
    }

    #[inline]
    fn set_header(&mut self, header: Header) {
        steps::step();
        self.0.header = header;
        overwrite(self.word(0), header.0 | Header::LOCKED, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use crate::list::tests::ascending;

    /// Catches a hint that is added to a replaced block, which no search visits.
    #[test]
    fn a_replaced_block_is_not_locked_again() {
        let list = ascending(1000);
        let root = list.index.block(list.index.root().unwrap());
        assert!(root.try_lock().is_some());
        root.retire();
        assert!(root.try_lock().is_none());
    }
}
