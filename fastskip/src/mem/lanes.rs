//! Compares all 32-bit lanes of a row with one value at once.
//!
//! A row is [`ROW_WORDS`] words of two lanes each, the lower half of a word first. The result is a mask: bit `i` belongs to lane `i`. On x86-64 and
//! little-endian aarch64 this takes eight vector comparisons (SSE2 and NEON, parts of the baselines except those of kernels); elsewhere, under Miri and
//! with `--cfg fastskip_portable`, a loop over the words. All these implementations give the same results for a row at rest; a test checks this.
//!
//! Writers may change a row meanwhile. Then the result mixes old and new lanes: it is only a hint, and callers verify the nodes that they find.

use crate::sync::{AtomicU64, Ordering};
use crate::tuning::SLOTS;

/// The number of words in a row: two lanes each, for the slots of a block and the two lanes before them.
pub(crate) const ROW_WORDS: u32 = (SLOTS as u32 + 2) / 2;

const _: () = assert!(SLOTS & 1 == 0 && ROW_WORDS <= 16, "a row fills words, and its mask 32 bits");

/// A test of each lane.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Test {
    /// Whether the lane, as a signed number, is greater than this one.
    Greater(i32),
    Equal(i32),
}

/// The lanes of `words` that pass the test.
#[allow(dead_code, reason = "used where no vectors are")]
pub(crate) fn mask(words: impl Iterator<Item = u64>, test: Test) -> u32 {
    let passes = |lane: u32| match test {
        Test::Greater(bound) => lane as i32 > bound,
        Test::Equal(value) => lane as i32 == value,
    };
    words.enumerate().fold(0, |mask, (index, word)| {
        let pair = u32::from(passes(word as u32)) | u32::from(passes((word >> 32) as u32)) << 1;
        mask | pair << (2 * index)
    })
}

/// Lane `lane` of the row at `row`; its word is loaded with `order`.
///
/// # Safety
/// The lane is in the row, and the words of the row are initialised.
#[allow(dead_code, reason = "x86-64 loads less than a word")]
#[inline(always)]
unsafe fn lane_of_word(row: *const AtomicU64, lane: usize, order: Ordering) -> u32 {
    // SAFETY: a word of the row (caller).
    let word = unsafe { &*row.wrapping_add(lane / 2) }.load(order);
    (word >> (32 * (lane & 1))) as u32
}

/// Rows in memory, word by word.
#[cfg(any(
    miri,
    fastskip_portable,
    not(any(
        all(target_arch = "x86_64", target_feature = "sse2"),
        all(target_arch = "aarch64", target_feature = "neon", target_endian = "little")
    ))
))]
#[allow(dead_code, reason = "the models have a storage of their own")]
pub(crate) mod row {
    use crate::mem::lanes::{self, Test};
    use crate::sync::{AtomicU64, Ordering};

    /// A mask of the first `lanes` lanes of the row at `row` that pass the test.
    ///
    /// # Safety
    /// `row` points to all words that these lanes fill; the words are initialised, and only ever accessed as atomics.
    pub(crate) unsafe fn mask(row: *const AtomicU64, test: Test, lanes: usize) -> u32 {
        let words = (0..lanes.div_ceil(2)).map(|index| {
            // SAFETY: a word of the row (caller).
            unsafe { &*row.wrapping_add(index) }.load(Ordering::Relaxed)
        });
        lanes::mask(words, test)
    }

    /// Lane `lane` of the row at `row`, loaded with `order`.
    ///
    /// # Safety
    /// The lane is in the row; the words of the row are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn lane(row: *const AtomicU64, lane: usize, order: Ordering) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { lanes::lane_of_word(row, lane, order) }
    }
}

/// Rows in memory, by vectors of four lanes: SSE2.
#[cfg(all(target_arch = "x86_64", target_feature = "sse2", not(any(miri, fastskip_portable))))]
pub(crate) mod row {
    use core::arch::asm;
    use core::arch::x86_64::{
        __m128i, _mm_cmpeq_epi32, _mm_cmpgt_epi32, _mm_movemask_epi8, _mm_packs_epi16, _mm_packs_epi32, _mm_set1_epi32,
    };

    use crate::mem::lanes::{self, Test};
    use crate::sync::{AtomicU64, Ordering};

    const _: () = assert!(lanes::ROW_WORDS == 16, "vectors compare two cache lines");

    /// The lanes of the row at `row` that pass the test.
    ///
    /// # Safety
    /// `row` is aligned to 16 bytes; 16 words from it on are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn mask(row: *const AtomicU64, test: Test, _: usize) -> u32 {
        let (Test::Greater(value) | Test::Equal(value)) = test;
        // SAFETY: SSE2 is part of the baseline.
        let values = unsafe { _mm_set1_epi32(value) };
        let test = |lanes| match test {
            // SAFETY: SSE2 is part of the baseline.
            Test::Greater(_) => unsafe { _mm_cmpgt_epi32(lanes, values) },
            // SAFETY: SSE2 is part of the baseline.
            Test::Equal(_) => unsafe { _mm_cmpeq_epi32(lanes, values) },
        };
        let mut mask = 0;
        for line in 0..2 {
            let line_at = row.wrapping_add(8 * line);
            // SAFETY: two words inside the row, the first of which has an even index.
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

    /// Lane `lane` of the row at `row`, loaded with `order`, which is Relaxed or Acquire.
    ///
    /// Only half of a word is loaded, and Rust has no atomic access for half of a word. The load is written in assembly; for the language it is a
    /// load of the whole word, and a shift. On x86-64 every load acquires. For an Acquire load, the compiler must not move other memory accesses
    /// across the assembly, so the assembly is not marked `readonly`.
    ///
    /// # Safety
    /// The lane is in the row; the words of the row are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn lane(row: *const AtomicU64, lane: usize, order: Ordering) -> u32 {
        let value;
        if order == Ordering::Relaxed {
            // SAFETY: reads the lane and nothing else (caller).
            unsafe {
                asm!("mov {value:e}, dword ptr [{row} + 4 * {lane}]", value = out(reg) value, row = in(reg) row,
                     lane = in(reg) lane, options(readonly, nostack, preserves_flags));
            }
        } else {
            // SAFETY: as above.
            unsafe {
                asm!("mov {value:e}, dword ptr [{row} + 4 * {lane}]", value = out(reg) value, row = in(reg) row,
                     lane = in(reg) lane, options(nostack, preserves_flags));
            }
        }
        value
    }

    /// Loads two words at once. Rust has no atomic of this width. The load is written in assembly; for the language it is the same as two relaxed
    /// loads of the words, and the callers rely on nothing more.
    ///
    /// # Safety
    /// `OFFSET` bytes past `at`, at a multiple of 16 bytes, are two initialised words that are only ever accessed as atomics.
    #[inline(always)]
    unsafe fn load<const OFFSET: usize>(at: *const AtomicU64) -> __m128i {
        let lanes;
        // SAFETY: reads the two words and nothing else (caller).
        unsafe {
            asm!("movdqa {lanes}, [{at} + {offset}]", lanes = out(xmm_reg) lanes, at = in(reg) at, offset = const OFFSET,
                 options(readonly, nostack, preserves_flags));
        }
        lanes
    }
}

/// Rows in memory, by vectors of four lanes: NEON.
#[cfg(all(
    target_arch = "aarch64",
    target_feature = "neon",
    target_endian = "little",
    not(any(miri, fastskip_portable))
))]
pub(crate) mod row {
    use core::arch::aarch64::{
        int32x4_t, uint8x16_t, uint32x4_t, vandq_u8, vceqq_s32, vcgtq_s32, vdupq_n_s32, vdupq_n_u64, vmovn_high_u16,
        vmovn_high_u32, vmovn_u16, vmovn_u32, vreinterpretq_u8_u64,
    };
    use core::arch::asm;

    use crate::mem::lanes::{self, Test};
    use crate::sync::{AtomicU64, Ordering};

    const _: () = assert!(lanes::ROW_WORDS == 16, "vectors compare two cache lines");

    /// The lanes of the row at `row` that pass the test.
    ///
    /// # Safety
    /// 16 words from `row` on are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn mask(row: *const AtomicU64, test: Test, _: usize) -> u32 {
        let (Test::Greater(value) | Test::Equal(value)) = test;
        // SAFETY: NEON is part of the baseline.
        let values = unsafe { vdupq_n_s32(value) };
        let test = |lanes| match test {
            // SAFETY: NEON is part of the baseline.
            Test::Greater(_) => unsafe { vcgtq_s32(lanes, values) },
            // SAFETY: NEON is part of the baseline.
            Test::Equal(_) => unsafe { vceqq_s32(lanes, values) },
        };
        // SAFETY: the first half of the row.
        let low = unsafe { bits(row, test) };
        // SAFETY: the second half.
        let high = unsafe { bits(row.wrapping_add(8), test) };
        let mask;
        // Each addition of neighbouring bytes halves their number. After three sums, a byte has the bits of eight lanes. Assembly, because with
        // intrinsics the compiler detects that the summands have no common bits, and generates three times the instructions. SAFETY: accesses no
        // memory; NEON is part of the baseline.
        unsafe {
            asm!("addp {low:v}.16b, {low:v}.16b, {high:v}.16b",
                 "addp {low:v}.16b, {low:v}.16b, {low:v}.16b",
                 "addp {low:v}.16b, {low:v}.16b, {low:v}.16b",
                 "fmov {mask:w}, {low:s}",
                 low = inout(vreg) low => _, high = in(vreg) high, mask = lateout(reg) mask,
                 options(pure, nomem, nostack, preserves_flags));
        }
        mask
    }

    /// One byte for each of the 16 lanes at `at`: bit `i % 8` is set for lane `i` if the lane passes the test; all other bits are 0.
    ///
    /// # Safety
    /// 8 words from `at` on are initialised and only ever accessed as atomics.
    #[inline(always)]
    unsafe fn bits(at: *const AtomicU64, test: impl Fn(int32x4_t) -> uint32x4_t) -> uint8x16_t {
        // SAFETY: the first half of the lanes.
        let (a, b) = unsafe { load::<0>(at) };
        // SAFETY: the second half.
        let (c, d) = unsafe { load::<32>(at) };
        // SAFETY: narrowing is part of the baseline.
        let low = unsafe { vmovn_u32(test(a)) };
        // SAFETY: as above.
        let low = unsafe { vmovn_high_u32(low, test(b)) };
        // SAFETY: as above.
        let high = unsafe { vmovn_u32(test(c)) };
        // SAFETY: as above.
        let high = unsafe { vmovn_high_u32(high, test(d)) };
        // SAFETY: as above.
        let bytes = unsafe { vmovn_u16(low) };
        // SAFETY: as above.
        let bytes = unsafe { vmovn_high_u16(bytes, high) };
        // SAFETY: NEON is part of the baseline.
        let bit_of_lane = unsafe { vdupq_n_u64(0x8040_2010_0804_0201) };
        // SAFETY: another view of the same bits.
        let bit_of_lane = unsafe { vreinterpretq_u8_u64(bit_of_lane) };
        // SAFETY: NEON is part of the baseline.
        unsafe { vandq_u8(bytes, bit_of_lane) }
    }

    /// Lane `lane` of the row at `row`, loaded with `order`, which is Relaxed or Acquire.
    ///
    /// A Relaxed load is written in assembly, because Rust has no atomic access for half of a word: for the language it is a Relaxed load of the
    /// word, and a shift. An Acquire load needs more, because an ordinary load of aarch64 does not acquire.
    ///
    /// # Safety
    /// The lane is in the row; the words of the row are initialised and only ever accessed as atomics.
    #[inline(always)]
    pub(crate) unsafe fn lane(row: *const AtomicU64, lane: usize, order: Ordering) -> u32 {
        if order != Ordering::Relaxed {
            // SAFETY: the caller's promise.
            return unsafe { lanes::lane_of_word(row, lane, order) };
        }
        let value;
        // SAFETY: reads the lane and nothing else (caller).
        unsafe {
            asm!("ldr {value:w}, [{row}, {lane}, lsl 2]", value = out(reg) value, row = in(reg) row, lane = in(reg) lane, options(readonly, nostack, preserves_flags));
        }
        value
    }

    /// Loads four words at once. Rust has no atomic of this width. The load is written in assembly; for the language it is the same as four relaxed
    /// loads of the words (the processor loads a vector as two words, each at once), and the callers rely on nothing more.
    ///
    /// # Safety
    /// `OFFSET` bytes past `at`, at a multiple of 8 bytes, are four initialised words that are only ever accessed as atomics.
    #[inline(always)]
    unsafe fn load<const OFFSET: usize>(at: *const AtomicU64) -> (int32x4_t, int32x4_t) {
        let (low, high);
        // SAFETY: reads the four words and nothing else (caller).
        unsafe {
            asm!("ldp {low:q}, {high:q}, [{at}, {offset}]", low = out(vreg) low, high = out(vreg) high, at = in(reg) at, offset = const OFFSET,
                 options(readonly, nostack, preserves_flags));
        }
        (low, high)
    }
}

#[cfg(test)]
mod tests;
