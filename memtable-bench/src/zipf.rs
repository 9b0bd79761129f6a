//! Ranks in a Zipfian distribution: rank `r`, from 0, is drawn about `(r + 1)^-THETA` times as often as rank 0.
//!
//! The method of Gray et al., "Quickly Generating Billion-Record Synthetic Databases" (SIGMOD 1994), which YCSB took over:
//! exact for ranks 0 and 1, close for the others, and a few multiplications a draw.

use crate::random::number;

/// How skewed: that of YCSB.
pub(crate) const THETA: f64 = 0.99;

/// A distribution over a number of ranks.
#[derive(Debug)]
pub(crate) struct Zipf {
    ranks: usize,
    /// The sum of `1 / rank^THETA`.
    zeta: f64,
    eta: f64,
}

impl Zipf {
    /// O(`ranks`): it adds all weights up.
    pub(crate) fn new(ranks: usize) -> Self {
        let zeta: f64 = (1..=ranks).map(weight).sum();
        let zeta2: f64 = (1..=ranks.min(2)).map(weight).sum();
        let eta = (1.0 - (2.0 / ranks as f64).powf(1.0 - THETA)) / (1.0 - zeta2 / zeta);
        Self { ranks, zeta, eta }
    }

    /// The rank at `index` of the sequence that begins with `seed`.
    pub(crate) fn rank(&self, seed: u64, index: u64) -> usize {
        // The upper 53 bits: as many as the number has.
        let uniform = (number(seed, index) >> 11) as f64 / (1_u64 << 53) as f64;
        let weighed = uniform * self.zeta;
        if weighed < 1.0 || self.ranks < 2 {
            return 0;
        }
        if weighed < 1.0 + weight(2) {
            return 1.min(self.ranks - 1);
        }
        let rank = self.ranks as f64 * (self.eta * uniform - self.eta + 1.0).powf(1.0 / (1.0 - THETA));
        (rank as usize).min(self.ranks - 1)
    }
}

fn weight(rank: usize) -> f64 {
    (rank as f64).powf(-THETA)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SEED;

    #[test]
    fn ranks_come_as_often_as_their_weights_say() {
        // Catches a slip in the formula: too even, too skewed, or off by a rank.
        const DRAWS: u64 = 200_000;
        let zipf = Zipf::new(1000);
        let mut drawn = vec![0_u32; 1000];
        for index in 0..DRAWS {
            drawn[zipf.rank(SEED, index)] += 1;
        }
        let zeta: f64 = (1..=1000).map(weight).sum();
        let share = |ranks: std::ops::Range<usize>| f64::from(drawn[ranks].iter().sum::<u32>()) / DRAWS as f64;
        let expected = |ranks: std::ops::Range<usize>| ranks.map(|rank| weight(rank + 1)).sum::<f64>() / zeta;
        for ranks in [0..1, 1..2, 2..10, 10..100, 100..500, 500..1000] {
            let (share, expected) = (share(ranks.clone()), expected(ranks.clone()));
            assert!((share / expected - 1.0).abs() < 0.1, "{ranks:?}: {share} against {expected} (seed {SEED:#x})");
        }
    }

    #[test]
    fn few_ranks_are_no_trouble() {
        // Catches a rank past the end, and a division by nothing.
        for ranks in [1, 2, 3] {
            let zipf = Zipf::new(ranks);
            assert!((0..1000).all(|index| zipf.rank(SEED, index) < ranks), "{ranks}");
        }
    }
}
