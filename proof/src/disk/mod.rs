//! Simulated disks, over the interface [`mini_engine::fs`]: [`MemFs`], a file system in memory that simulates power cuts, and [`FaultFs`], which wraps
//! another file system, records its operations and lets chosen ones fail.
//!
//! The engine's own unit tests compile these sources too, because their interface is another one than that of the library without its tests. So
//! the paths in them begin with the name of a crate, or with `super`.

mod content;
mod contents;
mod directory;
mod fault;
mod losses;
mod mem;

use std::sync::{Mutex, MutexGuard, PoisonError};

pub use contents::{Disk, Operation};
pub use fault::{Answer, Event, Failure, Fault, FaultFs, Held, Op, Repeat};
pub use losses::Losses;
pub use mem::{MemFs, Step};

/// Locks a state of which each change is one step, so that a panic of another holder has left it consistent.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
