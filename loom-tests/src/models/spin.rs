//! The locks of targets without `std`: the holder of a lock sees all writes of the previous holder, and a reader of a value that is set once sees all
//! writes before it was set.

use crate::check::Program;
use crate::sync::spin::{Mutex, OnceLock};
use crate::sync::{AtomicU32, Ordering};

/// Two threads count under a lock, without a read-modify-write, or find the lock taken. None spins: loom would never end.
pub(super) fn lock() -> Program<(Mutex<()>, AtomicU32)> {
    Program::new(Default::default)
        .threads(2, |(lock, count): &(Mutex<_>, AtomicU32), _| {
            let Ok(_guard) = lock.try_lock() else { return "taken" };
            count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            "counts"
        })
        .at_rest(|(_, count)| count.load(Ordering::Relaxed).to_string())
        .expects(&["counts | counts | 2", "counts | taken | 1", "taken | counts | 1"])
}

/// A thread writes a word and then sets the value; the other reads the word if it sees the value.
pub(super) fn once() -> Program<(OnceLock<()>, AtomicU32)> {
    Program::new(Default::default)
        .thread(|(once, word): &(OnceLock<_>, AtomicU32)| {
            word.store(1, Ordering::Relaxed);
            assert_eq!(once.set(()), Ok(()));
        })
        .thread(|(once, word)| once.get().map_or("early".to_owned(), |()| word.load(Ordering::Relaxed).to_string()))
        .expects(&["1", "early"])
}
