//! Freezes a list: closes every gate, and waits for the writers inside.
//!
//! A freezing thread says who it is before it closes the first gate, and parks until all are drained. The last writer to leave a closed
//! gate therefore finds out whom to wake, and takes no lock: a freezing thread that the system has stopped keeps no writer waiting.
//! Other freezing threads wait for the first one.
//!
//! A list is frozen from the moment its first gate is closed: a thread that sees it closed closes the others too, before it
//! says so. It is drained when no writer is inside any more; only then its contents are final.

use super::gate::Gate;
use crate::sync::{Mutex, OnceLock, PoisonError, Thread, current, park};

/// What freezing threads need.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    /// The first freezing thread holds it until the list is drained.
    turn: Mutex<()>,
    /// The first freezing thread, which is the only one that parks.
    first: OnceLock<Thread>,
    /// Set when the list is drained. A gate cannot tell for ever: writers that are about to be turned away step in for a moment.
    drained: OnceLock<()>,
}

impl Freezing {
    /// Turns away every later writer, and returns when none is inside.
    pub(super) fn freeze<'a>(&self, gates: impl Iterator<Item = &'a Gate> + Clone) {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.first.set(current()).is_err() {
            // Another thread has had its turn.
            return;
        }
        gates.clone().for_each(Gate::freeze);
        while !gates.clone().all(Gate::is_drained) {
            park();
        }
        let _ = self.drained.set(());
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(super) fn is_drained(&self) -> bool {
        self.drained.get().is_some()
    }

    /// Wakes the freezing thread, which may be waiting for the writer that has just left `gate`.
    #[cold]
    pub(super) fn wake(&self, gate: &Gate) {
        // To see the gate closed is to see what the freezing thread did before.
        if gate.is_frozen() {
            self.first.get().into_iter().for_each(Thread::unpark);
        }
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
