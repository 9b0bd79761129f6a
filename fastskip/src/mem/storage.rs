//! The bytes under the arena: one reserved address range, seen as 8-byte words or as byte strings.
//!
//! A word is used either as an atomic or as part of a byte string for the whole life of the table, never both.
//! The range is zero when it is handed out for the first time. Pages are committed by the system at first touch.
//! The models in `loom-tests` replace this file by one that checks those rules.

use std::io;

use memmap2::{MmapMut, MmapOptions, MmapRaw};

use super::lanes;
pub(crate) use super::poison::REDZONE_WORDS;
use super::poison::{poison, unpoison};
use crate::sync::AtomicU64;

/// Bytes in a word, the unit of every offset.
pub(crate) const WORD: usize = 8;

/// The most words a 32-bit offset reaches: 32 GiB.
pub(crate) const MAX_WORDS: u64 = 1 << 32;

/// A size of huge page on the common 64-bit systems. Tables smaller than one keep ordinary pages.
const HUGE_PAGE: usize = 2 << 20;

/// A reserved range of zeroed memory.
#[derive(Debug)]
pub(crate) struct Storage {
    map: MmapRaw,
}

impl Storage {
    /// Reserves `bytes`, or half of it again and again while the system refuses, but no less than `least`.
    ///
    /// # Errors
    /// The system's last refusal.
    pub(crate) fn reserve(bytes: usize, least: usize) -> io::Result<Self> {
        let mut len = bytes.max(least).next_multiple_of(WORD);
        loop {
            match Self::map(len) {
                Ok(map) => return Ok(Self { map: map.into() }),
                Err(refusal) if len / 2 < least => return Err(refusal),
                Err(_) => len = (len / 2).next_multiple_of(WORD),
            }
        }
    }

    fn map(len: usize) -> io::Result<MmapMut> {
        // Without a claim on swap the kernel counts a page when it is touched, not when it is reserved.
        MmapOptions::new().len(len).no_reserve_swap().map_anon()
    }

    /// Asks for huge pages past the first one, so that a table which stays small stays small in memory too.
    /// A system without them ignores the wish.
    pub(crate) fn advise_huge_pages(&self) {
        #[cfg(target_os = "linux")]
        if self.map.len() > 2 * HUGE_PAGE {
            let advice = memmap2::Advice::HugePage;
            // Refused where the kernel was built without them: the table works the same, only slower.
            drop(self.map.advise_range(advice, HUGE_PAGE, self.map.len() - HUGE_PAGE));
        }
        #[cfg(not(target_os = "linux"))]
        let _ = HUGE_PAGE;
    }

    /// Words in the range.
    pub(crate) fn words(&self) -> u64 {
        (self.map.len() / WORD) as u64
    }

    /// The atomic word at `off`.
    ///
    /// # Safety
    /// `off < self.words()`, and the word is never part of a byte string.
    #[inline(always)]
    pub(crate) unsafe fn word(&self, off: u32) -> &AtomicU64 {
        // SAFETY: inside the range by the caller's promise.
        let at = unsafe { self.map.as_mut_ptr().add(off as usize * WORD) };
        // SAFETY: the mapping is page aligned and `off` counts words, so `at` is aligned for `AtomicU64`; the memory is
        // initialised (zero at first) and lives as long as `self`; by the caller's promise every access is atomic.
        unsafe { AtomicU64::from_ptr(at.cast()) }
    }

    /// Which of the first `lanes` lanes of the row that begins with word `off` are greater than `bound`: see [`lanes`]. What the
    /// mask says of other lanes means nothing.
    ///
    /// # Safety
    /// `off` is a multiple of 8; [`lanes::ROW_WORDS`] words from it on lie in the range, were written, and are only ever atomics.
    #[inline(always)]
    pub(crate) unsafe fn lanes_greater(&self, off: u32, bound: i32, lanes: usize) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(fastskip_portable)))]
        {
            let _ = lanes;
            // SAFETY: the row, says the caller; the mapping is page aligned, so the row is aligned to a cache line.
            unsafe { lanes::vector::greater(self.row(off), bound) }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(fastskip_portable))))]
        // SAFETY: the row, says the caller.
        lanes::greater(unsafe { self.words_of_row(off, lanes) }, bound)
    }

    /// Which of the first `lanes` lanes of the row that begins with word `off` are equal to `value`.
    ///
    /// # Safety
    /// As for [`lanes_greater`](Self::lanes_greater).
    #[inline(always)]
    pub(crate) unsafe fn lanes_equal(&self, off: u32, value: u32, lanes: usize) -> u32 {
        #[cfg(all(target_arch = "x86_64", not(miri), not(fastskip_portable)))]
        {
            let _ = lanes;
            // SAFETY: as in `lanes_greater`.
            unsafe { lanes::vector::equal(self.row(off), value) }
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri), not(fastskip_portable))))]
        // SAFETY: the row, says the caller.
        lanes::equal(unsafe { self.words_of_row(off, lanes) }, value)
    }

    #[cfg(all(target_arch = "x86_64", not(miri), not(fastskip_portable)))]
    #[inline(always)]
    fn row(&self, off: u32) -> *const u64 {
        self.map.as_ptr().wrapping_add(off as usize * WORD).cast()
    }

    #[cfg(not(all(target_arch = "x86_64", not(miri), not(fastskip_portable))))]
    /// # Safety
    /// As for [`lanes_greater`](Self::lanes_greater).
    unsafe fn words_of_row(&self, off: u32, lanes: usize) -> impl Iterator<Item = u64> {
        (off..off + lanes.div_ceil(2) as u32).map(|off| {
            // SAFETY: inside the row, whose words are atomics, says the caller.
            unsafe { self.word(off) }.load(crate::sync::Ordering::Relaxed)
        })
    }

    /// Asks the processor for the cache line of word `off`, whatever stands there. Does nothing where it cannot be asked.
    #[inline(always)]
    pub(crate) fn prefetch(&self, off: u32) {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
            let at = self.map.as_ptr().wrapping_add(off as usize * WORD);
            // SAFETY: part of x86-64's baseline, and only a hint: no address faults, and nothing is read.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
        }
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        let _ = off;
    }

    /// Poisons the `words` from word `off` on: no use of them is right until they are [unpoisoned](Self::unpoison). Only sanitizers notice.
    #[inline(always)]
    pub(crate) fn poison(&self, off: u32, words: u32) {
        poison(self.map.as_ptr().wrapping_add(off as usize * WORD), words as usize * WORD);
    }

    /// Unpoisons the `len` bytes from word `off` on. Only sanitizers notice.
    #[inline(always)]
    pub(crate) fn unpoison(&self, off: u32, len: usize) {
        unpoison(self.map.as_ptr().wrapping_add(off as usize * WORD), len);
    }

    /// Copies `bytes` to `at` bytes past word `off`.
    ///
    /// # Safety
    /// The target lies in the range, belongs to the caller alone, was not published and is not seen as atomic words.
    #[inline(always)]
    pub(crate) unsafe fn write(&self, off: u32, at: usize, bytes: &[u8]) {
        // SAFETY: inside the range by the caller's promise.
        let to = unsafe { self.map.as_mut_ptr().add(off as usize * WORD + at) };
        // SAFETY: no one else reads or writes the target (caller), so it cannot overlap `bytes` either, which is borrowed.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// The `len` bytes that stand `at` bytes past word `off`.
    ///
    /// # Safety
    /// The bytes lie in the range, were written, happen before this call, and are not written again while `self` is
    /// shared.
    #[inline(always)]
    pub(crate) unsafe fn read(&self, off: u32, at: usize, len: usize) -> &[u8] {
        // SAFETY: inside the range by the caller's promise.
        let from = unsafe { self.map.as_ptr().add(off as usize * WORD + at) };
        // SAFETY: initialised, published and frozen by the caller's promise; alive as long as `self`.
        unsafe { std::slice::from_raw_parts(from, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a refusal of the system that is passed on although a smaller range would do, and one that is not.
    #[test]
    fn refused_ranges_are_halved_down_to_the_least() {
        // More addresses than any system of today gives a process.
        let halved = Storage::reserve(1 << 52, 4096).unwrap();
        assert!(halved.words() * (WORD as u64) < 1 << 52);
        drop(halved);
        assert!(Storage::reserve(1 << 52, 1 << 52).is_err());
    }
}
