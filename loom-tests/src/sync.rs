//! The models' door to atomics, blocking primitives and the threads' numbers: the same names as `fastskip/src/sync.rs`, from loom.
//!
//! `Arc` is the standard one: its counting is not what is modelled, and every handle is dropped after the threads of a
//! model are joined. So is `OnceLock`, which never blocks here: it is set under a lock.

use std::cell::Cell;

pub(crate) use core::sync::atomic::Ordering;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;
pub(crate) use std::sync::{Arc, OnceLock, PoisonError};

pub(crate) use crate::weaken::ord;

/// In the shipped build a store. A read-modify-write comes right behind what it has read, whatever else is stored, so what it wrote
/// from a value that this store follows lies before this store. loom 0.7.2 knows that of read-modify-writes only: beside a store, it
/// would show either as the last (`tests/suite/canaries.rs`).
pub(crate) fn overwrite(word: &AtomicU64, value: u64, ordering: Ordering) {
    word.swap(value, ordering);
}

/// The engine's threads soon go to sleep: that is what is modelled.
pub(crate) const SPINS: usize = 1;
pub(crate) const YIELDS: usize = 1;

/// Watches who reads and who writes what stands beside it.
pub(crate) type Watch<T> = loom::cell::UnsafeCell<T>;

loom::thread_local! {
    static THREAD_INDEX: Cell<usize> = Cell::new(0);
}

/// This thread's number, which decides its shard: the program says it, so that every execution can be repeated.
pub(crate) fn thread_index() -> usize {
    THREAD_INDEX.with(Cell::get)
}

/// Numbers this thread.
pub(crate) fn set_thread_index(index: usize) {
    THREAD_INDEX.with(|own| own.set(index));
}

/// Returns though nobody told, as the shipped one does sooner or later: loom knows no time.
pub(crate) fn wait_briefly<'a>(_: &Condvar, guard: MutexGuard<'a, ()>) -> MutexGuard<'a, ()> {
    yield_now();
    guard
}
