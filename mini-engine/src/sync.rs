//! The standard library's means of synchronisation, under a name of our own: `publication.rs` and `group_commit.rs` use them, and the
//! models of `loom-tests` compile these files with other means of the same names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

/// How often a thread looks again before it does anything else. What it waits for takes another thread about a microsecond, unless that
/// was interrupted.
pub(crate) const SPINS: usize = 100;
/// How often it then gives its processor away before it sleeps: to be woken takes longer than most interruptions.
pub(crate) const YIELDS: usize = 20;
