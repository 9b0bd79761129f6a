//! [`Seldom`]: keeps warnings that a stranger can cause from filling the log.

use std::io::{Error, ErrorKind};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use crate::lock::lock;

/// The minimum time between two such warnings.
const PAUSE: Duration = Duration::from_secs(10);

/// Lets a warning through if the last one is long ago.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether to warn that one side of a connection has refused the other, or does not understand it (TLS, certificates). An error of the system, such
    /// as that of a firewall, is none of these.
    pub(crate) fn is_due(&self, error: &Error) -> bool {
        let is_refusal = matches!(error.kind(), ErrorKind::PermissionDenied | ErrorKind::InvalidData);
        if !is_refusal || error.raw_os_error().is_some() {
            return false;
        }
        let mut last = lock(&self.0);
        let is_due = last.is_none_or(|last| last.elapsed() >= PAUSE);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_due_and_an_error_of_the_system_is_not() {
        // Catches a wrong certificate that only a debug log shows, and a firewall that is taken for a refusal.
        let due = |error: Error| Seldom::default().is_due(&error);
        assert!(due(ErrorKind::PermissionDenied.into()) && due(ErrorKind::InvalidData.into()));
        let firewall = Error::from_raw_os_error(1);
        assert_eq!(firewall.kind(), ErrorKind::PermissionDenied);
        assert!(!due(firewall) && !due(ErrorKind::UnexpectedEof.into()));
    }
}
