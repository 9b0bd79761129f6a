//! The clock of a database, by which entries expire: the time of its source in milliseconds, but it never goes back.
//!
//! K1 `latest` only rises. Every edit of the manifest records it, and an open continues from the recorded instant. So a key that was absent stays
//! absent, unless the system's clock jumped ahead, was set back, and a crash came before the next edit.
//! K2 `latest` is 0 as long as no entry of the database expires. Then the time is never read, except by a transaction that writes such an entry. The
//! first write of an entry that expires begins the clock before the entry is visible, and a reader loads the visible number first: so a reader that
//! sees the entry finds the clock running.
//! K3 A compaction turns entries that have expired into tombstones. A reader of the compaction's output must be at the instant of the compaction or
//! later. A reader without a registered instant pins its view first and reads the clock after that, as with the visible number (rule 16). Snapshots
//! register their instants under a lock that compactions take to read the registered instants and the clock (`snapshots.rs`).
//! K4 Before an edit raises the recorded clock, the logs are synced: every write that was visible when the clock showed that instant is then durable.
//! Otherwise a power failure could lose writes but keep an instant later than theirs. A replicated state machine that applies these writes again
//! would then treat keys as expired that existed when it applied them first, and that still exist on the other nodes.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::SystemTime;

use crate::options::TimeSource;
use crate::types::{Millis, millis, system_time};

/// If the clock is ahead of the system's by at least this number of milliseconds, that is logged.
const NOTABLE: Millis = 1000;

#[derive(Debug)]
pub(crate) struct Clock {
    source: TimeSource,
    /// Relaxed: K2 and K3 rely on the ordering of the visible number, the view and the lock.
    latest: AtomicU64,
    /// Whether it was logged that the clock is ahead of the system's. Relaxed: it orders nothing, and only decides whether a message is logged.
    is_said: AtomicBool,
}

impl Clock {
    /// A clock that continues from `latest`, which is 0 if no entry expires.
    pub(crate) fn new(source: TimeSource, latest: Millis) -> Self {
        Self { source, latest: AtomicU64::new(latest), is_said: AtomicBool::new(false) }
    }

    /// The present instant, if entries expire; otherwise 0.
    #[inline]
    pub(crate) fn now(&self) -> Millis {
        if self.latest() == 0 { 0 } else { self.begin() }
    }

    /// The present instant. From this call on, the database counts as having entries that expire.
    #[inline(never)]
    pub(crate) fn begin(&self) -> Millis {
        self.raise(millis(self.source.now()).max(1))
    }

    /// Shows no instant before `recorded`, which another process has recorded.
    pub(crate) fn follow(&self, recorded: Millis) {
        self.raise(recorded);
    }

    fn raise(&self, now: Millis) -> Millis {
        let latest = self.latest();
        // Usually another reader has already stored this millisecond, and nothing is written.
        if now <= latest { latest } else { self.latest.fetch_max(now, Ordering::Relaxed).max(now) }
    }

    /// The present instant; this does not begin the clock.
    #[inline(never)]
    pub(crate) fn peek(&self) -> Millis {
        millis(self.source.now()).max(1).max(self.latest())
    }

    /// The present time; this does not begin the clock. It is the system's time unless that is behind the clock.
    pub(crate) fn time(&self) -> SystemTime {
        let system = self.source.now();
        let (now, is_running) = (millis(system), self.latest() > 0);
        let latest = if is_running { self.raise(now) } else { 0 };
        self.ahead();
        if now < latest { system_time(latest) } else { system }
    }

    /// The number of milliseconds by which this clock is ahead of the system's. It is logged when that number reaches [`NOTABLE`], and when it is 0
    /// again.
    pub(crate) fn ahead(&self) -> Millis {
        let ahead = match self.latest() {
            0 => 0,
            latest => match millis(self.source.now()) {
                // The source has no time yet: a group of a cluster has not recovered its instant.
                0 => 0,
                system => latest.saturating_sub(system),
            },
        };
        let is_said = self.is_said.load(Ordering::Relaxed);
        let is_ahead = ahead >= NOTABLE || (is_said && ahead > 0);
        if is_ahead != is_said && self.is_said.swap(is_ahead, Ordering::Relaxed) != is_ahead {
            match is_ahead {
                true => tracing::warn!(
                    "the system's clock is {ahead} ms behind the database's, which never goes back: until it has caught up, nothing expires"
                ),
                false => tracing::warn!("the system's clock has caught up with the database's: entries expire again"),
            }
        }
        ahead
    }

    /// The time at which an entry with this `lifetime` expires if it is inserted now.
    pub(crate) fn end_of(&self, lifetime: Millis) -> SystemTime {
        system_time(self.begin().saturating_add(lifetime))
    }

    /// The latest instant that any thread has read.
    #[inline]
    pub(crate) fn latest(&self) -> Millis {
        self.latest.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A clock that the test sets, and a source that reads it.
    fn set_by_hand() -> (proof::Clock, TimeSource) {
        let clock = proof::Clock::at(SystemTime::UNIX_EPOCH);
        let read = clock.clone();
        (clock, TimeSource::new(move || read.now()))
    }

    #[test]
    fn the_clock_never_goes_back_and_stands_still_until_an_entry_expires() {
        // Catches a key that returns when the system's clock is set back, and a clock that is read although nothing expires.
        let (by_hand, source) = set_by_hand();
        let set = |millis| by_hand.set(SystemTime::UNIX_EPOCH + Duration::from_millis(millis));
        set(500);
        let clock = Clock::new(source.clone(), 0);
        assert_eq!((clock.now(), clock.peek(), clock.now(), clock.latest()), (0, 500, 0, 0));
        assert_eq!((clock.begin(), clock.now()), (500, 500));
        set(400);
        assert_eq!((clock.now(), clock.peek(), clock.latest()), (500, 500, 500));
        set(600);
        assert_eq!((clock.now(), clock.latest()), (600, 600));
        let reopened = Clock::new(source.clone(), 700);
        assert_eq!(reopened.now(), 700);
        set(0);
        let clock = Clock::new(source.clone(), 0);
        assert_eq!((clock.peek(), clock.begin()), (1, 1), "it runs, whatever the time");
    }

    #[test]
    fn spans_count_from_the_clock_and_a_system_that_is_behind_is_noticed_once() {
        // Catches a lifetime that counts from a past time of the clock, a message for each call, and one for each step of a slow correction.
        let (by_hand, source) = set_by_hand();
        let time = |micros| SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
        let clock = Clock::new(source.clone(), 0);
        by_hand.set(time(9_000_700));
        assert_eq!((clock.time(), clock.latest()), (time(9_000_700), 0), "nothing expires");
        clock.begin();
        for (system, shown, ahead, is_said) in [
            (9_500_700, 9_500_700, 0, false),
            (9_400_700, 9_500_000, 100, false),
            (8_500_000, 9_500_000, 1000, true),
            (9_499_000, 9_500_000, 1, true),
            (9_500_001, 9_500_001, 0, false),
            (0, 9_500_000, 0, false),
        ] {
            by_hand.set(time(system));
            assert_eq!((clock.time(), clock.ahead()), (time(shown), ahead), "at {system}");
            assert_eq!(clock.is_said.load(Ordering::Relaxed), is_said, "at {system}");
        }
    }
}
