//! A number for each thread, which decides the shard it writes to. It says nothing about any table, so it cannot be
//! wrong for one; two threads with the same shard are merely slower.

use core::sync::atomic::{AtomicUsize, Ordering};

static NEXT: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static INDEX: usize = NEXT.fetch_add(1, Ordering::Relaxed);
}

/// This thread's number. A thread that is past its thread-locals' end counts as number 0.
#[inline]
pub(crate) fn index() -> usize {
    INDEX.try_with(|index| *index).unwrap_or(0)
}
