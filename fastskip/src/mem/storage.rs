//! The bytes under the arena: one reserved address range, seen as 8-byte words or as byte strings.
//!
//! A word is used either as an atomic or as part of a byte string for the whole life of the table, never both.
//! The initial contents of a range are undefined: only written words are read. The system commits pages at first touch.
//! The models in `loom-tests` replace this file by one that checks those rules.

use core::marker::PhantomData;
use std::io;

use super::lanes::{Test, row};
pub(crate) use super::poison::REDZONE_WORDS;
use super::poison::{poison, unpoison};
use super::range::Range;
pub use super::range::TablePool;
pub(crate) use super::range::{UNLIMITED_BYTES, unlimited_bytes};
use crate::sync::{AtomicU64, Ordering};

/// Bytes in a word, the unit of every offset.
pub(crate) const WORD: usize = 8;

/// The unit of range sizes, so that a pool finds ranges of the same size.
const PAGE: usize = 4 << 10;

/// The most words a 32-bit offset reaches: 32 GiB.
pub(crate) const MAX_WORDS: u64 = 1 << 32;

/// A range of memory that one table uses, and the pool that it returns to.
#[derive(Debug)]
pub(crate) struct Storage {
    /// `None` only while it is dropped.
    range: Option<Range>,
    /// Where the range begins.
    base: *mut u8,
    pool: TablePool,
    /// The number of bytes from the base on that were used, by this table or an earlier one.
    used: usize,
}

// SAFETY: `base` is the address of the range, which may be shared; the unsafe methods state the rules for accesses.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Takes `bytes` from the pool or reserves them; reserves much less while the system refuses, but no less than `least`.
    ///
    /// # Errors
    /// The system's last refusal.
    pub(crate) fn reserve(bytes: usize, least: usize, huge_pages: bool, pool: Option<&TablePool>) -> io::Result<Self> {
        let (bytes, least) = (bytes.next_multiple_of(PAGE), least.next_multiple_of(PAGE));
        let pool = pool.unwrap_or_else(|| TablePool::shared());
        let (range, used) = match pool.take(bytes.max(least), huge_pages) {
            Some(pooled) => pooled,
            None => (Range::reserve(bytes, least, huge_pages)?, 0),
        };
        Ok(Self { base: range.base(), range: Some(range), pool: pool.clone(), used })
    }

    /// Records that the first `words` were used.
    pub(crate) fn set_used(&mut self, words: u64) {
        self.used = self.used.max(words.min(self.words()) as usize * WORD);
    }

    /// Words in the range.
    pub(crate) fn words(&self) -> u64 {
        (self.range.as_ref().map_or(0, Range::len) / WORD) as u64
    }

    /// The atomic word at `off`.
    ///
    /// # Safety
    /// `off < self.words()`, and the word is never part of a byte string.
    #[inline(always)]
    pub(crate) unsafe fn word(&self, off: u32) -> &AtomicU64 {
        // SAFETY: inside the range by the caller's promise.
        let words = unsafe { self.words_from(off) };
        // SAFETY: the caller's promise.
        unsafe { words.word(0) }
    }

    /// The words from word `off` on.
    ///
    /// # Safety
    /// `off < self.words()`.
    #[inline(always)]
    pub(crate) unsafe fn words_from(&self, off: u32) -> Words<'_> {
        // As words from the start: the compiler scales an offset in words where it is used, and not before.
        // SAFETY: inside the range by the caller's promise.
        Words { at: unsafe { self.base.cast::<u64>().add(off as usize) }, storage: PhantomData }
    }

    /// Prefetches the cache line of the word `WORDS` behind word `off`, wherever it lies. Does nothing on targets without prefetch.
    #[inline(always)]
    pub(crate) fn prefetch<const WORDS: usize>(&self, off: u32) {
        prefetch(self.base.wrapping_add((off as usize + WORDS) * WORD));
    }

    /// Poisons the `words` from word `off` on: they must not be used until they are [unpoisoned](Self::unpoison). Only sanitizers notice.
    #[inline(always)]
    pub(crate) fn poison(&self, off: u32, words: u32) {
        poison(self.base.wrapping_add(off as usize * WORD), words as usize * WORD);
    }

    /// Unpoisons the `len` bytes from word `off` on. Only sanitizers notice.
    #[inline(always)]
    pub(crate) fn unpoison(&self, off: u32, len: usize) {
        unpoison(self.base.wrapping_add(off as usize * WORD), len);
    }

    /// The value that [`write_spare`](Self::write_spare) has written to word `off`.
    ///
    /// # Safety
    /// The write happens before this call, and the piece that begins there belongs to the caller alone.
    pub(crate) unsafe fn read_spare(&self, off: u32) -> u64 {
        let at = self.base.wrapping_add(off as usize * WORD);
        // SAFETY: inside the range, aligned, written and nobody else's, by the caller's promise.
        unsafe { at.cast::<u64>().read() }
    }

    /// Writes to the first word of a free piece, which may become an atomic or part of a byte string later.
    ///
    /// # Safety
    /// `off < self.words()`; the piece that begins there belongs to the caller alone, and nothing is stored in it.
    pub(crate) unsafe fn write_spare(&self, off: u32, word: u64) {
        self.unpoison(off, WORD);
        let at = self.base.wrapping_add(off as usize * WORD);
        // SAFETY: inside the range, aligned to words, and nobody else's, by the caller's promise.
        unsafe { at.cast::<u64>().write(word) };
    }

    /// Copies `bytes` to `at` bytes past word `off`.
    ///
    /// # Safety
    /// The target lies in the range, belongs to the caller alone, was not published and is not seen as atomic words.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, off: u32, at: usize, bytes: &[u8]) {
        // SAFETY: inside the range by the caller's promise.
        let to = unsafe { self.base.add(off as usize * WORD + at) };
        let copy = |at: usize, len: usize| {
            let from = bytes.as_ptr().wrapping_add(at);
            // SAFETY: no one else reads or writes the target (caller), so it cannot overlap `bytes` either, which is borrowed.
            unsafe { to.wrapping_add(at).copy_from_nonoverlapping(from, len) };
        };
        match bytes.len() {
            // Two copies that may overlap are quicker than a call, and most keys are that short.
            len @ 16..=32 => {
                copy(0, 16);
                copy(len - 16, 16);
            }
            len => copy(0, len),
        }
    }

    /// The `len` bytes at the offset `at` bytes past word `off`.
    ///
    /// # Safety
    /// The bytes lie in the range, were written, happen before this call, and are not written again while `self` is
    /// shared.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, off: u32, at: usize, len: usize) -> &[u8] {
        // SAFETY: inside the range by the caller's promise.
        let words = unsafe { self.words_from(off) };
        // SAFETY: as above.
        let from = unsafe { words.at.cast::<u8>().add(at) };
        // SAFETY: initialised, published and frozen by the caller's promise; alive as long as `self`.
        unsafe { std::slice::from_raw_parts(from, len) }
    }
}

/// Words of a storage from one on: for a reader of many, who so needs to look up only once where the range begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    at: *mut u64,
    storage: PhantomData<&'a Storage>,
}

impl<'a> Words<'a> {
    /// The atomic word `index` of them.
    ///
    /// # Safety
    /// As for [`Storage::word`].
    #[inline(always)]
    pub(crate) unsafe fn word(self, index: u32) -> &'a AtomicU64 {
        // SAFETY: inside the range by the caller's promise.
        let at = unsafe { self.at.add(index as usize) };
        // SAFETY: the range is aligned to a cache line and offsets count words, so `at` is aligned for `AtomicU64`; the memory
        // lives as long as the storage, and is written before it is read; by the caller's promise every access is atomic.
        unsafe { AtomicU64::from_ptr(at) }
    }

    /// Lane `lane` of the row that begins with word `row`, loaded with `order`, which is Relaxed or Acquire.
    ///
    /// # Safety
    /// The word of the lane lies in the range, was written, and is only ever an atomic.
    #[inline(always)]
    pub(crate) unsafe fn lane(self, row: u32, lane: usize, order: Ordering) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { row::lane(self.row(row), lane, order) }
    }

    /// Those of the first `lanes` lanes of the row that begins with word `row` that pass the test: see [`lanes`](super::lanes). Other bits of the
    /// mask have no meaning.
    ///
    /// # Safety
    /// The first word of the row is a multiple of 8; [`ROW_WORDS`](super::lanes::ROW_WORDS) words from it on lie in the range, were written, and are
    /// only ever atomics.
    #[inline(always)]
    pub(crate) unsafe fn lanes(self, row: u32, test: Test, lanes: usize) -> u32 {
        // SAFETY: the row, by the caller's promise; the range is aligned to a cache line, so the row is aligned to a cache line.
        unsafe { row::mask(self.row(row), test, lanes) }
    }

    #[inline(always)]
    fn row(self, row: u32) -> *const AtomicU64 {
        self.at.wrapping_add(row as usize).cast_const().cast()
    }

    /// Prefetches the cache line of word `index`, wherever it lies. Does nothing on targets without prefetch.
    #[inline(always)]
    pub(crate) fn prefetch(self, index: u32) {
        prefetch(self.at.wrapping_add(index as usize).cast());
    }
}

/// Prefetches the cache line at an address, whatever is there.
#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: part of x86-64's baseline, and only a hint: no address faults, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: part of the baseline here too, and only a hint, as above.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(readonly, nostack, preserves_flags));
    };
    // Other targets do nothing with it.
    let _ = at;
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(range) = self.range.take() {
            self.pool.put(range, self.used);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a refusal of the system that is returned although a smaller range would do, and one that is ignored.
    #[test]
    fn refused_ranges_are_divided_down_to_the_least() {
        // More addresses than any present system gives a process.
        let less = Storage::reserve(1 << 52, 4096, false, None).unwrap();
        assert!(less.words() * (WORD as u64) < 1 << 52);
        drop(less);
        assert!(Storage::reserve(1 << 52, 1 << 52, false, None).is_err());
    }
}
