//! The standard library's synchronisation types, re-exported: `publication.rs` and `group_commit.rs` use them, and the
//! models of `loom-tests` compile these files with other types of the same names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

/// The number of times that a thread checks again at once. The step that it waits for takes another thread about a microsecond, unless that thread
/// was interrupted.
pub(crate) const SPINS: usize = 100;
/// The number of times that the thread then yields its processor before it sleeps: a wake-up takes longer than most interruptions.
pub(crate) const YIELDS: usize = 20;
