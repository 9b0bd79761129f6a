//! [`Seldom`]: keeps warnings that a stranger can cause from filling the log.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The minimum time between two such warnings.
const PAUSE: Duration = Duration::from_secs(10);

/// Lets a warning through if the last one is long ago.
#[derive(Default)]
pub(crate) struct Seldom(Mutex<Option<Instant>>);

impl Seldom {
    /// Whether to log the warning.
    pub(crate) fn is_due(&self) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| last.elapsed() >= PAUSE);
        if is_due {
            *last = Some(Instant::now());
        }
        is_due
    }
}
