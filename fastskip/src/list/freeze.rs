//! Freezes a list: closes every gate, and waits for the writers inside.
//!
//! A freezing thread looks at the gates until all are drained, and sleeps between two looks. The last writer to leave a closed gate wakes
//! it, and takes no lock: a freezing thread that the system has stopped keeps no writer waiting. So the writer can come when the other has
//! looked and does not sleep yet, and wakes nobody; therefore no sleep is long (`sync::wait_briefly`).
//!
//! It sleeps on a condition variable of the list's own. To park would take the token of an `unpark` that the caller waits for, and needs the
//! thread's handle, which a thread may have lost when its thread-locals are destroyed.
//!
//! A list is frozen from the moment its first gate is closed: a thread that sees it closed closes the others too, before it
//! says so. It is drained when no writer is inside any more; only then its contents are final.

use super::gate::Gate;
use crate::sync::{Condvar, Mutex, OnceLock, PoisonError, wait_briefly};

/// What freezing threads need.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    /// Held by a freezing thread that is awake.
    awake: Mutex<()>,
    /// Told when a writer has left.
    left: Condvar,
    /// Set when the list is drained. A gate cannot tell for ever: writers that are about to be turned away step in for a moment.
    drained: OnceLock<()>,
}

impl Freezing {
    /// Turns away every later writer, and returns when none is inside.
    pub(super) fn freeze<'a>(&self, gates: impl Iterator<Item = &'a Gate> + Clone) {
        let mut awake = self.awake.lock().unwrap_or_else(PoisonError::into_inner);
        gates.clone().for_each(Gate::freeze);
        while !self.is_drained() && !gates.clone().all(Gate::is_drained) {
            awake = wait_briefly(&self.left, &self.awake, awake);
        }
        let _ = self.drained.set(());
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(super) fn is_drained(&self) -> bool {
        self.drained.get().is_some()
    }

    /// Wakes the freezing threads, which may be waiting for the writer that has just left a closed gate.
    #[cold]
    pub(super) fn wake(&self) {
        self.left.notify_all();
    }
}

/// Whether every later write is refused. Writers inside may still finish.
pub(super) fn is_frozen<'a>(mut gates: impl Iterator<Item = &'a Gate> + Clone) -> bool {
    let all = gates.clone();
    let frozen = gates.next().is_some_and(Gate::is_frozen);
    if frozen && !gates.all(Gate::is_frozen) {
        all.for_each(Gate::freeze);
    }
    frozen
}
