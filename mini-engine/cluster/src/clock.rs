//! Clocks: the machine's, from which proposals get their time; and the differences between the clocks of nodes.
//!
//! Entries do not expire by the machine's clock: if they did, a key could exist on one node and not on another when the nodes apply the same INCR. So
//! each proposal carries its time, and the clock of a group's database advances only when a proposal is applied.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use mini_engine_server::replicated::AppliedInstant;

use crate::lock::lock;

/// A clock that returns milliseconds since 1970. Tests use wrong clocks.
pub(crate) type WallClock = Arc<dyn Fn() -> u64 + Send + Sync>;

/// While the applied instant is ahead of the leader's clock, it loses one part in so many: an hour in 16 hours.
const SLOWER: u64 = 16;
/// The milliseconds by which a clock must be wrong for a warning: keys expire too early or too late.
const OFF: u64 = 1000;

/// The system's clock.
pub(crate) fn system_clock() -> WallClock {
    Arc::new(|| {
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        since_1970.map_or(0, |since| u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
    })
}

/// The time of a leader's proposals: the machine's clock; or, while the applied instant is ahead of it, the instant continued by the monotonic clock.
///
/// A leader whose clock was ahead leaves such an instant behind. If it stood still until the next leader's clock reached it, nothing would expire. An
/// instant is continued from the time at which a call saw it first, so every node, not only the leader, makes a call about each second.
pub(crate) struct GroupClock {
    wall: WallClock,
    instant: AppliedInstant,
    continued: Mutex<Continued>,
}

/// An applied instant, and the time at which it was seen.
struct Continued {
    instant: u64,
    seen: Instant,
}

impl GroupClock {
    pub(crate) fn new(wall: WallClock, instant: AppliedInstant) -> Self {
        let continued = Mutex::new(Continued { instant: instant.millis(), seen: Instant::now() });
        Self { wall, instant, continued }
    }

    /// Milliseconds since 1970, never before the applied instant.
    pub(crate) fn millis(&self) -> u64 {
        let mut continued = lock(&self.continued);
        continued.at(self.instant.millis(), Instant::now()).max((self.wall)())
    }

    /// The latest applied instant that a call has seen, continued.
    #[cfg(test)]
    pub(crate) fn continued(&self) -> u64 {
        self.continued.lock().unwrap().time(Instant::now())
    }
}

impl Continued {
    /// The time, by the applied instant alone. Only committed proposals raise the instant, so a leader that was deposed does not keep a wrong time.
    fn at(&mut self, applied: u64, now: Instant) -> u64 {
        if applied > self.time(now) {
            *self = Self { instant: applied, seen: now };
        }
        self.time(now)
    }

    fn time(&self, now: Instant) -> u64 {
        let elapsed = now.saturating_duration_since(self.seen).as_millis() as u64;
        self.instant.saturating_add(elapsed - elapsed / SLOWER)
    }
}

/// The difference of another machine's clock from this one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockOffset {
    /// The milliseconds by which the other clock is ahead; negative if it is behind.
    pub millis: i64,
    /// The greatest error of that number: half of the round trip.
    pub within: u64,
}

impl ClockOffset {
    /// The offset of a clock that showed `theirs` at some time of the `took` after this machine's clock showed `sent`.
    pub(crate) fn new(theirs: u64, sent: u64, took: Duration) -> Self {
        let within = took.as_millis().div_ceil(2) as u64;
        let offset = i128::from(theirs) - i128::from(sent) - i128::from(within);
        Self { millis: i64::try_from(offset).unwrap_or(if offset < 0 { i64::MIN } else { i64::MAX }), within }
    }

    /// This offset as one from another clock, given by that clock's own offset from this machine's.
    pub(crate) fn relative_to(self, other: Self) -> Self {
        Self { millis: self.millis.saturating_sub(other.millis), within: self.within + other.within }
    }
}

/// The milliseconds by which a clock is ahead of most clocks, given the offsets of the others from it; 0 if it is off by less than a second. If no
/// side is in the majority, both are off.
pub(crate) fn ahead_of_most(others: impl Iterator<Item = ClockOffset>) -> i64 {
    let is_off = |offset: &ClockOffset| offset.millis.unsigned_abs() >= OFF + offset.within;
    let others = others.map(|offset| if is_off(&offset) { offset.millis.saturating_neg() } else { 0 });
    let mut all: Vec<i64> = others.chain([0]).collect();
    all.sort_unstable();
    let (low, high) = (all[(all.len() - 1) / 2], all[all.len() / 2]);
    if low.unsigned_abs() > high.unsigned_abs() { low } else { high }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: i64 = 3_600_000;

    #[test]
    fn an_instant_that_is_ahead_goes_on_slowly_and_never_back() {
        // Catches a time that stands still, goes back, or stays an hour ahead for ever.
        let begin = Instant::now();
        let mut time = Continued { instant: 0, seen: begin };
        let after = |millis| begin + Duration::from_millis(millis);
        assert_eq!(time.at(1_000_000, begin), 1_000_000);
        assert_eq!(time.at(1_000_000, after(1600)), 1_001_500);
        // Proposals of the past do not slow it down, and a later instant, of another leader, counts.
        assert_eq!(time.at(1_000_700, after(3200)), 1_003_000);
        assert_eq!(time.at(2_000_000, after(3200)), 2_000_000);
        assert_eq!(time.at(2_000_000, after(4800)), 2_001_500);
    }

    #[test]
    fn a_clock_is_off_if_most_others_differ_whatever_the_round_trip() {
        // Catches a round trip that counts as an offset, and a right clock that is blamed for a wrong one.
        let offset = ClockOffset::new(10_000, 9_000, Duration::from_millis(2000));
        assert_eq!(offset, ClockOffset { millis: 0, within: 1000 });
        let of = |offsets: &[i64]| ahead_of_most(offsets.iter().map(|&millis| ClockOffset { millis, within: 5 }));
        assert_eq!(of(&[-HOUR, -HOUR]), HOUR);
        for agree in [&[0, -HOUR][..], &[], &[1004, -1004], &[0, 0, HOUR, HOUR]] {
            assert_eq!(of(agree), 0, "{agree:?}");
        }
        assert_eq!((of(&[HOUR]), of(&[-HOUR])), (-HOUR, HOUR));
        let (one, two) = (ClockOffset { millis: 7, within: 1 }, ClockOffset { millis: 5, within: 2 });
        assert_eq!(one.relative_to(two), ClockOffset { millis: 2, within: 3 });
    }
}
