//! SplitMix64: the one source of everything random here, always from a fixed seed, so that every run has the same input.

/// The seed of every input.
pub(crate) const SEED: u64 = 0x5eed_fa57_5c1f_0001;

const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Scatters `x` over all numbers. No two numbers meet: every step can be undone.
pub(crate) fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// The number at `index` of the sequence that begins with `seed`. No two indices have the same.
pub(crate) fn number(seed: u64, index: u64) -> u64 {
    mix(seed.wrapping_add(index.wrapping_add(1).wrapping_mul(STEP)))
}

/// Puts `items` into a random order.
pub(crate) fn shuffle<T>(seed: u64, items: &mut [T]) {
    for (step, last) in (1..items.len()).rev().enumerate() {
        // The high half of the product: unbiased enough for lengths far below 2^64.
        let other = (u128::from(number(seed, step as u64)) * (last as u128 + 1)) >> 64;
        items.swap(last, other as usize);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_that_of_splitmix64() {
        // Catches a slip in a constant. The numbers are those of the reference implementation for seed 1234567.
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        assert_eq!([0, 1, 2].map(|index| number(1_234_567, index)), expected);
    }

    #[test]
    fn shuffling_keeps_every_item_and_moves_most() {
        // Catches lookups that leave keys out, and lookups in the order of the inserts.
        let mut items: Vec<usize> = (0..1000).collect();
        shuffle(SEED, &mut items);
        let stayed = items.iter().enumerate().filter(|(index, item)| index == *item).count();
        assert!(stayed < 20, "{stayed} of 1000 stayed where they were (seed {SEED:#x})");
        items.sort_unstable();
        assert_eq!(items, (0..1000).collect::<Vec<_>>());
    }
}
