//! The only source of atomics, blocking primitives and thread numbers. The models in `loom-tests` compile the files of
//! this crate beside a `sync` of their own.

use core::sync::atomic::AtomicUsize;

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
pub(crate) use std::thread::yield_now;
use std::time::Duration;

/// Names an ordering, so that a model build can weaken one site at a time and show which model fails.
/// Here it is the identity and costs nothing.
#[inline(always)]
pub(crate) const fn ord(_site: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// Stores over a value that others may meanwhile change by a compare-and-swap from a value that they have read. In C++ and here a plain store is
/// enough; the models use an operation that loom understands.
#[inline(always)]
pub(crate) fn overwrite(word: &AtomicU64, value: u64, ordering: Ordering) {
    word.store(value, ordering);
}

/// How long it may take until someone who waits notices what nobody told them.
const WAIT: Duration = Duration::from_micros(100);

/// Unlocks the mutex, waits until it is told, at most for [`WAIT`], and locks the mutex again. The wait may end early, so the caller checks its
/// condition again. Uses no thread-local, so it may be called while they are destroyed.
pub(crate) fn wait_briefly<'a>(told: &Condvar, _mutex: &'a Mutex<()>, guard: MutexGuard<'a, ()>) -> MutexGuard<'a, ()> {
    told.wait_timeout(guard, WAIT).unwrap_or_else(PoisonError::into_inner).0
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_INDEX: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// This thread's number, which decides its shard. It says nothing about any table, so it cannot be wrong for one; two threads with the same shard
/// are only slower. A thread whose thread-locals have been dropped counts as 0.
#[inline]
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.try_with(|index| *index).unwrap_or(0)
}
