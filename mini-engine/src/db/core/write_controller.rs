//! Slows writers down when compactions fall behind, so that writers need not stop.
//!
//! At `l0_slowdown` or more tables on level 0, all writers together are limited to a rate, like RocksDB's delayed writes. The rate starts at the
//! speed at which recent compactions have reduced level 0, and falls as level 0 approaches `l0_stop`. So a writer waits about one to a few times as
//! long as the compaction of its own bytes takes, and a writer of few bytes hardly waits.

use std::time::{Duration, Instant};

use crate::options::Options;

/// The assumed speed of compactions, in bytes per second, before one was measured: RocksDB's default for delayed writes.
const FIRST_RATE: u64 = 16 << 20;
/// The maximum time that one write waits. The rest of a longer delay falls on later writes, so that there are many short pauses, not a long one.
const MAX_PAUSE: Duration = Duration::from_millis(20);
/// The maximum debt.
const MAX_DEBT: Duration = Duration::from_secs(1);

/// The measured speed of compactions, and the debt of writers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WriteController {
    /// The average of the bytes per second that compactions take off level 0.
    rate: u64,
    /// The time at which the debt of all writes so far is paid at their rates.
    until: Option<Instant>,
    /// Whether another thread has waited on behalf of a write that cannot wait: see [`admits`](Self::admits).
    admits_next: bool,
}

impl Default for WriteController {
    fn default() -> WriteController {
        WriteController { rate: FIRST_RATE, until: None, admits_next: false }
    }
}

impl WriteController {
    /// Records that a compaction took `bytes` off level 0 in `time`.
    pub(crate) fn compacted(&mut self, bytes: u64, time: Duration) {
        let nanos = time.as_nanos().max(1);
        let seen = u128::from(bytes) * 1_000_000_000 / nanos;
        // An average in which the latest compaction has the greatest weight. The rate is never 0, or a writer would wait for ever.
        self.rate = u64::try_from((u128::from(self.rate) * 3 + seen) / 4).unwrap_or(u64::MAX).max(1);
    }

    /// The time until which a write of `bytes` that begins `now` must wait, with `tables` on level 0; `None` if it need not wait.
    pub(crate) fn delay_until(
        &mut self,
        bytes: usize,
        tables: usize,
        options: &Options,
        now: Instant,
    ) -> Option<Instant> {
        let rate = delayed_rate(self.rate, tables, options)?;
        let pause =
            Duration::from_nanos(u64::try_from(bytes as u128 * 1_000_000_000 / u128::from(rate)).unwrap_or(u64::MAX));
        // The write queues after the writers that already wait: all of them share one rate.
        let begin = self.until.filter(|until| *until > now).unwrap_or(now);
        let until = begin.checked_add(pause).unwrap_or(begin).min(now + MAX_DEBT);
        self.until = Some(until);
        Some(until.min(now + MAX_PAUSE))
    }

    /// Whether a write of `bytes` that cannot wait may begin `now`, with `tables` on level 0: it may if there is no debt, or if another thread has
    /// [waited](Self::admit_next) on its behalf. Later writes wait for the debt of this write.
    pub(crate) fn admits(&mut self, bytes: usize, tables: usize, options: &Options, now: Instant) -> bool {
        let is_admitted = tables < options.slowdown_tables()
            || std::mem::take(&mut self.admits_next)
            || self.until.is_none_or(|until| until <= now);
        if is_admitted {
            self.delay_until(bytes, tables, options, now);
        }
        is_admitted
    }

    /// Records that a thread has waited long enough on behalf of a write that cannot wait. Without this, other writers, which do wait, could delay
    /// that write for ever.
    pub(crate) fn admit_next(&mut self) {
        self.admits_next = true;
    }
}

/// The limit for writers in bytes per second, for compactions at `rate`; `None` for no limit.
fn delayed_rate(rate: u64, tables: usize, options: &Options) -> Option<u64> {
    let (slowdown, stop) = (options.slowdown_tables(), options.stop_tables());
    if tables < slowdown {
        return None;
    }
    let left = stop.saturating_sub(tables).max(1) as u64;
    let range = stop.saturating_sub(slowdown).max(1) as u64;
    Some((u128::from(rate) * u128::from(left) / u128::from(range)).max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::default().l0_trigger(4).l0_slowdown(10).l0_stop(20)
    }

    #[test]
    fn the_rate_is_that_of_compactions_at_first_and_falls_towards_the_stop() {
        // Catches writers that are delayed before compactions fall behind, at a fixed rate, or for ever at the limit.
        let allowed = |tables| delayed_rate(1000, tables, &options());
        assert_eq!((allowed(0), allowed(9)), (None, None));
        assert_eq!((allowed(10), allowed(15), allowed(19), allowed(25)), (Some(1000), Some(500), Some(100), Some(100)));
        let close = options().l0_slowdown(20);
        assert_eq!(super::delayed_rate(1000, 20, &close), Some(1000));
        // Below the trigger there is no compaction to wait for.
        assert_eq!(super::delayed_rate(1000, 4, &options().l0_slowdown(1)), None);
    }

    #[test]
    fn several_writers_share_the_rate_and_no_pause_is_long() {
        // Catches a separate rate for each writer, a single long pause, a pause that later writers need not make up for, and a debt without bound.
        let (mut controller, now) = (WriteController { rate: 1000, ..WriteController::default() }, Instant::now());
        let mut wait = |bytes, after| {
            let now = now + Duration::from_millis(after);
            controller.delay_until(bytes, 10, &options(), now).map(|until| (until - now).as_millis())
        };
        assert_eq!((wait(5, 0), wait(10, 0)), (Some(5), Some(15)));
        assert_eq!((wait(85, 0), wait(0, 50), wait(0, 90), wait(0, 200)), (Some(20), Some(20), Some(10), Some(0)));
        assert_eq!((wait(1 << 40, 200), wait(0, 1190), wait(0, 1201)), (Some(20), Some(10), Some(0)));
    }

    #[test]
    fn a_write_that_cannot_wait_begins_when_nothing_is_owed_or_somebody_has_waited_for_it() {
        // Catches a write without a limit while others are slowed down, and one that others delay for ever.
        let (mut controller, now) = (WriteController { rate: 1000, ..WriteController::default() }, Instant::now());
        let admits = |controller: &mut WriteController, tables, after| {
            controller.admits(5, tables, &options(), now + Duration::from_millis(after))
        };
        let first = [(0, 0), (10, 0), (10, 4), (9, 4), (10, 5), (10, 6)].map(|(n, ms)| admits(&mut controller, n, ms));
        assert_eq!(first, [true, true, false, true, true, false]);
        controller.admit_next();
        assert_eq!([6, 6].map(|ms| admits(&mut controller, 10, ms)), [true, false]);
        // The debt includes that of the previous write.
        assert_eq!([14, 15].map(|ms| admits(&mut controller, 10, ms)), [false, true]);
    }

    #[test]
    fn the_rate_follows_the_compactions_that_were_seen() {
        // Catches a rate that is never adapted, or that the latest compaction determines alone.
        let mut controller = WriteController { rate: 1000, ..WriteController::default() };
        controller.compacted(5000, Duration::from_secs(1));
        assert_eq!(controller.rate, 2000);
        for _ in 0..100 {
            controller.compacted(0, Duration::from_secs(1));
        }
        assert_eq!(controller.rate, 1);
        controller.compacted(u64::MAX, Duration::ZERO);
        assert!(controller.rate > 1 << 40);
    }
}
