//! [`ReadCounter`]: a counter for many threads at once, without a read-modify-write and without a shared cache line.
//!
//! Each thread of the process has its own slot from its first count until it ends. In each counter, only this thread writes the word of its slot, by
//! a load and a store. Threads in excess of the number of slots share one word, to which they add by read-modify-write. So every count is exact.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of slots: one for each bit of the word that records which are taken.
const SLOTS: usize = u64::BITS as usize;

/// Has a bit for each slot, which is set while a thread has the slot.
static TAKEN: AtomicU64 = AtomicU64::new(0);

thread_local! {
    static SLOT: ThreadSlot = ThreadSlot::take();
}

/// The slot of a thread; `SLOTS` if none was free.
struct ThreadSlot(usize);

impl ThreadSlot {
    fn take() -> Self {
        // ORDERING(slot): Acquire; pairs with Release in `drop`. Weaker: a load could miss counts of the thread that had the slot before.
        let lowest_free = |taken: u64| (taken != u64::MAX).then(|| taken | (taken + 1));
        let before = TAKEN.fetch_update(Ordering::Acquire, Ordering::Relaxed, lowest_free);
        Self(before.map_or(SLOTS, |taken| taken.trailing_ones() as usize))
    }
}

impl Drop for ThreadSlot {
    fn drop(&mut self) {
        if self.0 < SLOTS {
            // ORDERING(slot): Release; see `take`.
            TAKEN.fetch_and(!(1 << self.0), Ordering::Release);
        }
    }
}

#[derive(Debug, Default)]
#[repr(align(64))]
struct Word(AtomicU64);

/// A number that only increases, and to which many threads add.
#[derive(Debug)]
pub(crate) struct ReadCounter {
    own: [Word; SLOTS],
    shared: Word,
}

impl Default for ReadCounter {
    fn default() -> Self {
        Self { own: std::array::from_fn(|_| Word::default()), shared: Word::default() }
    }
}

impl ReadCounter {
    #[inline]
    pub(crate) fn add(&self, n: u64) {
        // A thread that is ending may have returned its slot already.
        match self.own.get(SLOT.try_with(|slot| slot.0).unwrap_or(SLOTS)) {
            // Relaxed: no other thread writes this word.
            Some(Word(own)) => own.store(own.load(Ordering::Relaxed) + n, Ordering::Relaxed),
            None => drop(self.shared.0.fetch_add(n, Ordering::Relaxed)),
        }
    }

    pub(crate) fn get(&self) -> u64 {
        let words = self.own.iter().chain([&self.shared]);
        words.map(|word| word.0.load(Ordering::Relaxed)).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    #[test]
    fn no_count_is_lost_by_more_threads_than_slots() {
        // Catches two threads that have the same slot, at once or one after the other: they would overwrite each other's counts.
        const THREADS: usize = SLOTS + 9;
        let (counter, together) = (ReadCounter::default(), Barrier::new(THREADS));
        for round in 1..4 {
            thread::scope(|scope| {
                for _ in 0..THREADS {
                    scope.spawn(|| {
                        counter.add(1);
                        together.wait();
                        (0..1000).for_each(|_| counter.add(1));
                    });
                }
            });
            assert_eq!(counter.get(), round * 1001 * THREADS as u64);
        }
    }
}
