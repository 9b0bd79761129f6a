//! The crate's only source of atomics, blocking primitives and thread numbers. The loom models in `loom-tests` compile the files of this crate with
//! their own `sync` module.

use core::sync::atomic::AtomicUsize;

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
pub(crate) use std::thread::yield_now;

/// Names an ordering, so that a build of the models can weaken one site at a time and show which model then fails. In this build it returns the
/// ordering unchanged and costs nothing.
#[inline(always)]
pub(crate) const fn ord(_site: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// Stores a value, while other threads may change the old value by a compare-and-swap. In C++ and Rust a plain store is enough; the loom models use
/// an operation that loom handles correctly.
#[inline(always)]
pub(crate) fn overwrite(word: &AtomicU64, value: u64, ordering: Ordering) {
    word.store(value, ordering);
}

static NEXT_THREAD: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static THREAD_INDEX: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// The number of this thread, which determines its shard. It is independent of any table, so it is valid for all of them; two threads in the same
/// shard are only slower. A thread whose thread-locals have been destroyed gets number 0.
#[inline]
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.try_with(|index| *index).unwrap_or(0)
}
