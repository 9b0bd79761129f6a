//! Simulated disks, over the interface [`mini_engine::fs`]: [`MemFs`], a file system in memory that simulates power cuts, and [`FaultFs`], which wraps
//! another file system, records its operations and lets chosen ones fail.
//!
//! The engine's own unit tests compile these sources too: in their build, the interface is a different type than that of the library without
//! tests. So paths in these sources begin with the name of a crate, or with `super`.

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

/// Locks a state. Each change of the state is one step, so a panic of another holder of the lock leaves the state consistent.
fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
