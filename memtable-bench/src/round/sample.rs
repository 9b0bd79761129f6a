//! The request for one round, and its outcome.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::spec::{Shape, Subject, Workload};

/// Percentiles are right to one per cent. With more digits the counters would displace the table from the first-level cache.
const DIGITS: u8 = 2;
/// The number of clock readings that measure the clock's cost.
const CLOCK_READINGS: usize = 10_000;

/// One round of one subject.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(crate) subject: Subject,
    pub(crate) workloads: Vec<Workload>,
    pub(crate) shape: Shape,
}

/// Figures by their names.
pub(crate) type Facts = BTreeMap<String, f64>;

/// The result of one workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sample {
    pub(crate) workload: Workload,
    /// The operations of all threads: records stored, sorted or deleted; keys searched or sought; entries read; transactions.
    pub(crate) operations: u64,
    /// The time until the last thread was done, in nanoseconds.
    pub(crate) ns: u64,
    /// Percentiles in nanoseconds of single operations: for engines, where a batch is one operation, and for inserts that were timed one by one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) latency: Facts,
    /// Costs beside time.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) facts: Facts,
}

impl Sample {
    pub(crate) fn new(workload: Workload, operations: usize) -> Self {
        let (latency, facts) = (Facts::new(), Facts::new());
        Self { workload, operations: operations as u64, ns: 0, latency, facts }
    }

    pub(super) fn timed(self, time: Duration) -> Self {
        Self { ns: nanos(time), ..self }
    }

    pub(super) fn add(&mut self, name: &str, fact: Option<f64>) {
        self.facts.extend(fact.map(|fact| (name.to_owned(), fact)));
    }

    /// The mean time of an operation; for inserts that were timed one by one, the median.
    pub(crate) fn ns_per_operation(&self) -> Option<f64> {
        match self.workload {
            Workload::InsertLatency => self.latency.get("p50").copied(),
            _ => Some(self.ns as f64 / self.operations as f64),
        }
    }
}

/// No operation lasts 584 years.
fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// One thread's times, in nanoseconds.
pub(super) struct Recorder {
    last: Instant,
    times: Histogram<u64>,
}

impl Recorder {
    pub(super) fn start() -> Self {
        Self { last: Instant::now(), times: Histogram::new(DIGITS).expect("the crate allows up to five digits") }
    }

    /// Times `work` between two readings of the clock. No time includes the recording.
    #[inline(always)]
    pub(super) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let begun = Instant::now();
        let made = work();
        self.times += nanos(begun.elapsed());
        made
    }

    /// Records the end of an operation that began at the end of the one before, so each needs only one clock reading.
    #[inline]
    pub(super) fn tick(&mut self) {
        let now = Instant::now();
        self.times += nanos(now - self.last);
        self.last = now;
    }
}

/// The percentiles of the operations of all threads, and those of the clock alone.
pub(super) fn latency(threads: &[Recorder]) -> Facts {
    let mut clock = Recorder::start();
    (0..CLOCK_READINGS).for_each(|_| clock.time(|| ()));
    let mut all = Histogram::new_from(&clock.times);
    threads.iter().for_each(|of| all += &of.times);
    let at = |times: &Histogram<u64>, quantile| times.value_at_quantile(quantile) as f64;
    let of_all = [("p50", 0.5), ("p99", 0.99), ("p999", 0.999), ("p9999", 0.9999), ("max", 1.0)]
        .map(|(of, q)| (of, at(&all, q)));
    let of_clock = [("clock_p50", 0.5), ("clock_p999", 0.999)].map(|(of, q)| (of, at(&clock.times, q)));
    // With a coarse clock, the median may be 0.
    let ratio = ("tail_ratio", at(&all, 0.999) / at(&all, 0.5).max(1.0));
    of_all.into_iter().chain(of_clock).chain([ratio]).map(|(of, value)| (of.to_owned(), value)).collect()
}
