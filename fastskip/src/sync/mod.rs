//! The crate's only source of atomics, blocking primitives and thread numbers. The loom models in `loom-tests` compile the files of this crate with
//! their own `sync` module.

mod atomic;
#[cfg(not(feature = "std"))]
mod spin;

pub(crate) use alloc::sync::Arc;
#[cfg(feature = "std")]
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

pub(crate) use self::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, ord, overwrite, yield_now};
#[cfg(not(feature = "std"))]
pub(crate) use self::spin::{Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};

#[cfg(feature = "std")]
static NEXT_THREAD: core::sync::atomic::AtomicUsize = core::sync::atomic::AtomicUsize::new(0);

#[cfg(feature = "std")]
std::thread_local! {
    static THREAD_INDEX: usize = NEXT_THREAD.fetch_add(1, Ordering::Relaxed);
}

/// The number of this thread, which determines its shard. It is independent of any table, so it is valid for all of them; two threads in the same
/// shard are only slower. A thread whose thread-locals have been destroyed gets number 0.
#[cfg(feature = "std")]
#[inline]
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.try_with(|index| *index).unwrap_or(0)
}

/// A number that determines the shard of one operation: the page of the stack, mixed, since without `std` there are no thread-locals. Threads have
/// stacks of their own, so their numbers differ. An operation takes its number once. A thread's number may change with the depth of its calls: that
/// only makes the thread slower, and the room that it has given back may be in another shard.
#[cfg(not(feature = "std"))]
#[inline]
pub(crate) fn thread_index() -> usize {
    let on_the_stack = 0_u8;
    let page = (&raw const on_the_stack).addr() as u64 >> 12;
    (page.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize
}
