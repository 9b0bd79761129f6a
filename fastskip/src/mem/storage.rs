//! The memory of the arena: one reserved address range, accessed as 8-byte words or as byte strings.
//!
//! For the whole life of the table, a word is used either as an atomic or as part of a byte string, never as both. The initial contents of a range
//! are undefined: only written words are read. The system commits pages at first touch. The loom models in `loom-tests` replace this file by one that
//! checks these rules.

use core::marker::PhantomData;

use super::lanes::{Test, row};
pub(crate) use super::poison::REDZONE_WORDS;
use super::poison::{poison, unpoison};
use super::range::Range;
pub use super::range::TablePool;
pub(crate) use super::range::{UNLIMITED_BYTES, unlimited_bytes};
use crate::error::Refusal;
use crate::sync::{AtomicU64, Ordering};

/// Bytes in a word, the unit of every offset.
pub(crate) const WORD: usize = 8;

/// Range sizes are multiples of this unit, so that a pool finds ranges of the same size.
const PAGE: usize = 4 << 10;

/// The number of words that a 32-bit offset can address: 32 GiB.
pub(crate) const MAX_WORDS: u64 = 1 << 32;

/// A range of memory that one table uses, and the pool to which the range returns.
#[derive(Debug)]
pub(crate) struct Storage {
    /// `None` only during `drop`.
    range: Option<Range>,
    /// The address where the range begins.
    base: *mut u8,
    pool: TablePool,
    /// The number of bytes from the base on that this table or an earlier one has used.
    used: usize,
}

// SAFETY: `base` is the address of the range, which may be shared; the unsafe methods state the rules for accesses.
unsafe impl Send for Storage {}
// SAFETY: as above.
unsafe impl Sync for Storage {}

impl Storage {
    /// Takes `bytes` from the pool or reserves them; the size is divided repeatedly while the system refuses, but is never less than `least`.
    ///
    /// # Errors
    /// Returns the last error of the system.
    pub(crate) fn reserve(
        bytes: usize,
        least: usize,
        huge_pages: bool,
        pool: Option<&TablePool>,
    ) -> Result<Self, Refusal> {
        let (bytes, least) = (bytes.next_multiple_of(PAGE), least.next_multiple_of(PAGE));
        #[cfg(feature = "std")]
        let pool = pool.unwrap_or_else(|| TablePool::shared());
        // Without `std`, nothing is kept: the allocator is at hand.
        #[cfg(not(feature = "std"))]
        let none = TablePool::new(0);
        #[cfg(not(feature = "std"))]
        let pool = pool.unwrap_or(&none);
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

    /// The number of words in the range.
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
        // The cast precedes the addition, so that the compiler scales an offset only where it is used. SAFETY: inside the range by the caller's
        // promise.
        Words { at: unsafe { self.base.cast::<u64>().add(off as usize) }, storage: PhantomData }
    }

    /// Prefetches the cache line `WORDS` words after word `off`; it may lie outside the range. Does nothing on targets without prefetch.
    #[inline(always)]
    pub(crate) fn prefetch<const WORDS: usize>(&self, off: u32) {
        // Wraps: the end of the range may be the end of the address space.
        prefetch(self.base.cast::<u64>().wrapping_add(off as usize).wrapping_add(WORDS).cast());
    }

    /// Poisons the `words` from word `off` on: they must not be used until they are [unpoisoned](Self::unpoison). Without a sanitizer this has no
    /// effect.
    #[inline(always)]
    pub(crate) fn poison(&self, off: u32, words: u32) {
        poison(self.base.wrapping_add(off as usize * WORD), words as usize * WORD);
    }

    /// Unpoisons the `len` bytes from word `off` on. Without a sanitizer this has no effect.
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
        // SAFETY: inside the range, aligned, written, and used by no other thread, by the caller's promise.
        unsafe { at.cast::<u64>().read() }
    }

    /// Writes to the first word of a free piece, which may become an atomic or part of a byte string later.
    ///
    /// # Safety
    /// `off < self.words()`; the piece that begins there belongs to the caller alone, and nothing is stored in it.
    pub(crate) unsafe fn write_spare(&self, off: u32, word: u64) {
        self.unpoison(off, WORD);
        let at = self.base.wrapping_add(off as usize * WORD);
        // SAFETY: inside the range, aligned to words, and used by no other thread, by the caller's promise.
        unsafe { at.cast::<u64>().write(word) };
    }

    /// Copies `bytes` to `at` bytes past word `off`.
    ///
    /// # Safety
    /// The destination lies in the range, belongs to the caller alone, was not published and is never accessed as atomic words.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, off: u32, at: usize, bytes: &[u8]) {
        // SAFETY: inside the range by the caller's promise.
        let to = unsafe { self.base.add(off as usize * WORD + at) };
        let copy = |at: usize, len: usize| {
            let from = bytes.as_ptr().wrapping_add(at);
            // SAFETY: no other thread reads or writes the destination (caller), so it cannot overlap `bytes`, which are borrowed.
            unsafe { to.wrapping_add(at).copy_from_nonoverlapping(from, len) };
        };
        match bytes.len() {
            // Two copies that may overlap are faster than a call, and most keys have such a length.
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
    /// The bytes lie in the range; they were written before this call (happens-before), and are not written again while `self` is shared.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, off: u32, at: usize, len: usize) -> &[u8] {
        // SAFETY: inside the range by the caller's promise.
        let words = unsafe { self.words_from(off) };
        // SAFETY: as above.
        let from = unsafe { words.at.cast::<u8>().add(at) };
        // SAFETY: initialised, published and never changed again, by the caller's promise; alive as long as `self`.
        unsafe { core::slice::from_raw_parts(from, len) }
    }
}

/// The words of a storage from one word on: a caller that reads many of them loads the start of the range only once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words<'a> {
    at: *mut u64,
    storage: PhantomData<&'a Storage>,
}

impl<'a> Words<'a> {
    /// The atomic word `index`, counted from the first of these words.
    ///
    /// # Safety
    /// The same conditions as for [`Storage::word`].
    #[inline(always)]
    pub(crate) unsafe fn word(self, index: u32) -> &'a AtomicU64 {
        // SAFETY: inside the range by the caller's promise.
        let at = unsafe { self.at.add(index as usize) };
        // SAFETY: the range is aligned to a cache line and offsets count words, so `at` is aligned for `AtomicU64`. The memory lives as long as the
        // storage, and is written before it is read; by the caller's promise every access is atomic.
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

    /// A mask of the first `lanes` lanes of the row that pass the test; the row begins with word `row`. See [`lanes`](super::lanes). Other bits of
    /// the mask have no meaning.
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

    /// Prefetches the cache line of word `index`, which may lie outside the range. Does nothing on targets without prefetch.
    #[inline(always)]
    pub(crate) fn prefetch(self, index: u32) {
        prefetch(self.at.wrapping_add(index as usize).cast());
    }
}

/// Prefetches the cache line at an address, which need not be mapped.
#[inline(always)]
fn prefetch(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", target_feature = "sse", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: part of the baseline of x86-64, and only a hint: no address faults, and nothing is read.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(all(target_arch = "aarch64", not(miri)))]
    // SAFETY: part of the baseline of this target too, and only a hint, as above.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{at}]", at = in(reg) at, options(readonly, nostack, preserves_flags));
    };
    // Other targets ignore the address.
    let _ = at;
}

impl Drop for Storage {
    fn drop(&mut self) {
        if let Some(range) = self.range.take() {
            self.pool.put(range, self.used);
        }
    }
}

#[cfg(all(test, target_pointer_width = "64"))]
mod tests {
    use super::*;

    /// Catches a refusal of the system that is returned although a smaller range would be granted, and a refusal that is ignored.
    #[test]
    fn refused_ranges_are_divided_down_to_the_least() {
        // More addresses than any present system gives to a process.
        let less = Storage::reserve(1 << 52, 4096, false, None).unwrap();
        assert!(less.words() * (WORD as u64) < 1 << 52);
        drop(less);
        assert!(Storage::reserve(1 << 52, 1 << 52, false, None).is_err());
    }
}
