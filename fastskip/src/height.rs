//! How many levels a node is linked at.
//!
//! Each further level with probability 1/2: since most overshoots are settled by the link alone, the shorter forward
//! walks of 1/2 beat the smaller towers of the customary 1/4 (`docs/src/results.md` has both).

/// The most levels a tower has. 2^28 entries fill the widest arena with nodes of 128 bytes; past that, searches only
/// grow slower at the top level.
pub(crate) const MAX_HEIGHT: usize = 28;

/// The height drawn by `ticket`, from 1 to [`MAX_HEIGHT`]. Tickets are numbers that a shard gives out once each, and
/// `seed` differs from table to table, so an attacker who chooses keys cannot choose heights.
#[inline]
pub(crate) fn height(seed: u64, ticket: u64) -> usize {
    let bits = mix(seed ^ ticket) | 1 << (MAX_HEIGHT - 1);
    bits.trailing_zeros() as usize + 1
}

/// The finaliser of splitmix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
pub(crate) const fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a draw that is biased, or leaves the range of towers.
    #[test]
    fn heights_halve_from_level_to_level() {
        let mut count = [0_u32; MAX_HEIGHT + 1];
        for ticket in 0..1 << 20 {
            count[height(7, ticket)] += 1;
        }
        assert_eq!(count[0], 0);
        for (h, seen) in count.iter().enumerate().skip(1).take(10) {
            let expected = f64::from(1 << 20) / f64::powi(2.0, h as i32);
            assert!((f64::from(*seen) / expected - 1.0).abs() < 0.1, "height {h}: {seen} of {expected}");
        }
    }
}
