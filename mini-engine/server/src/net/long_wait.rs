//! Logs long waits for the disk: of writes for a flush or a compaction, and of replies for a sync.

use std::time::{Duration, Instant};

/// The length from which on a wait is logged.
const LONG: Duration = Duration::from_secs(2);

/// The waits of one kind.
#[derive(Debug)]
pub(super) struct LongWait {
    what: &'static str,
    since: Option<Instant>,
    /// Whether the present wait was logged.
    is_said: bool,
    /// The message for the end of a logged wait, if it was not logged yet.
    ended: Option<String>,
}

impl LongWait {
    pub(super) fn of(what: &'static str) -> Self {
        Self { what, since: None, is_said: false, ended: None }
    }

    pub(super) fn begin(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    pub(super) fn end(&mut self, now: Instant) {
        if let (Some(since), true) = (self.since.take(), std::mem::take(&mut self.is_said)) {
            self.ended = Some(format!("{} took {} s", self.what, now.duration_since(since).as_secs()));
        }
    }

    /// The message for the log, if a wait has become long, or a long wait has ended.
    pub(super) fn news(&mut self, now: Instant) -> Option<String> {
        let so_far = self.since.map_or(Duration::ZERO, |since| now.duration_since(since));
        if self.ended.is_some() || self.is_said || so_far < LONG {
            return self.ended.take();
        }
        self.is_said = true;
        Some(format!("{} has taken {} s so far", self.what, so_far.as_secs()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_wait_is_said_once_and_its_end_too() {
        // Catches a message at each tick of a wait, and consecutive short waits that are mistaken for a long one.
        let (begun, short) = (Instant::now(), Duration::from_millis(500));
        let mut wait = LongWait::of("a sync");
        for n in 0..8 {
            wait.begin(begun + n * short);
            assert_eq!(wait.news(begun + (n + 1) * short), None);
            wait.end(begun + (n + 1) * short);
        }
        assert_eq!(wait.news(begun + 8 * short), None);
        let again = begun + 8 * short;
        wait.begin(again);
        wait.begin(again + short);
        assert_eq!(wait.news(again + LONG).as_deref(), Some("a sync has taken 2 s so far"));
        assert_eq!(wait.news(again + LONG + short), None);
        wait.end(again + 2 * LONG);
        wait.begin(again + 3 * LONG);
        assert_eq!(wait.news(again + 3 * LONG).as_deref(), Some("a sync took 4 s"));
        assert_eq!(wait.news(again + 4 * LONG).as_deref(), Some("a sync has taken 2 s so far"));
    }
}
