//! [`Clock`]: the time of a database, as a test sets it.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use mini_engine::TimeSource;

/// A clock that stands still until it is set. Clones are the same one.
#[derive(Clone, Debug)]
pub struct Clock(Arc<Mutex<SystemTime>>);

impl Clock {
    /// A clock that shows this time.
    pub fn at(time: SystemTime) -> Self {
        Self(Arc::new(Mutex::new(time)))
    }

    /// Sets it, to an earlier time too.
    pub fn set(&self, time: SystemTime) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = time;
    }

    /// The time that it shows.
    pub fn now(&self) -> SystemTime {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What a database reads it by.
    pub fn source(&self) -> TimeSource {
        let clock = self.clone();
        TimeSource::new(move || clock.now())
    }
}

/// The time this number of seconds after 1970.
pub fn second(n: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(n)
}
