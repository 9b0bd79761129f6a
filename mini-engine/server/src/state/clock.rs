//! The time of day, and the instant at which commands are carried out.

use std::cell::OnceCell;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The instant at which a command is carried out, or several that belong together. It is the system's time when one of them first asks for it, so
/// commands that need no time do not read the clock; or an instant that was given, so that every node of a cluster comes to the same result.
#[derive(Debug, Default)]
pub(crate) struct Now(OnceCell<SystemTime>);

impl Now {
    pub(crate) fn get(&self) -> SystemTime {
        *self.0.get_or_init(SystemTime::now)
    }
}

impl From<SystemTime> for Now {
    fn from(instant: SystemTime) -> Self {
        Self(instant.into())
    }
}

/// The time since 1970 of an instant; zero before that.
pub(crate) fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The system's time in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    since_1970(SystemTime::now()).as_secs()
}
