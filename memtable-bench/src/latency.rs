//! How long single inserts take: the distribution, of which the slowest are what a mean hides.

use std::ops::Sub;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// Percentiles are right to a hundredth. With more digits the counters take the first-level cache from the table.
const DIGITS: u8 = 2;

/// In nanoseconds.
pub(crate) type Times = Histogram<u64>;

/// Percentiles in nanoseconds. Nothing subtracts the clock's own cost, which pairs of readings with nothing between them show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Latency {
    pub(crate) p50: f64,
    pub(crate) p99: f64,
    pub(crate) p999: f64,
    pub(crate) p9999: f64,
    pub(crate) max: f64,
    /// p99.9 divided by p50.
    pub(crate) tail_ratio: f64,
    pub(crate) clock_p50: f64,
    pub(crate) clock_p999: f64,
}

/// None yet.
pub(crate) fn times() -> Times {
    Times::new(DIGITS).expect("the crate allows up to five digits")
}

/// What `work` makes, and the nanoseconds between two readings of the clock around it.
#[inline]
pub(crate) fn time<R, I: Sub<Output = Duration>>(now: impl Fn() -> I, work: impl FnOnce() -> R) -> (R, u64) {
    let begun = now();
    let made = work();
    // No insert lasts 584 years.
    let ns = u64::try_from((now() - begun).as_nanos()).unwrap_or(u64::MAX);
    (made, ns)
}

impl Latency {
    /// Of the inserts of all threads.
    pub(crate) fn new(inserts: &[Times], clock: &Times) -> Self {
        let mut all = Times::new_from(clock);
        inserts.iter().for_each(|times| all += times);
        let [p50, p99, p999, p9999, max] = [0.5, 0.99, 0.999, 0.9999, 1.0].map(|at| all.value_at_quantile(at) as f64);
        let [clock_p50, clock_p999] = [0.5, 0.999].map(|at| clock.value_at_quantile(at) as f64);
        // A coarse clock may see no time at all.
        Self { p50, p99, p999, p9999, max, tail_ratio: p999 / p50.max(1.0), clock_p50, clock_p999 }
    }

    /// The median of each field, which `of` finds.
    pub(crate) fn medians(of: impl Fn(fn(&Self) -> f64) -> Option<f64>) -> Option<Self> {
        let [p50, p99, p999, p9999] = [of(|of| of.p50)?, of(|of| of.p99)?, of(|of| of.p999)?, of(|of| of.p9999)?];
        let [max, tail_ratio] = [of(|of| of.max)?, of(|of| of.tail_ratio)?];
        let [clock_p50, clock_p999] = [of(|of| of.clock_p50)?, of(|of| of.clock_p999)?];
        Some(Self { p50, p99, p999, p9999, max, tail_ratio, clock_p50, clock_p999 })
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// The times of inserts that take these nanoseconds, by a clock of which each reading takes 10.
    fn timed(inserts: impl IntoIterator<Item = u64>) -> Times {
        let now = Cell::new(Duration::ZERO);
        let pass = |ns| now.set(now.get() + Duration::from_nanos(ns));
        let read = || {
            pass(10);
            now.get()
        };
        let mut times = times();
        for ns in inserts {
            times += time(read, || pass(ns)).1;
            pass(1000);
        }
        times
    }

    #[test]
    fn percentiles_are_those_of_single_inserts_of_all_threads_with_the_clocks_own_cost_beside() {
        // Catches times of all inserts so far, the time between inserts counted as theirs, a percentile under another's name, a
        // thread left out, the clock's cost among the inserts, and a ratio
        // upside down; and medians of rounds under another's name.
        let slow = [(9890, 90), (99, 390), (9, 890), (1, 1990), (1, 7_999_990)];
        let threads = slow.map(|(times, ns)| timed(std::iter::repeat_n(ns, times)));
        let all = Latency::new(&threads, &timed([0; 20_000]));
        let Latency { p50, p99, p999, p9999, max, tail_ratio, clock_p50, clock_p999 } = all;
        for (found, expected) in [(p50, 100.0), (p99, 400.0), (p999, 900.0), (p9999, 2000.0), (max, 8e6)] {
            assert!((found / expected - 1.0_f64).abs() < 0.01, "{all:?}");
        }
        assert_eq!((clock_p50, clock_p999, tail_ratio), (10.0, 10.0, p999 / p50));
        assert_eq!(Latency::medians(|field| Some(field(&all))), Some(all));
    }
}
