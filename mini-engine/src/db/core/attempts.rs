//! Attempts at some work by one thread, requested by other threads, which get the error of a failed attempt. Guarded by the write lock.

use crate::error::Error;

#[derive(Debug, Default)]
pub(crate) struct Attempts {
    is_wanted: bool,
    begun: u64,
    /// The number of the last failed attempt, and its error.
    failed: Option<(u64, Error)>,
}

impl Attempts {
    /// Whether an attempt was requested and has not ended yet.
    pub(crate) fn is_wanted(&self) -> bool {
        self.is_wanted
    }

    /// Requests an attempt. Returns whether the working thread must be woken.
    pub(crate) fn want(&mut self) -> bool {
        !std::mem::replace(&mut self.is_wanted, true)
    }

    /// The number of attempts that have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun
    }

    /// Begins an attempt if one was requested, and returns whether it was. The attempt ends with [`end`](Self::end).
    pub(crate) fn begin(&mut self) -> bool {
        self.begun += u64::from(self.is_wanted);
        self.is_wanted
    }

    pub(crate) fn end(&mut self, error: Option<Error>) {
        self.is_wanted = false;
        if let Some(error) = error {
            self.failed = Some((self.begun, error));
        }
    }

    /// The error of a failed attempt later than the first `begun` ones.
    pub(crate) fn failure_after(&self, begun: u64) -> Option<&Error> {
        self.failed.as_ref().filter(|(number, _)| *number > begun).map(|(_, error)| error)
    }
}
