//! [`ExclusiveTurn`]: lets one thread at a time run an exclusive transaction.

use std::sync::{Condvar, Mutex};
use std::thread::ThreadId;

use crate::error::{Error, Result};
use crate::lock::{lock, wait};

/// The turn to run an exclusive transaction.
#[derive(Debug, Default)]
pub(crate) struct ExclusiveTurn {
    holder: Mutex<Option<ThreadId>>,
    ended: Condvar,
}

/// The turn of this thread, until it is dropped.
pub(crate) struct HeldTurn<'a>(&'a ExclusiveTurn);

impl ExclusiveTurn {
    /// Waits until no thread has the turn, and takes it.
    ///
    /// # Errors
    /// [`Error::InvalidArgument`] if this thread has the turn: it would wait for itself.
    pub(crate) fn begin(&self) -> Result<HeldTurn<'_>> {
        let this_thread = std::thread::current().id();
        let mut holder = lock(&self.holder);
        while let Some(thread) = *holder {
            if thread == this_thread {
                let text = "an exclusive transaction inside another one of the same thread would wait for ever: use the outer one";
                return Err(Error::InvalidArgument(text.to_owned()));
            }
            holder = wait(&self.ended, holder);
        }
        *holder = Some(this_thread);
        Ok(HeldTurn(self))
    }
}

impl Drop for HeldTurn<'_> {
    fn drop(&mut self) {
        *lock(&self.0.holder) = None;
        self.0.ended.notify_one();
    }
}
