//! How many levels a node is linked at.
//!
//! Pugh's skip list draws heights blindly, which leaves gaps of any length: a search then makes one step forward on each
//! level in the mean. Here the search that finds a node's place also shows how crowded the level is there, and a node is
//! raised where the gap between two higher nodes would grow long. That is the balance of the 1-2-3 deterministic skip
//! list (Munro, Papadakis and Sedgewick, "Deterministic skip lists", 1992), kept by new nodes alone: no height ever
//! changes, no node to the right of the place is looked at, and where that hides too much, a coin decides. Steps per level
//! fall from 1.0 to 0.7 with towers of the same mean height (`docs/src/results.md`).
//!
//! Heights only decide how fast a search is. What a racing search saw of a gap may be out of date, and nothing breaks.

use crate::tuning::RAISES_BY_GAPS;

/// What a search knows of the nodes between the two higher nodes around a place, on one level.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gap {
    /// How many stand before the place.
    pub(crate) left: u32,
    /// Whether any stands behind it.
    pub(crate) right: bool,
}

impl Gap {
    /// Whether a node that comes to stand here is linked one level higher too. It is where the gap would grow past two on
    /// the left, and where it is split in its midst. At the left end the length of the rest is unknown: there the coin
    /// keeps descending keys, which never see anything else, in a skip list of Pugh's kind.
    #[inline(always)]
    pub(crate) fn is_split(self, coin: bool) -> bool {
        if !RAISES_BY_GAPS {
            return coin;
        }
        match self.left {
            0 => self.right && coin,
            1 => self.right,
            _ => true,
        }
    }
}

/// One coin a level, tossed by `ticket`. Tickets are numbers that a shard gives out once each, and `seed` differs from
/// table to table, so an attacker who chooses keys cannot choose coins.
#[inline]
pub(crate) fn coins(seed: u64, ticket: u64) -> u64 {
    mix(seed ^ ticket)
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
    use std::collections::HashSet;

    use super::*;
    use crate::node::MAX_HEIGHT;

    /// Catches a finaliser that is not the published one: outputs of splitmix64 for the seeds 0 and 1234567.
    #[test]
    fn mixing_is_that_of_splitmix64() {
        assert_eq!(mix(0), 0xe220_a839_7b1d_cdaf);
        assert_eq!(mix(1_234_567), 6_457_827_717_110_365_317);
    }

    /// Catches tickets that lead to the same coins, as they would if the seed hid some of their bits.
    #[test]
    fn every_ticket_has_coins_of_its_own() {
        for seed in [0, u64::MAX, 0x5555_5555_5555_5555] {
            assert_eq!((0..1000).map(|ticket| coins(seed, ticket)).collect::<HashSet<_>>().len(), 1000);
        }
    }

    /// Catches a coin that is biased, or one that follows another.
    #[test]
    fn coins_are_fair_and_independent() {
        let tosses = 1 << 16;
        for level in 0..MAX_HEIGHT {
            let heads = (0..tosses).filter(|&ticket| coins(7, ticket) >> level & 1 == 1).count();
            let both = (0..tosses).filter(|&ticket| coins(7, ticket) >> level & 3 == 3).count();
            assert!(heads.abs_diff(tosses as usize / 2) < 1000, "level {level}: {heads}");
            assert!(both.abs_diff(tosses as usize / 4) < 1000, "levels {level} and above: {both}");
        }
    }
}
