//! What [`Publication`](crate::db) synchronises with: the standard library's, under a name of our own. The models of `loom-tests` compile
//! it with other means of these names.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;

/// How often a thread looks again before it does anything else. What it waits for takes another thread about a microsecond, unless that
/// was interrupted.
pub(crate) const SPINS: usize = 100;
/// How often it then gives its processor away before it sleeps: to be woken takes longer than most interruptions.
pub(crate) const YIELDS: usize = 20;
