//! Atomics, their orderings, and the pause of a thread that tries again.

#[cfg(not(feature = "std"))]
pub(crate) use core::hint::spin_loop as yield_now;
#[cfg(target_has_atomic = "64")]
pub(crate) use core::sync::atomic::AtomicU64;
pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
#[cfg(feature = "std")]
pub(crate) use std::thread::yield_now;

#[cfg(not(target_has_atomic = "64"))]
pub(crate) use portable_atomic::AtomicU64;

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
