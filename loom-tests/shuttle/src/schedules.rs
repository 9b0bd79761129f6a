//! Runs a program in many schedules.

use std::sync::Arc;

use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner};

use crate::sync::set_thread_index;

/// A concurrent program of four threads.
pub struct Program<T, S> {
    /// Makes the shared data of the threads, new for each schedule.
    pub new: fn() -> T,
    /// Does the work of thread `number`; returns the data that it keeps for the end.
    pub thread: fn(&T, usize) -> S,
    /// Checks the result after all threads have ended; gets the data that they kept, in the order of their numbers.
    pub at_rest: fn(&T, Vec<S>),
}

/// Threads of a program.
pub const THREADS: usize = 4;

/// How schedules are drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Draw {
    /// At each step every thread that can go on is as likely as any other.
    Even,
    /// By priorities that change at three random steps of the schedule: finds defects that need a long delay of one thread.
    Priorities,
}

impl<T: Send + Sync + 'static, S: Send + 'static> Program<T, S> {
    /// Runs the program in `count` schedules drawn from `seed`; returns the number of schedules.
    ///
    /// # Panics
    /// If an assertion fails or the threads deadlock; prints the schedule first.
    #[must_use]
    pub fn run(self, draw: Draw, seed: u64, count: usize) -> usize {
        let mut config = Config::new();
        config.silence_warnings = true;
        config.stack_size = 1 << 17;
        let execute = move || self.execute();
        match draw {
            Draw::Even => Runner::new(RandomScheduler::new_from_seed(seed, count), config).run(execute),
            Draw::Priorities => Runner::new(PctScheduler::new_from_seed(seed, 4, count), config).run(execute),
        }
    }

    fn execute(&self) {
        let shared = Arc::new((self.new)());
        let spawn = |number| {
            let (shared, thread) = (Arc::clone(&shared), self.thread);
            shuttle::thread::spawn(move || {
                set_thread_index(number);
                thread(&shared, number)
            })
        };
        let threads: Vec<_> = (0..THREADS).map(spawn).collect();
        let seen = threads.into_iter().map(|thread| thread.join().expect("a panic ends the schedule")).collect();
        (self.at_rest)(&shared, seen);
    }
}
