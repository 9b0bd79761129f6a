//! How long single operations take, and how many are done in each moment: a stall shows in both.

use std::time::{Duration, Instant};

use crate::latency::{self, Times};

/// The moments of a recorder.
const MOMENT: Duration = Duration::from_millis(10);
/// A timeline has no more moments than this.
const MOMENTS: usize = 120;

/// One thread's times.
pub(super) struct Recorder {
    begun: Instant,
    last: Instant,
    times: Times,
    moments: Vec<u64>,
}

impl Recorder {
    pub(super) fn start() -> Self {
        let begun = Instant::now();
        Self { begun, last: begun, times: latency::times(), moments: Vec::new() }
    }

    /// Times `work` by itself, between two readings of the clock. Recording it is not part of any time.
    #[inline]
    pub(super) fn time<R>(&mut self, work: impl FnOnce() -> R) -> R {
        let (made, ns) = latency::time(Instant::now, work);
        self.times += ns;
        made
    }

    /// The end of an operation of so many records, which began at the end of the one before: the clock is read once for each.
    #[inline]
    pub(super) fn tick(&mut self, records: u64) {
        let now = Instant::now();
        // No operation lasts 584 years.
        self.times += u64::try_from((now - self.last).as_nanos()).unwrap_or(u64::MAX);
        self.last = now;
        let moment = ((now - self.begun).as_nanos() / MOMENT.as_nanos()) as usize;
        if self.moments.len() <= moment {
            self.moments.resize(moment + 1, 0);
        }
        self.moments[moment] += records;
    }

    pub(super) fn times(&self) -> &Times {
        &self.times
    }
}

/// The moments of all threads together: the length of one in milliseconds, and the operations in each.
pub(super) fn timeline(threads: &[Recorder]) -> (u64, Vec<u64>) {
    let longest = threads.iter().map(|of| of.moments.len()).max().unwrap_or_default();
    let joined = longest.div_ceil(MOMENTS).max(1);
    let mut all = vec![0; longest.div_ceil(joined)];
    for (at, count) in threads.iter().flat_map(|of| of.moments.iter().enumerate()) {
        all[at / joined] += count;
    }
    // The last one is shorter than the others.
    if all.len() > 1 {
        all.pop();
    }
    (MOMENT.as_millis() as u64 * joined as u64, all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(moments: &[u64]) -> Recorder {
        Recorder { moments: moments.to_vec(), ..Recorder::start() }
    }

    #[test]
    fn a_timeline_adds_threads_up_and_shows_a_stall_as_a_gap() {
        // Catches threads laid one behind the other, moments of another length than the file says, and a last moment that looks
        // like a stall since it is cut.
        assert_eq!(timeline(&[recorder(&[5, 0, 7, 1]), recorder(&[1, 0])]), (10, vec![6, 0, 7]));
        assert_eq!(timeline(&[recorder(&[3])]), (10, vec![3]));
        let (moment, all) = timeline(&[recorder(&[1; 1000])]);
        assert_eq!((moment, all.len(), all[0]), (90, 111, 9));
        let mut recorder = Recorder::start();
        (0..10).for_each(|_| recorder.tick(100));
        assert_eq!((recorder.moments.iter().sum::<u64>(), recorder.times().len()), (1000, 10));
    }
}
