//! Power cuts and kills at every operation of the file system, over a model of a disk; errors at every operation; flipped
//! bits. Start with `oracle`: it says what is right.
//!
//! `CRASH_SEED=n` repeats a run, `CRASH_POINTS=n` makes the exploration longer than it is at every commit, and flips all
//! bits of each byte; `CRASH_ROUNDS=n` is the same for rounds with threads.

mod checkpoint;
mod errors;
mod explore;
mod flips;
mod history;
mod killed;
mod lie;
mod oracle;
mod points;
mod run;
mod script;

/// A number from the environment.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}: expected a number")))
}
