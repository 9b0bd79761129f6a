//! Runs a program in many schedules.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::sync::set_thread_index;

/// A concurrent program of four threads. It is made anew for each schedule.
pub trait Program: Send + Sync + 'static {
    /// What a thread remembers for the end.
    type Seen: Send + 'static;

    /// What the threads share.
    fn new() -> Self;

    /// What thread `number` does.
    fn thread(&self, number: usize) -> Self::Seen;

    /// What holds when all threads have ended; gets what they remember, in the order of their numbers.
    fn at_rest(&self, seen: Vec<Self::Seen>);
}

/// Threads of a program.
pub const THREADS: usize = 4;

/// How schedules are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// At each step every thread that can go on is as likely as any other.
    Even,
    /// By priorities that change at three random steps of the schedule: finds what needs a long delay of one thread.
    Priorities,
}

/// Runs `P` in `count` schedules drawn from `seed`; returns how many there were.
///
/// # Panics
/// If an assertion fails or the threads deadlock; prints the schedule first.
pub fn run<P: Program>(draw: Draw, seed: u64, count: usize) -> usize {
    let mut config = Config::new();
    config.silence_warnings = true;
    config.stack_size = 1 << 17;
    match draw {
        Draw::Even => Runner::new(RandomScheduler::new_from_seed(seed, count), config).run(execute::<P>),
        Draw::Priorities => Runner::new(PctScheduler::new_from_seed(seed, 4, count), config).run(execute::<P>),
    }
}

fn execute<P: Program>() {
    let program = Arc::new(P::new());
    let spawn = |number| {
        let program = Arc::clone(&program);
        shuttle::thread::spawn(move || {
            set_thread_index(number);
            program.thread(number)
        })
    };
    let threads: Vec<_> = (0..THREADS).map(spawn).collect();
    let seen = threads.into_iter().map(|thread| thread.join().expect("a panic ends the schedule")).collect();
    program.at_rest(seen);
}
