//! Refused connections and passwords, and disconnected clients, for INFO, the metrics and the log. Anyone can cause refusals at any rate, so the log
//! gets at most one message in ten seconds for refusals, and one for disconnections.

use std::fmt::Display;
use std::time::{Duration, Instant};

/// The minimum time between two messages of one kind.
const PAUSE: Duration = Duration::from_secs(10);

/// The reason why a connection or a password was refused, or a client was disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    /// Refused: more connections than `limits.clients`.
    Clients,
    /// Refused: a wrong password.
    Password,
    /// Refused: a TLS handshake that failed.
    Handshake,
    /// Disconnected: the client has taken none of its replies for too long.
    Slow,
    /// Disconnected: all clients together had more than `limits.buffer_bytes`.
    Buffers,
    /// Disconnected: the client had sent MONITOR, and was too far behind.
    Monitor,
    /// Disconnected, which is normal: the client had sent no request for `limits.idle_seconds`.
    Idle,
}

impl Cause {
    pub(crate) const REFUSALS: [(&'static str, Cause); 3] =
        [("clients", Cause::Clients), ("password", Cause::Password), ("tls", Cause::Handshake)];
    pub(crate) const DISCONNECTIONS: [(&'static str, Cause); 4] =
        [("slow", Cause::Slow), ("buffers", Cause::Buffers), ("monitor", Cause::Monitor), ("idle", Cause::Idle)];
}

/// The log messages about one kind of event.
#[derive(Debug, Default)]
struct Lines {
    last: String,
    /// The number of events, and their number at the last message.
    all: u64,
    said: u64,
    said_at: Option<Instant>,
}

#[derive(Debug, Default)]
pub(crate) struct Refused {
    counts: [u64; Cause::Idle as usize + 1],
    refusals: Lines,
    disconnections: Lines,
}

impl Refused {
    /// Records that the client with this `address` was refused or disconnected; `why` is the reason for the log.
    pub(crate) fn note(&mut self, cause: Cause, address: &str, why: impl Display) {
        self.counts[cause as usize] += 1;
        let lines = match cause {
            Cause::Clients | Cause::Password | Cause::Handshake => &mut self.refusals,
            Cause::Slow | Cause::Buffers | Cause::Monitor => &mut self.disconnections,
            Cause::Idle => return,
        };
        lines.all += 1;
        lines.last = format!("{address}: {why}");
    }

    pub(crate) fn count(&self, cause: Cause) -> u64 {
        self.counts[cause as usize]
    }

    /// Sets the figures of INFO to zero.
    pub(crate) fn reset(&mut self) {
        self.counts = Default::default();
    }

    /// The messages that are due for the log.
    pub(crate) fn news(&mut self, now: Instant) -> [Option<String>; 2] {
        [self.refusals.news("refused", now), self.disconnections.news("disconnected", now)]
    }
}

impl Lines {
    fn news(&mut self, what: &str, now: Instant) -> Option<String> {
        let is_due = self.said_at.is_none_or(|said| now.duration_since(said) >= PAUSE);
        if self.all == self.said || !is_due {
            return None;
        }
        let more = match self.all - self.said {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        (self.said, self.said_at) = (self.all, Some(now));
        Some(format!("{what} {}{more}", self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_said_with_their_number_and_not_at_any_rate() {
        // Catches a log that anyone who connects can fill, refusals that are never logged, and a disconnection that is hidden by refusals.
        let mut refused = Refused::default();
        let begun = Instant::now();
        assert_eq!(refused.news(begun), [None, None]);
        refused.note(Cause::Clients, "[::1]:5", "there are already 10 clients");
        let said = Some("refused [::1]:5: there are already 10 clients".to_owned());
        assert_eq!(refused.news(begun), [said, None]);
        for _ in 0..3 {
            refused.note(Cause::Password, "[::1]:5", "wrong password");
            assert_eq!(refused.news(begun + PAUSE / 2), [None, None]);
        }
        refused.note(Cause::Slow, "[::1]:6", "too slow");
        refused.note(Cause::Idle, "[::1]:7", "nobody is told");
        let said = Some("disconnected [::1]:6: too slow".to_owned());
        assert_eq!(refused.news(begun + PAUSE / 2), [None, said]);
        let said = Some("refused [::1]:5: wrong password (and 2 more)".to_owned());
        assert_eq!(refused.news(begun + PAUSE), [said, None]);
        assert_eq!(refused.news(begun + 2 * PAUSE), [None, None]);
        let counts = Cause::REFUSALS.into_iter().chain(Cause::DISCONNECTIONS).map(|(_, cause)| refused.count(cause));
        assert_eq!(counts.collect::<Vec<_>>(), [1, 3, 0, 1, 0, 0, 1]);
    }
}
