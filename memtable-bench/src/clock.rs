//! Times threads that work at once, and divides the work between them.

use std::ops::Range;
use std::panic;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

/// The time from when the first thread begins to when the last one is done, and what each returned. It does not include the
/// start of the threads: they wait for each other first. A thread that panics makes this panic.
pub(crate) fn timed<R: Send>(threads: usize, work: impl Fn(usize) -> R + Sync) -> (Duration, Vec<R>) {
    let (gate, work) = (&Barrier::new(threads), &work);
    let run = move |thread| {
        gate.wait();
        let begun = Instant::now();
        let made = work(thread);
        (begun, Instant::now(), made)
    };
    let ended: Vec<_> = thread::scope(|scope| {
        let handles: Vec<_> = (0..threads).map(|thread| scope.spawn(move || run(thread))).collect();
        handles.into_iter().map(|of| of.join().unwrap_or_else(|cause| panic::resume_unwind(cause))).collect()
    });
    let (first, last) = (ended.iter().map(|end| end.0).min(), ended.iter().map(|end| end.1).max());
    let time = first.zip(last).map_or(Duration::ZERO, |(first, last)| last - first);
    (time, ended.into_iter().map(|(.., made)| made).collect())
}

/// The part of `0..len` for one of `threads`: neighbours stay together, and no two parts differ by more than one.
pub(crate) fn share(len: usize, threads: usize, thread: usize) -> Range<usize> {
    let bound = |thread: usize| (len as u128 * thread as u128 / threads as u128) as usize;
    bound(thread)..bound(thread + 1)
}
