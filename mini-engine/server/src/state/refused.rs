//! Connections and passwords that were refused, for INFO and for the log. Anybody can be refused at any rate, so the log has a line in ten seconds
//! at most.

use std::time::{Duration, Instant};

/// The minimum time between two lines in the log.
const PAUSE: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(crate) struct Refused {
    /// Connections beyond `limits.clients`.
    pub(crate) clients: u64,
    /// Wrong passwords.
    pub(crate) passwords: u64,
    /// Handshakes of TLS that failed.
    pub(crate) handshakes: u64,
    /// The reason of the last one, and how many of all there were in the last line of the log.
    last: String,
    said: u64,
    said_at: Option<Instant>,
}

impl Refused {
    pub(crate) fn note_client(&mut self, address: &str, most: usize) {
        self.clients += 1;
        self.last = format!("{address}: there are already {most} clients");
    }

    pub(crate) fn note_password(&mut self, address: &str) {
        self.passwords += 1;
        self.last = format!("{address}: wrong password");
    }

    pub(crate) fn note_handshake(&mut self, address: &str, reason: &impl ToString) {
        self.handshakes += 1;
        self.last = format!("{address}: TLS: {}", reason.to_string());
    }

    /// The message for the log, if one is due.
    pub(crate) fn news(&mut self, now: Instant) -> Option<String> {
        let all = self.clients + self.passwords + self.handshakes;
        let is_due = self.said_at.is_none_or(|said| now.duration_since(said) >= PAUSE);
        if all == self.said || !is_due {
            return None;
        }
        let more = match all - self.said {
            1 => String::new(),
            n => format!(" (and {} more)", n - 1),
        };
        (self.said, self.said_at) = (all, Some(now));
        Some(format!("refused {}{more}", self.last))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_said_with_their_number_and_not_at_any_rate() {
        // Catches a log that anybody who connects can fill, and refusals that are never said because they came too soon.
        let mut refused = Refused::default();
        let begun = Instant::now();
        assert_eq!(refused.news(begun), None);
        refused.note_client("[::1]:5", 10);
        assert_eq!(refused.news(begun).as_deref(), Some("refused [::1]:5: there are already 10 clients"));
        for _ in 0..3 {
            refused.note_password("[::1]:5");
            assert_eq!(refused.news(begun + PAUSE / 2), None);
        }
        let said = refused.news(begun + PAUSE);
        assert_eq!(said.as_deref(), Some("refused [::1]:5: wrong password (and 2 more)"));
        assert_eq!(refused.news(begun + 2 * PAUSE), None);
    }
}
