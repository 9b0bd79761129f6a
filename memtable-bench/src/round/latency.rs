//! Latencies of single operations, since a mean would hide slow ones, and the number of operations in each moment. A stall shows in both.

use std::collections::BTreeMap;
use std::ops::Sub;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The length of a recorder's moments.
const MOMENT: Duration = Duration::from_millis(10);
/// A timeline has no more moments than this.
const MOMENTS: usize = 120;
/// The number of clock readings that measure the clock's cost.
const CLOCK_READINGS: usize = 10_000;
/// Percentiles are right to one per cent. With more digits the counters would displace the table from the first-level cache.
const DIGITS: u8 = 2;

/// Latencies in nanoseconds. They include the clock's own cost, which is measured by pairs of readings with no operation in between.
pub(crate) type Latency = BTreeMap<Percentile, f64>;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Percentile {
    P50,
    P99,
    #[value(name = "p99.9")]
    P999,
    #[value(name = "p99.99")]
    P9999,
    Max,
    #[value(name = "clock p50")]
    ClockP50,
    #[value(name = "clock p99.9")]
    ClockP999,
    #[value(name = "p99.9 / p50")]
    TailRatio,
}

/// The number of operations that all threads together finished in each moment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Timeline {
    /// The length of a moment in milliseconds.
    pub(crate) moment_ms: u64,
    pub(crate) operations: Vec<u64>,
}

/// One thread's times, in nanoseconds.
#[derive(Clone)]
pub(super) struct Recorder {
    begun: Instant,
    last: Instant,
    times: Histogram<u64>,
    moments: Vec<u64>,
}

impl Recorder {
    pub(super) fn start() -> Self {
        let (begun, times) = (Instant::now(), Histogram::new(DIGITS).expect("the crate allows up to five digits"));
        Self { begun, last: begun, times, moments: Vec::new() }
    }

    /// The latency of the clock alone.
    pub(super) fn of_the_clock() -> Self {
        let mut clock = Self::start();
        (0..CLOCK_READINGS).for_each(|_| clock.time(Instant::now, || ()));
        clock
    }

    /// Times `work` between two readings of the clock. No time includes the recording.
    #[inline(always)]
    pub(super) fn time<R, I: Sub<Output = Duration>>(&mut self, now: impl Fn() -> I, work: impl FnOnce() -> R) -> R {
        let begun = now();
        let made = work();
        self.times += nanos(now() - begun);
        made
    }

    /// Records the end of an operation on `records` records. The operation began at the end of the one before, so each needs only one clock reading.
    #[inline]
    pub(super) fn tick(&mut self, records: u64) {
        let now = Instant::now();
        self.times += nanos(now - self.last);
        self.last = now;
        let moment = ((now - self.begun).as_nanos() / MOMENT.as_nanos()) as usize;
        if self.moments.len() <= moment {
            self.moments.resize(moment + 1, 0);
        }
        self.moments[moment] += records;
    }
}

/// No operation lasts 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The percentiles of the operations of all threads.
pub(super) fn latency(threads: &[Recorder], clock: &Recorder) -> Latency {
    use Percentile::{ClockP50, ClockP999, Max, P50, P99, P999, P9999, TailRatio};
    let mut all = Histogram::new_from(&clock.times);
    threads.iter().for_each(|of| all += &of.times);
    let at = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64;
    let of_all = [(P50, 0.5), (P99, 0.99), (P999, 0.999), (P9999, 0.9999), (Max, 1.0)].map(|(of, q)| (of, at(&all, q)));
    let of_clock = [(ClockP50, 0.5), (ClockP999, 0.999)].map(|(of, q)| (of, at(&clock.times, q)));
    // With a coarse clock, the median may be 0.
    let ratio = (TailRatio, at(&all, 0.999) / at(&all, 0.5).max(1.0));
    of_all.into_iter().chain(of_clock).chain([ratio]).collect()
}

/// The moments of all threads together.
pub(super) fn timeline(threads: &[Recorder]) -> Timeline {
    let longest = threads.iter().map(|of| of.moments.len()).max().unwrap_or_default();
    let joined = longest.div_ceil(MOMENTS).max(1);
    let mut operations = vec![0; longest.div_ceil(joined)];
    for (at, count) in threads.iter().flat_map(|of| of.moments.iter().enumerate()) {
        operations[at / joined] += count;
    }
    // The last moment is shorter than the others.
    if operations.len() > 1 {
        operations.pop();
    }
    Timeline { moment_ms: MOMENT.as_millis() as u64 * joined as u64, operations }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::iter::repeat_n;

    use super::*;

    /// A recorder of operations that take these nanoseconds, with a clock whose readings take 10 ns each.
    fn timed(operations: impl IntoIterator<Item = u64>) -> Recorder {
        let now = Cell::new(Duration::ZERO);
        let pass = |ns| now.set(now.get() + Duration::from_nanos(ns));
        let read = || {
            pass(10);
            now.get()
        };
        let mut recorder = Recorder::start();
        for ns in operations {
            recorder.time(read, || pass(ns));
            pass(1000);
        }
        recorder
    }

    #[test]
    fn percentiles_are_those_of_single_operations_of_all_threads_with_the_clocks_own_cost_beside() {
        // Catches cumulative times, the time between operations that counts as a part of them, a percentile under another's name, an
        // omitted thread, the clock's cost among the operations, and an inverted ratio.
        let slow = [(9890, 90), (99, 390), (9, 890), (1, 1990), (1, 7_999_990)];
        let threads = slow.map(|(times, ns)| timed(repeat_n(ns, times)));
        let all = latency(&threads, &timed([0; 20_000]));
        let found: Vec<_> = all.values().copied().collect();
        for (found, expected) in found.iter().zip([100.0, 400.0, 900.0, 2000.0, 8e6, 10.0, 10.0, 9.0]) {
            assert!((found / expected - 1.0_f64).abs() < 0.02, "{all:?}");
        }
        assert_eq!((found.len(), found[7]), (8, found[2] / found[0]));
    }

    #[test]
    fn a_timeline_adds_threads_up_and_shows_a_stall_as_a_gap() {
        // Catches threads whose moments are concatenated, moments of another length than the file states, and a shorter last
        // moment that looks like a stall.
        let recorder = |moments: &[u64]| Recorder { moments: moments.to_vec(), ..Recorder::start() };
        let of = |threads: &[Recorder]| {
            let Timeline { moment_ms, operations } = timeline(threads);
            (moment_ms, operations)
        };
        assert_eq!(of(&[recorder(&[5, 0, 7, 1]), recorder(&[1, 0])]), (10, vec![6, 0, 7]));
        assert_eq!(of(&[recorder(&[3])]), (10, vec![3]));
        assert_eq!(of(&[recorder(&[1; 1000])]), (90, vec![9; 111]));
        let mut ticked = Recorder::start();
        (0..10).for_each(|_| ticked.tick(100));
        assert_eq!((ticked.moments.iter().sum::<u64>(), ticked.times.len()), (1000, 10));
    }
}
