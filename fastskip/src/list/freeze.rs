//! Freezes a list: closes every gate, and waits for the writers inside.
//!
//! A freezing thread says who it is before it closes the first gate, and parks until all are drained. The last writer to leave a closed
//! gate therefore finds out whom to wake, and takes no lock: a freezing thread that the system has stopped keeps no writer waiting.
//! Other freezing threads wait for the first one.
//!
//! A list is frozen from the moment its first gate is closed: a thread that sees it closed closes the others too, before it
//! says so. It is drained when no writer is inside any more; only then its contents are final.

use super::List;
use super::schema::Schema;
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

impl<S: Schema> List<S> {
    /// Turns away every later writer, and returns when none is inside.
    pub(crate) fn freeze(&self) {
        let _turn = self.freezing.turn.lock().unwrap_or_else(PoisonError::into_inner);
        if self.freezing.first.set(current()).is_err() {
            // Another thread has had its turn.
            return;
        }
        self.close_gates();
        while !self.arena.shards().all(|shard| shard.gate.is_drained()) {
            park();
        }
        let _ = self.freezing.drained.set(());
    }

    fn close_gates(&self) {
        for shard in self.arena.shards() {
            shard.gate.freeze();
        }
    }

    /// Whether every later write is refused. Writers inside may still finish.
    pub(crate) fn is_frozen(&self) -> bool {
        let frozen = self.arena.shard(0).gate.is_frozen();
        if frozen && !self.arena.shards().all(|shard| shard.gate.is_frozen()) {
            self.close_gates();
        }
        frozen
    }

    /// Whether the list is frozen and no writer is inside: its contents are final.
    pub(crate) fn is_drained(&self) -> bool {
        self.freezing.drained.get().is_some()
    }

    /// Wakes the freezing thread, which may be waiting for the writer that has just left `shard`.
    #[cold]
    pub(super) fn wake_freezer(&self, shard: usize) {
        // To see the gate closed is to see what the freezing thread did before.
        if self.arena.shard(shard).gate.is_frozen() {
            self.freezing.first.get().into_iter().for_each(Thread::unpark);
        }
    }
}
