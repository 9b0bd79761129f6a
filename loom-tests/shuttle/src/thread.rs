//! The number of a thread, which decides its shard: the program says it, so that a schedule can be repeated.

use std::cell::Cell;

shuttle::thread_local! {
    static INDEX: Cell<usize> = Cell::new(0);
}

/// This thread's number.
pub(crate) fn index() -> usize {
    INDEX.with(Cell::get)
}

/// Numbers this thread.
pub(crate) fn set_index(index: usize) {
    INDEX.with(|own| own.set(index));
}
