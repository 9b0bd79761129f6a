//! [`Backoff`]: the delay between attempts of a worker.

use std::sync::MutexGuard;
use std::time::{Duration, Instant};

use crate::db::core::{Core, Phase, State};
use crate::lock::wait_timeout;

const FIRST_BACKOFF: Duration = Duration::from_millis(20);
/// Short, because writers wait for flushes.
pub(super) const FLUSH_MAX_BACKOFF: Duration = Duration::from_secs(1);

/// A delay between attempts that doubles with each attempt.
pub(super) struct Backoff {
    next: Duration,
    max: Duration,
}

impl Backoff {
    pub(super) fn up_to(max: Duration) -> Backoff {
        Backoff { next: FIRST_BACKOFF, max }
    }

    /// Limits the next delay to `max`.
    pub(super) fn limit(&mut self, max: Duration) {
        (self.next, self.max) = (self.next.min(max), max);
    }

    pub(super) fn reset(&mut self) {
        self.next = FIRST_BACKOFF;
    }

    /// The instant at which the next delay ends.
    pub(super) fn until(&mut self) -> Instant {
        let until = Instant::now() + self.next;
        self.next = self.max.min(self.next * 2);
        until
    }

    /// Waits for the delay, unless the engine fails or stops.
    pub(super) fn wait<'a>(&mut self, core: &Core, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let until = self.until();
        while state.phase != Phase::Stopped && core.check_usable().is_ok() {
            let Some(left) = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero()) else {
                break;
            };
            state = wait_timeout(&core.work, state, left);
        }
        state
    }
}
