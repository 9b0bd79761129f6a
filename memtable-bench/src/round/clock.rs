//! Times threads that work at once, and divides the work between them.

use std::ops::Range;
use std::panic;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The time from when the first thread begins to when the last one is done, and what each returned. It does not include the
/// start of the threads: they wait for each other first. A thread that panics makes this panic.
pub(crate) fn timed<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> (Duration, Vec<R>) {
    let gate = Barrier::new(threads);
    let run = |thread| {
        gate.wait();
        let begun = Instant::now();
        let made = work(thread);
        (begun, Instant::now(), made)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let run = &run;
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        let join =
            |handle: thread::ScopedJoinHandle<'_, _>| handle.join().unwrap_or_else(|cause| panic::resume_unwind(cause));
        handles.into_iter().map(join).collect()
    });
    let first = ended.iter().map(|(begun, ..)| *begun).min();
    let last = ended.iter().map(|(_, done, _)| *done).max();
    let time = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    (time, ended.into_iter().map(|(.., made)| made).collect())
}

/// The part of `0..len` for one of `threads`: neighbours stay together, and no two parts differ by more than one.
pub(crate) fn share(len: usize, threads: usize, thread: usize) -> Range<usize> {
    let bound = |thread: usize| (len as u128 * thread as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_everything_once_and_even() {
        // Catches records that no thread stores, that two store, or that one has to store almost alone.
        for (len, threads) in [(10, 1), (10, 3), (7, 7), (2000, 9)] {
            let shares: Vec<_> = (0..threads).map(|thread| share(len, threads, thread)).collect();
            assert_eq!(shares.iter().cloned().flatten().collect::<Vec<_>>(), (0..len).collect::<Vec<_>>());
            assert!(shares.iter().all(|share| share.len().abs_diff(len / threads) <= 1), "{shares:?}");
        }
    }

    #[test]
    fn every_thread_works_once_and_results_are_in_their_order() {
        // Catches a thread's result lost, or counted for another one.
        let (_, made) = timed(4, |thread| thread * 10);
        assert_eq!(made, [0, 10, 20, 30]);
    }
}
