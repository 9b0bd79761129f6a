//! Chooses the runs, adjacent in age, that are merged into one, for every compaction within a level.
//!
//! N1 Write amplification stays logarithmic: no input is more than half of the output, so each rewrite of an entry at least doubles the size of its
//! run. Only a caller under pressure accepts a smaller growth.
//! N2 Age: a window of adjacent runs leaves no other run between its members, so the order of the runs does not change.

use std::ops::Range;

/// The maximum number of runs of a compaction: each costs memory, and a comparison for each entry.
const MOST_RUNS: usize = 256;

/// A run that may be chosen.
#[derive(Debug, Clone, Copy)]
pub(super) struct Candidate {
    pub(super) bytes: u64,
    /// Whether no compaction has the run as an input and it can be read.
    pub(super) is_free: bool,
}

/// The limits of a choice.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowLimits {
    /// The minimum number of runs that are merged.
    pub(super) runs: usize,
    /// The maximum number of bytes of the window.
    pub(super) bytes: u64,
    pub(super) growth: Growth,
}

/// The factor by which the run of an entry must grow when the entry is rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Growth {
    /// At least by a factor of two (N1).
    Double,
    /// By any factor.
    Any,
}

/// The window of free adjacent runs within `limits` that writes the fewest bytes for each run that it removes, as in RocksDB's compactions within
/// level 0. O(runs * [`MOST_RUNS`]).
pub(super) fn cheapest_window(runs: &[Candidate], limits: WindowLimits) -> Option<Range<usize>> {
    let windows = (0..runs.len()).flat_map(|start| windows_from(runs, start, limits));
    windows
        .min_by(|(a, a_bytes), (b, b_bytes)| {
            let cost = |bytes: u64, other: &Range<usize>| u128::from(bytes) * (other.len() as u128 - 1);
            // Compares bytes divided by removed runs, by cross-multiplication. Among equals, the newest window comes first.
            cost(*a_bytes, b).cmp(&cost(*b_bytes, a)).then(a.start.cmp(&b.start))
        })
        .map(|(window, _)| window)
}

/// The windows that begin at `start`, and their bytes.
fn windows_from(runs: &[Candidate], start: usize, limits: WindowLimits) -> impl Iterator<Item = (Range<usize>, u64)> {
    let least = limits.runs.max(2);
    let taken = runs.iter().skip(start).take(MOST_RUNS).take_while(|run| run.is_free);
    let sums = taken.scan((0u64, 0u64), |(sum, largest), run| {
        (*sum, *largest) = (sum.saturating_add(run.bytes), run.bytes.max(*largest));
        Some((*sum, *largest))
    });
    let within = sums.take_while(move |(sum, _)| *sum <= limits.bytes).enumerate();
    within.filter_map(move |(last, (sum, largest))| {
        let grows = limits.growth == Growth::Any || largest <= sum / 2;
        (last + 1 >= least && grows).then_some((start..start + last + 1, sum))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn free(sizes: &[u64]) -> Vec<Candidate> {
        sizes.iter().map(|&bytes| Candidate { bytes, is_free: true }).collect()
    }

    fn choose(sizes: &[u64], growth: Growth) -> Option<Range<usize>> {
        cheapest_window(&free(sizes), WindowLimits { runs: 4, bytes: 1000, growth })
    }

    #[test]
    fn the_window_is_the_cheapest_for_each_run_that_it_saves() {
        // Catches a large run that is rewritten to save one small one, and a window that spans an input of another compaction.
        assert_eq!(choose(&[1, 1, 1, 1, 1, 100], Growth::Double), Some(0..5));
        assert_eq!(choose(&[1, 1, 1, 100], Growth::Double), None);
        assert_eq!(choose(&[1, 1, 1, 100], Growth::Any), Some(0..4));
        assert_eq!(choose(&[1, 1, 1, 4, 4, 4, 4], Growth::Double), Some(0..5));
        assert_eq!(choose(&[300; 4], Growth::Any), None);
        let mut runs = free(&[1; 9]);
        runs[4].is_free = false;
        assert_eq!(cheapest_window(&runs, WindowLimits { runs: 4, bytes: 1000, growth: Growth::Any }), Some(0..4));
    }

    proptest! {
        #[test]
        fn a_window_keeps_its_limits(sizes in prop::collection::vec(0..200u64, 0..40), busy in any::<u64>(), runs in 2..6usize) {
            // Catches a limit that is off by one at either end.
            let mut candidates = free(&sizes);
            candidates.iter_mut().enumerate().for_each(|(at, run)| run.is_free = busy >> at & 1 == 0);
            for growth in [Growth::Double, Growth::Any] {
                let Some(window) = cheapest_window(&candidates, WindowLimits { runs, bytes: 600, growth }) else { continue };
                let chosen = &candidates[window.clone()];
                let sum: u64 = chosen.iter().map(|run| run.bytes).sum();
                prop_assert!(window.len() >= runs && sum <= 600 && chosen.iter().all(|run| run.is_free));
                prop_assert!(growth == Growth::Any || chosen.iter().all(|run| run.bytes * 2 <= sum));
            }
        }

        #[test]
        fn equal_runs_that_keep_coming_stay_few_and_are_rarely_written_again(count in 1..600u64) {
            // Catches runs that accumulate, and one large run into which each small one is compacted.
            let (mut sizes, mut written) = (Vec::new(), 0);
            for _ in 0..count {
                sizes.insert(0, 1u64);
                while let Some(window) = cheapest_window(&free(&sizes), WindowLimits { runs: 4, bytes: u64::MAX, growth: Growth::Double }) {
                    let sum = sizes[window.clone()].iter().sum();
                    written += sum;
                    sizes.splice(window, [sum]);
                }
            }
            let log = u64::from(count.ilog2()) + 1;
            prop_assert!(sizes.len() as u64 <= 3 * log && written <= count * log, "{sizes:?}, {written}");
        }
    }
}
