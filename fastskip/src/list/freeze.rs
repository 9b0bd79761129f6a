//! Freezes a list: closes every gate, and waits for the writers inside.
//!
//! A freezing thread holds a lock while it closes the gates and looks at them, and gives it up to sleep. The writer that leaves a closed gate
//! as the last one wakes it, and takes the lock first: otherwise it could come when the other has looked and does not sleep yet, and wake
//! nobody. It finds the gate closed, or left before that; so no freezing thread sleeps for a writer that has left. No writer takes the lock
//! before its gate is closed. Shown by the models `freeze_waits_..` of `loom-tests`, which deadlock if a wake-up is lost.
//!
//! It sleeps on a condition variable of the list's own. To park would take the token of an `unpark` that the caller waits for, and needs the
//! thread's handle, which a thread may have lost when its thread-locals are destroyed.
//!
//! A list is frozen from the moment its first gate is closed: a thread that sees it closed closes the others too, before it
//! says so. It is drained when no writer is inside any more; only then its contents are final.

use super::gate::Gate;
use crate::sync::{Condvar, Mutex, OnceLock, PoisonError};

/// What freezing threads need.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    /// Held by a freezing thread that is awake, and for a moment by the last writer out.
    awake: Mutex<()>,
    /// Told when the last writer has left a gate.
    left: Condvar,
    /// Set when the list is drained. A gate cannot tell for ever: writers that are about to be turned away step in for a moment.
    drained: OnceLock<()>,
}

impl Freezing {
    /// Turns away every later writer, and returns when none is inside.
    pub(super) fn freeze<'a>(&self, gates: impl Iterator<Item = &'a Gate> + Clone) {
        let mut awake = self.awake.lock().unwrap_or_else(PoisonError::into_inner);
        gates.clone().for_each(Gate::freeze);
        // One gate after the other: whoever steps into a closed gate later writes nothing.
        for gate in gates {
            while !self.is_drained() && !gate.is_drained() {
                awake = self.left.wait(awake).unwrap_or_else(PoisonError::into_inner);
            }
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
        // Whoever has looked at the gate before the writer left sleeps when this has the lock.
        drop(self.awake.lock().unwrap_or_else(PoisonError::into_inner));
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
