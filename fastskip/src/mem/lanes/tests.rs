//! Compares the vector implementations with the portable loop.
#![cfg(not(any(miri, fastskip_portable)))]

use proptest::prelude::*;

use super::*;

#[repr(align(64))]
struct Row([AtomicU64; ROW_WORDS as usize]);

proptest! {
    /// Catches a mask whose bits differ from those of the portable loop, an unsigned comparison, and lanes in another order.
    #[test]
    fn vectors_answer_as_the_portable_loop_does(lanes in prop::array::uniform32(prop_oneof![
        Just(0_u32), Just(7), Just(u32::MAX), Just(1 << 31), Just(i32::MAX as u32), any::<u32>()
    ]), value in prop_oneof![Just(0_u32), Just(7), Just(u32::MAX), Just(1 << 31), any::<u32>()]) {
        let word = |index: usize| u64::from(lanes[2 * index]) | u64::from(lanes[2 * index + 1]) << 32;
        let row = Row(std::array::from_fn(|index| AtomicU64::new(word(index))));
        let words = (0..row.0.len()).map(word);
        for test in [Test::Greater(value as i32), Test::Equal(value as i32)] {
            // SAFETY: sixteen aligned words that only this test uses.
            let found = unsafe { row::mask(row.0.as_ptr(), test, lanes.len()) };
            prop_assert_eq!(found, mask(words.clone(), test));
        }
        for (index, lane) in lanes.into_iter().enumerate() {
            for order in [Ordering::Relaxed, Ordering::Acquire] {
                // SAFETY: as above.
                prop_assert_eq!(unsafe { row::lane(row.0.as_ptr(), index, order) }, lane);
            }
        }
    }
}
