//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The duration from 1970 to an instant; zero before 1970.
pub(crate) fn since_1970(at: SystemTime) -> Duration {
    at.duration_since(UNIX_EPOCH).unwrap_or_default()
}

/// The system's time in seconds since 1970.
pub(crate) fn unix_seconds() -> u64 {
    since_1970(SystemTime::now()).as_secs()
}
