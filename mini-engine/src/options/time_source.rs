//! [`TimeSource`]: the clock that determines when entries expire.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// The clock that determines when entries expire; the default is the system's. The replicas of a state machine need a clock on which they agree.
#[derive(Clone, Default)]
pub struct TimeSource(Option<Arc<dyn Fn() -> SystemTime + Send + Sync>>);

impl TimeSource {
    /// A clock whose time is the result of `now`. `now` is called often, by any number of threads, and with locks held that writes and snapshots
    /// need: it must not use the database, and every write waits for it. If it panics during a write, the database accepts no more writes.
    pub fn new(now: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(now)))
    }

    pub(crate) fn now(&self) -> SystemTime {
        self.0.as_ref().map_or_else(SystemTime::now, |now| now())
    }
}

impl fmt::Debug for TimeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TimeSource(of the application)" } else { "TimeSource(of the system)" })
    }
}

/// Two sources are equal if both are the system's clock, or if they are clones of each other.
impl PartialEq for TimeSource {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (None, None) => true,
            (Some(one), Some(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

impl Eq for TimeSource {}
