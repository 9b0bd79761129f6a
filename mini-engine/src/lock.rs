//! Locks whose holder may panic, and the handling of such a panic.
//!
//! The data that the engine's mutexes guard is consistent after every statement, or a panic under the lock has made the engine read-only
//! (`fail_on_unwind`). So the poisoning of a mutex adds no information.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits for `condvar`, releasing the lock meanwhile. It may return early.
pub(crate) fn wait<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condvar.wait(guard).unwrap_or_else(PoisonError::into_inner)
}

/// Like [`wait`], for `time` at most.
pub(crate) fn wait_timeout<'a, T>(condvar: &Condvar, guard: MutexGuard<'a, T>, time: Duration) -> MutexGuard<'a, T> {
    condvar.wait_timeout(guard, time).unwrap_or_else(PoisonError::into_inner).0
}

/// Runs `step`, and calls `unwound` if `step` panics.
pub(crate) fn on_unwind<T>(step: impl FnOnce() -> T, unwound: impl Fn()) -> T {
    struct Unwinding<F: Fn()>(F);
    impl<F: Fn()> Drop for Unwinding<F> {
        fn drop(&mut self) {
            self.0();
        }
    }
    let unwinding = Unwinding(unwound);
    let done = step();
    std::mem::forget(unwinding);
    done
}
