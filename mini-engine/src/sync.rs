//! The standard library's means to synchronise, under a name of our own: the models compile [`Publication`](crate::db) with others.

pub(crate) mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
}

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
pub(crate) use std::thread::yield_now;
