//! The standard library's synchronisation types, re-exported: `publication.rs`, `group_commit.rs` and `epoch.rs` use them, and the
//! models of `loom-tests` compile these files with other types of the same names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

/// The ordering; the models make it weaker by its name.
#[inline]
pub(crate) const fn ord(_name: &str, ordering: Ordering) -> Ordering {
    ordering
}

/// The number of times that a thread checks again at once. The step that it waits for takes another thread about a microsecond, unless that thread
/// was interrupted.
pub(crate) const SPINS: usize = 100;
/// The number of times that the thread then yields its processor before it sleeps: a wake-up takes longer than most interruptions.
pub(crate) const YIELDS: usize = 20;

/// The epochs of `epoch.rs`: a collector of the engine's own, so that no other user of the crate delays what the engine frees.
pub(crate) mod epoch {
    use std::sync::LazyLock;

    pub(crate) use crossbeam_epoch::Guard;
    use crossbeam_epoch::{Collector, LocalHandle};

    static COLLECTOR: LazyLock<Collector> = LazyLock::new(Collector::new);

    thread_local! {
        static THREAD: LocalHandle = COLLECTOR.register();
    }

    /// Pins the thread. One that is ending may have returned its handle; then it gets another one.
    #[inline]
    pub(crate) fn enter() -> Guard {
        THREAD.try_with(LocalHandle::pin).unwrap_or_else(|_| COLLECTOR.register().pin())
    }
}
