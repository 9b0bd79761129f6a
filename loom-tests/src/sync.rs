//! Atomics, blocking primitives and the threads' numbers for the models: the same names as in `fastskip/src/sync`, from loom.
//!
//! `Arc` is the standard one: its counting is not modelled, and every handle is dropped after the threads of a model are joined. `OnceLock` is the
//! standard one too: it never blocks here, because it is set under a lock. So its ordering is not modelled either.

use std::cell::Cell;

pub(crate) use core::sync::atomic::Ordering;
pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, fence};
pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;
pub(crate) use std::sync::{Arc, OnceLock, PoisonError};

pub(crate) use crate::weaken::ord;

/// The place where the locks below look for them.
mod atomic {
    pub(crate) use super::{AtomicBool, Ordering, ord, yield_now};
}

/// The locks of targets without `std`, which have models of their own. All other models use loom's.
#[path = "../../fastskip/src/sync/spin.rs"]
#[allow(dead_code, reason = "the models use what has an ordering")]
pub(crate) mod spin;

/// A plain store in the shipped build, here a swap. A read-modify-write directly follows the value that it has read, so one that read an older
/// value comes before this store. loom 0.7.2 guarantees that only among read-modify-writes: with a plain store, either of the two writes could be
/// the last (`tests/suite/canaries.rs`).
pub(crate) fn overwrite(word: &AtomicU64, value: u64, ordering: Ordering) {
    word.swap(value, ordering);
}

/// The spins and yields of the engine's threads before they sleep: few, because the models check the sleep.
pub(crate) const SPINS: usize = 1;
pub(crate) const YIELDS: usize = 1;

/// Checks that accesses of the data beside it do not race.
pub(crate) type Watch<T> = loom::cell::UnsafeCell<T>;

loom::thread_local! {
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

/// What `crossbeam-epoch` promises, in its simplest form: a deferred function runs after every guard that existed when it was deferred is dropped. The
/// crate has models of its own algorithm.
pub(crate) mod epoch {
    use std::collections::BTreeSet;

    use loom::sync::Mutex;

    type Deferred = (BTreeSet<usize>, Box<dyn FnOnce() + Send>);

    #[derive(Default)]
    struct Collector {
        entered: usize,
        inside: BTreeSet<usize>,
        deferred: Vec<Deferred>,
    }

    loom::lazy_static! {
        static ref COLLECTOR: Mutex<Collector> = Mutex::new(Collector::default());
    }

    pub(crate) struct Guard(usize);

    pub(crate) fn enter() -> Guard {
        let mut collector = COLLECTOR.lock().expect("no model panics here");
        collector.entered += 1;
        let guard = collector.entered;
        collector.inside.insert(guard);
        Guard(guard)
    }

    impl Guard {
        pub(crate) fn defer(&self, run: impl FnOnce() + Send + 'static) {
            let mut collector = COLLECTOR.lock().expect("no model panics here");
            let inside = collector.inside.clone();
            collector.deferred.push((inside, Box::new(run)));
        }

        /// A deferred function runs as early as it may, so there is nothing to hasten.
        pub(crate) fn flush(&self) {}
    }

    impl Drop for Guard {
        fn drop(&mut self) {
            let mut collector = COLLECTOR.lock().expect("no model panics here");
            collector.inside.remove(&self.0);
            collector.deferred.iter_mut().for_each(|(inside, _)| _ = inside.remove(&self.0));
            let (due, waiting) =
                std::mem::take(&mut collector.deferred).into_iter().partition(|(inside, _)| inside.is_empty());
            collector.deferred = waiting;
            drop(collector);
            let due: Vec<Deferred> = due;
            due.into_iter().for_each(|(_, run)| run());
        }
    }
}
