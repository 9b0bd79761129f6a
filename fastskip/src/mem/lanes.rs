//! Compares a row of 32-bit lanes with one value, all at once.
//!
//! A row is [`ROW_WORDS`] words of two lanes each, the lower half of a word first. The result is a mask: bit `i` is for lane `i`. On x86-64 this
//! takes eight vector comparisons (SSE2, part of the baseline); elsewhere, under Miri and with `--cfg fastskip_portable`, a loop over the words.
//! Both give the same results for a row at rest, which a test shows.
//!
//! Writers may change a row meanwhile. Then a result mixes old and new lanes: it is only a hint, and its users verify the nodes that they find
//! through it.

use crate::tuning::SLOTS;

/// Words in a row: the slots of a block, and one more word.
pub(crate) const ROW_WORDS: u32 = (SLOTS as u32 + 2) / 2;

const _: () = assert!(SLOTS & 1 == 0 && ROW_WORDS <= 16, "a row fills words, and its mask 32 bits");
#[cfg(all(target_arch = "x86_64", not(miri), not(fastskip_portable)))]
const _: () = assert!(ROW_WORDS == 16, "vectors compare two cache lines");

/// The lanes greater than `bound`, among those of `words`.
#[cfg(any(test, miri, fastskip_portable, not(target_arch = "x86_64")))]
pub(crate) fn greater(words: impl Iterator<Item = u64>, bound: i32) -> u32 {
    mask(words, |lane| lane as i32 > bound)
}

/// The lanes equal to `value`, among those of `words`.
#[cfg(any(test, miri, fastskip_portable, not(target_arch = "x86_64")))]
pub(crate) fn equal(words: impl Iterator<Item = u64>, value: u32) -> u32 {
    mask(words, |lane| lane == value)
}

#[cfg(any(test, miri, fastskip_portable, not(target_arch = "x86_64")))]
fn mask(words: impl Iterator<Item = u64>, test: impl Fn(u32) -> bool) -> u32 {
    words.enumerate().fold(0, |mask, (index, word)| {
        let pair = u32::from(test(word as u32)) | u32::from(test((word >> 32) as u32)) << 1;
        mask | pair << (2 * index)
    })
}

#[cfg(all(target_arch = "x86_64", not(miri), not(fastskip_portable)))]
pub(crate) mod vector {
    //! The same by vectors of four lanes.

    use core::arch::asm;
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi32, _mm_cmpgt_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi32,
    };

    /// The lanes greater than `bound`, in the row at `row`.
    ///
    /// # Safety
    /// `row` is aligned to 16 bytes and begins 16 words, initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn greater(row: *const u64, bound: i32) -> u32 {
        // SAFETY: part of the baseline.
        let bounds = unsafe { _mm_set1_epi32(bound) };
        // SAFETY: part of the baseline.
        let test = |lanes| unsafe { _mm_cmpgt_epi32(lanes, bounds) };
        // SAFETY: the caller's promise.
        unsafe { mask(row, test) }
    }

    /// The lanes equal to `value`, in the row at `row`.
    ///
    /// # Safety
    /// As for [`greater`].
    #[inline(always)]
    pub(crate) unsafe fn equal(row: *const u64, value: u32) -> u32 {
        // SAFETY: part of the baseline.
        let values = unsafe { _mm_set1_epi32(value as i32) };
        // SAFETY: part of the baseline.
        let test = |lanes| unsafe { _mm_cmpeq_epi32(lanes, values) };
        // SAFETY: the caller's promise.
        unsafe { mask(row, test) }
    }

    /// # Safety
    /// As for [`greater`].
    #[inline(always)]
    unsafe fn mask(row: *const u64, test: impl Fn(__m128i) -> __m128i) -> u32 {
        let mut mask = 0;
        for line in 0..2 {
            let line_at = row.wrapping_add(8 * line);
            // SAFETY: inside the row, two words from an even one on.
            let a = test(unsafe { load::<0>(line_at) });
            // SAFETY: as above.
            let b = test(unsafe { load::<16>(line_at) });
            // SAFETY: as above.
            let c = test(unsafe { load::<32>(line_at) });
            // SAFETY: as above.
            let d = test(unsafe { load::<48>(line_at) });
            // SAFETY: packing and collecting signs are part of the baseline.
            let low = unsafe { _mm_packs_epi32(a, b) };
            // SAFETY: as above.
            let high = unsafe { _mm_packs_epi32(c, d) };
            // SAFETY: as above.
            let bytes = unsafe { _mm_packs_epi16(low, high) };
            // SAFETY: as above.
            mask |= (unsafe { _mm_movemask_epi8(bytes) } as u32) << (16 * line);
        }
        mask
    }

    /// Loads lane `lane` of the row at `row`.
    ///
    /// Only half of a word is loaded, for which Rust has no atomic either. As assembly, the load is for the language an Acquire load of the word, and
    /// a shift: on x86-64 every load acquires, and the compiler moves no access to memory across it.
    ///
    /// # Safety
    /// The lane is in the row, which begins words that are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn lane_acquired(row: *const u64, lane: usize) -> u32 {
        let value;
        // SAFETY: reads the lane and nothing else (caller).
        unsafe {
            asm!("mov {value:e}, dword ptr [{row} + 4 * {lane}]", value = out(reg) value, row = in(reg) row, lane = in(reg) lane, options(nostack, preserves_flags));
        }
        value
    }

    /// [`lane_acquired`], as if with a Relaxed load.
    ///
    /// # Safety
    /// As there.
    #[inline(always)]
    pub(crate) unsafe fn lane(row: *const u64, lane: usize) -> u32 {
        let value;
        // SAFETY: reads the lane and nothing else (caller).
        unsafe {
            asm!("mov {value:e}, dword ptr [{row} + 4 * {lane}]", value = out(reg) value, row = in(reg) row, lane = in(reg) lane, options(readonly, nostack, preserves_flags));
        }
        value
    }

    /// Loads two words at once. Rust has no atomic of this width. As assembly, the load is for the language the same as two relaxed loads of the
    /// words, and its users rely on nothing more.
    ///
    /// # Safety
    /// `OFFSET` bytes past `at`, aligned to 16 bytes, lie two initialised words that are only ever accessed as atomics.
    #[inline(always)]
    unsafe fn load<const OFFSET: usize>(at: *const u64) -> __m128i {
        let lanes;
        // SAFETY: reads the two words and nothing else (caller).
        unsafe {
            asm!("movdqa {lanes}, [{at} + {offset}]", lanes = out(xmm_reg) lanes, at = in(reg) at, offset = const OFFSET,
                 options(readonly, nostack, preserves_flags));
        }
        lanes
    }

    #[cfg(test)]
    mod tests {
        use proptest::prelude::*;

        #[repr(align(64))]
        struct Row([u64; 16]);

        proptest! {
            /// Catches a mask whose bits differ from the portable one's, or an unsigned comparison.
            #[test]
            fn vectors_answer_as_the_portable_loop_does(lanes in prop::array::uniform32(prop_oneof![
                Just(0_u32), Just(7), Just(u32::MAX), Just(1 << 31), Just(i32::MAX as u32), any::<u32>()
            ]), value in prop_oneof![Just(0_u32), Just(7), Just(u32::MAX), Just(1 << 31), any::<u32>()]) {
                let mut row = Row([0; 16]);
                for (word, pair) in row.0.iter_mut().zip(lanes.chunks(2)) {
                    *word = u64::from(pair[0]) | u64::from(pair[1]) << 32;
                }
                // SAFETY: sixteen aligned words, this test's alone.
                let greater = unsafe { super::greater(row.0.as_ptr(), value as i32) };
                prop_assert_eq!(greater, super::super::greater(row.0.iter().copied(), value as i32));
                // SAFETY: as above.
                let equal = unsafe { super::equal(row.0.as_ptr(), value) };
                prop_assert_eq!(equal, super::super::equal(row.0.iter().copied(), value));
            }
        }
    }
}
