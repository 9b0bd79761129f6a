//! The only door to atomics and blocking primitives, `thread` apart, which no table's state depends on. The models in
//! `loom-tests` compile the files of this crate beside a `sync` of their own.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
pub(crate) use std::sync::{Arc, Condvar, Mutex, PoisonError};

/// Names an ordering, so that a model build can weaken one site at a time and show which model notices.
/// Here it is the identity and costs nothing.
#[inline(always)]
pub(crate) const fn ord(_site: &'static str, ordering: Ordering) -> Ordering {
    ordering
}
