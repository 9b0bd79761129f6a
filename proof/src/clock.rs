//! [`Clock`]: a clock of a database that a test sets.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mini_engine::TimeSource;

/// A clock that stands still until it is set. Clones share their time.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    /// A clock that shows this time.
    pub fn at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// Sets the time, which may be earlier than before.
    pub fn set(&self, time: SystemTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// The time that it shows.
    pub fn now(&self) -> SystemTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The source through which a database reads this clock.
    pub fn source(&self) -> TimeSource {
        let clock = self.clone();
        TimeSource::new(move || clock.now())
    }
}

/// The time this number of seconds after 1970.
pub fn second(n: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(n)
}
