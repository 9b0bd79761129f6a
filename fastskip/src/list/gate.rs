//! Lets writers into a shard until the table is frozen.
//!
//! One word a shard holds {frozen, writers inside, attempts}. A writer enters by adding itself and learns from the same
//! step whether it came too late; freezing sets the bit in every shard and waits until no writer is inside. Entering,
//! leaving and freezing are read-modify-writes of one word, so each writer is either counted before the bit or sees it.
//! A writer first looks at the word, and does not add itself when the bit is set: otherwise writers that keep trying
//! would keep the freezing thread waiting.
//!
//! A writer that enters an empty gate is alone until it leaves: a writer that enters meanwhile sees that it is not the
//! only one. So data that only lone writers touch (`run.rs`, half of each counter) needs no further lock. A lone
//! writer's `enter` acquires what the previous one released by `leave`, through every read-modify-write between.
//!
//! I7 freeze: an insert that returned success is in the frozen table. Its links happen before its `leave` (Release),
//! which the freezing thread acquires. An insert that entered later is turned away before it writes.
//!
//! # Freezing
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

use crate::error::InsertError;
use crate::sync::{AtomicU64, Condvar, Mutex, OnceLock, Ordering, PoisonError, ord};

const FROZEN: u64 = 1;
const WRITER: u64 = 1 << 1;
const WRITERS: u64 = ((1 << 20) - 1) << 1;
const ATTEMPT_SHIFT: u32 = 21;

/// One shard's gate.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU64);

impl Gate {
    /// Enters for `attempts` inserts. Returns whether no other writer was inside. Every success needs its [`leave`](Self::leave).
    ///
    /// # Errors
    /// [`InsertError::Frozen`]; [`InsertError::Full`] if half a million writers are inside: one more could make the count run into its
    /// neighbour. With it, the result of the `leave` that followed.
    #[inline]
    pub(crate) fn enter(&self, attempts: u64) -> Result<bool, (InsertError, bool)> {
        // ORDERING(gate.look, gate.enter): Acquire; pairs with `freeze`. Weaker: a writer that was turned away could miss
        // what the freezing thread did before, such as publishing the next table. `gate.enter` pairs with `leave` too:
        // weaker, a lone writer could miss the run and the counts of the one before (loom `lone`).
        if self.0.load(ord("gate.look", Ordering::Acquire)) & FROZEN != 0 {
            self.count_attempts(attempts);
            return Err((InsertError::Frozen, false));
        }
        let seen = self.0.fetch_add(WRITER | attempts << ATTEMPT_SHIFT, ord("gate.enter", Ordering::Acquire));
        if seen & FROZEN != 0 {
            return Err((InsertError::Frozen, self.leave()));
        }
        if seen & WRITERS > WRITERS / 2 {
            return Err((InsertError::Full, self.leave()));
        }
        Ok(seen & WRITERS == 0)
    }

    /// Counts inserts that were refused without entering.
    pub(super) fn count_attempts(&self, attempts: u64) {
        self.0.fetch_add(attempts << ATTEMPT_SHIFT, Ordering::Relaxed);
    }

    /// Leaves after an `enter`. Returns whether this was the last writer in a frozen gate: the freezing thread may be waiting for it.
    #[inline]
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        // ORDERING(gate.leave): Release; pairs with `is_drained` and `enter`. Weaker: the frozen table could miss this
        // writer's links, and the next lone writer its run and counts.
        let seen = self.0.fetch_sub(WRITER, ord("gate.leave", Ordering::Release));
        seen & (FROZEN | WRITERS) == FROZEN | WRITER
    }

    /// Turns away every later `enter`.
    pub(crate) fn freeze(&self) {
        // ORDERING(gate.freeze): Release; pairs with `enter`, see there.
        self.0.fetch_or(FROZEN, ord("gate.freeze", Ordering::Release));
    }

    /// Whether no writer is inside.
    pub(crate) fn is_drained(&self) -> bool {
        // ORDERING(gate.drained): Acquire; pairs with `leave`, see there.
        self.0.load(ord("gate.drained", Ordering::Acquire)) & WRITERS == 0
    }

    /// Whether `freeze` was called.
    pub(crate) fn is_frozen(&self) -> bool {
        // ORDERING(gate.frozen): Acquire; pairs with `freeze`: a thread that sees the table frozen sees what led to it.
        self.0.load(ord("gate.frozen", Ordering::Acquire)) & FROZEN != 0
    }

    /// Writers inside.
    pub(super) fn writers(&self) -> u64 {
        (self.0.load(Ordering::Relaxed) & WRITERS) / WRITER
    }

    /// Inserts attempted through this gate, modulo 2^43.
    pub(crate) fn attempts(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> ATTEMPT_SHIFT
    }
}

/// The lock and the signals of freezing threads.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    /// Held by a freezing thread that is awake, and for a moment by the last writer out.
    awake: Mutex<()>,
    /// Notified when the last writer has left a gate.
    left: Condvar,
    /// Set when the list is drained. The gates are no lasting sign of that: writers that are about to be turned away enter for a moment.
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
        // A thread that has looked at the gate before the writer left sleeps by the time that this one has the lock.
        drop(self.awake.lock().unwrap_or_else(PoisonError::into_inner));
        self.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a late writer that is let in or steps in before it is turned away, and a drain that is never reported.
    #[test]
    fn frozen_gate_turns_writers_away_and_reports_the_last_one_out() {
        let gate = Gate::default();
        assert_eq!(gate.enter(3), Ok(true));
        assert_eq!(gate.enter(1), Ok(false));
        gate.freeze();
        assert_eq!(gate.enter(1), Err((InsertError::Frozen, false)));
        assert!(!gate.leave());
        assert!(!gate.is_drained());
        assert!(gate.leave());
        assert!(gate.is_drained() && gate.is_frozen());
        assert_eq!(gate.enter(1), Err((InsertError::Frozen, false)), "refused before it stepped in");
        assert_eq!(gate.attempts(), 6);
    }

    /// Catches two writers that both think they are alone.
    #[test]
    fn a_writer_is_alone_only_if_it_enters_an_empty_gate() {
        let gate = Gate::default();
        let alone = || gate.enter(1).unwrap();
        assert!(alone() && !alone());
        assert!(!gate.leave());
        assert!(!alone(), "one is still inside");
        assert!(!gate.leave());
        assert!(!gate.leave());
        assert!(alone());
    }

    /// Catches a writer count that runs over into the attempts when a million reservations are held at once.
    #[test]
    fn crowded_gate_refuses_instead_of_overflowing() {
        let gate = Gate::default();
        let mut inside = 0_u64;
        while gate.enter(1).is_ok() {
            inside += 1;
        }
        assert_eq!(inside, (1 << 19));
        assert_eq!(gate.attempts(), inside + 1);
    }
}
