//! Atomics, blocking primitives and the threads' numbers for the schedules: the same names as in `fastskip/src/sync`, from shuttle. Every
//! ordering means sequential consistency here.

use core::marker::PhantomData;
use std::cell::Cell;

pub(crate) use core::sync::atomic::Ordering;
pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
pub(crate) use shuttle::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use shuttle::thread::yield_now;
pub(crate) use std::sync::{Arc, OnceLock, PoisonError};

/// As in the shipped build.
pub(crate) const fn ord(_site: &'static str, ordering: Ordering) -> Ordering {
    ordering
}

/// As in the shipped build.
pub(crate) fn overwrite(word: &AtomicU64, value: u64, ordering: Ordering) {
    word.store(value, ordering);
}

/// Does nothing: in sequentially consistent memory, a write publishes its bytes.
pub(crate) struct Watch<T>(PhantomData<T>);

impl<T> Watch<T> {
    pub(crate) fn new(_: T) -> Self {
        Self(PhantomData)
    }

    pub(crate) fn with(&self, _: impl FnOnce(*const T)) {}

    pub(crate) fn with_mut(&self, _: impl FnOnce(*mut T)) {}
}

shuttle::thread_local! {
    static THREAD_INDEX: Cell<usize> = Cell::new(0);
}

/// This thread's number, which decides its shard. The program sets it, so that every execution can be repeated.
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.with(Cell::get)
}

/// Numbers this thread.
pub(crate) fn set_thread_index(index: usize) {
    THREAD_INDEX.with(|own| own.set(index));
}
