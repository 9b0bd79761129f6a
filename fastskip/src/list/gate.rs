//! Admits writers to a shard until the table is frozen.
//!
//! One word for each shard holds {frozen, writers inside, attempts}. A writer enters by adding itself to the word, and the same step returns whether
//! the gate was already closed. Freezing sets the bit `frozen` in every shard and waits until no writer is inside. Entering, leaving and freezing are
//! read-modify-writes of one word, so each writer is either counted before the bit is set or sees the bit. A writer first reads the word, and does
//! not add itself if the bit is set: otherwise writers that keep trying would keep the freezing thread waiting.
//!
//! A writer that enters an empty gate is alone until it leaves: a writer that enters meanwhile sees that another one is inside. So data that only
//! lone writers touch (`run.rs`, half of each counter) needs no further lock. The `enter` of a lone writer acquires the data that the previous lone
//! writer released by `leave`, through every read-modify-write between the two.
//!
//! I7 freeze: an insert that returned success is in the frozen table. The links of the insert happen before the `leave` of its writer (Release),
//! which the freezing thread acquires. A writer that enters later is turned away before it writes.
//!
//! # Freezing
//!
//! A freezing thread holds a lock while it closes the gates and reads them, and releases the lock to sleep. The last writer that leaves a closed gate
//! wakes the freezing thread. It takes the lock first: otherwise it could notify between the other thread's look at the gate and its sleep, and the
//! wake-up would be lost. A writer either finds the gate closed, or has left before that; so no freezing thread sleeps for a writer that has left. No
//! writer takes the lock before its gate is closed. Shown by the models `freeze_waits_..` of `loom-tests`, which deadlock if a wake-up is lost.
//!
//! A freezing thread sleeps on a condition variable that belongs to the list. Parking the thread instead would consume the token of an `unpark` for
//! which the caller waits. It would also need the thread's handle, which may be gone when the thread-locals are destroyed. Without `std` a freezing
//! thread spins until it reads each gate as drained; then no writer takes a lock.
//!
//! A list is frozen from the moment its first gate is closed: a thread that sees this gate closed closes the others too, before it reports the list
//! as frozen. It is drained when no writer is inside any more; only then are its contents final.
//!
//! `begin_freeze` closes the gates and does not wait. A gate is final as soon as its word shows {frozen, no writer}: each writer that entered before
//! the bit was set has left, and a later one leaves without writing. So `is_drained` looks at each gate once, without the lock, and the looks need not
//! be simultaneous. Only read-modify-writes change the word; so a look acquires every earlier `leave`, not only the last one. The result is kept,
//! because a writer that is about to be turned away is inside for a moment. A freezing thread may start to wait at any time after the gates were
//! closed: it reads each gate while it holds the lock, so the argument above holds whichever thread has closed the gate (loom
//! `freeze_waits_where_another_thread_began_it_i7`).

use crate::error::InsertError;
#[cfg(not(feature = "std"))]
use crate::sync::yield_now;
use crate::sync::{AtomicU64, OnceLock, Ordering, ord};
#[cfg(feature = "std")]
use crate::sync::{Condvar, Mutex, PoisonError};

const FROZEN: u64 = 1;
const WRITER: u64 = 1 << 1;
const WRITERS: u64 = ((1 << 20) - 1) << 1;
const ATTEMPT_SHIFT: u32 = 21;

/// One shard's gate.
#[derive(Debug, Default)]
pub(crate) struct Gate(AtomicU64);

impl Gate {
    /// Enters the gate for `attempts` inserts. Returns whether no other writer was inside. Every successful call needs a matching
    /// [`leave`](Self::leave).
    ///
    /// # Errors
    /// [`InsertError::Frozen`]; [`InsertError::Full`] if half a million writers are inside: one more could make their count overflow into the
    /// neighbouring field. The error comes with the result of the `leave` that followed.
    #[inline]
    pub(crate) fn enter(&self, attempts: u64) -> Result<bool, (InsertError, bool)> {
        // ORDERING(gate.look, gate.enter): Acquire; pairs with `freeze`. Weaker: a writer that was turned away could miss the earlier writes of the
        // freezing thread, such as the publication of the next table. `gate.enter` also pairs with `leave`. Weaker: a lone writer could miss the run
        // and the counts of the previous lone writer (loom `lone`).
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

    /// Leaves the gate after an `enter`. Returns whether this was the last writer inside a closed gate: a freezing thread may be waiting for it.
    #[inline]
    #[must_use]
    pub(crate) fn leave(&self) -> bool {
        // ORDERING(gate.leave): Release; pairs with `is_drained` and `enter`. Weaker: the frozen table could miss this writer's links, and the next
        // lone writer could miss its run and counts.
        let seen = self.0.fetch_sub(WRITER, ord("gate.leave", Ordering::Release));
        seen & (FROZEN | WRITERS) == FROZEN | WRITER
    }

    /// Turns away every later `enter`.
    pub(crate) fn freeze(&self) {
        // ORDERING(gate.freeze): Release; pairs with `enter`, see there.
        self.0.fetch_or(FROZEN, ord("gate.freeze", Ordering::Release));
    }

    /// Whether the gate is closed and no writer is inside.
    pub(crate) fn is_drained(&self) -> bool {
        self.look() & (FROZEN | WRITERS) == FROZEN
    }

    /// The number of writers inside, and the number of inserts attempted: if both are the same later, no insert began or ended in between.
    pub(super) fn traffic(&self) -> (u64, u64) {
        let seen = self.look();
        ((seen & WRITERS) / WRITER, seen >> ATTEMPT_SHIFT)
    }

    fn look(&self) -> u64 {
        // ORDERING(gate.drained): Acquire; pairs with `leave`, see there.
        self.0.load(ord("gate.drained", Ordering::Acquire))
    }

    /// Whether `freeze` was called.
    pub(crate) fn is_frozen(&self) -> bool {
        // ORDERING(gate.frozen): Acquire; pairs with `freeze`: a thread that sees the table frozen also sees the freezing thread's earlier writes.
        self.0.load(ord("gate.frozen", Ordering::Acquire)) & FROZEN != 0
    }

    /// The number of writers inside.
    pub(super) fn writers(&self) -> u64 {
        (self.0.load(Ordering::Relaxed) & WRITERS) / WRITER
    }

    /// The number of inserts attempted through this gate, modulo 2^43.
    pub(crate) fn attempts(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> ATTEMPT_SHIFT
    }
}

/// The lock and the wake-up signals of freezing threads.
#[derive(Debug, Default)]
pub(super) struct Freezing {
    /// Held by a freezing thread while it is awake, and for a moment by the last writer that leaves.
    #[cfg(feature = "std")]
    awake: Mutex<()>,
    /// Notified when the last writer has left a closed gate.
    #[cfg(feature = "std")]
    left: Condvar,
    /// Set when the list is drained. The gates do not show this permanently: writers that are about to be turned away are inside for a moment.
    drained: OnceLock<()>,
}

impl Freezing {
    /// Returns when no writer is inside any of the list's gates, which are closed.
    pub(super) fn wait<'a>(&self, gates: impl Iterator<Item = &'a Gate>) {
        #[cfg(feature = "std")]
        let mut awake = self.awake.lock().unwrap_or_else(PoisonError::into_inner);
        for gate in gates {
            while self.drained.get().is_none() && !gate.is_drained() {
                #[cfg(feature = "std")]
                {
                    awake = self.left.wait(awake).unwrap_or_else(PoisonError::into_inner);
                }
                #[cfg(not(feature = "std"))]
                yield_now();
            }
        }
        let _ = self.drained.set(());
    }

    /// Whether all of the list's gates are closed and no writer is inside: the contents of the list are final.
    pub(super) fn is_drained<'a>(&self, mut gates: impl Iterator<Item = &'a Gate>) -> bool {
        self.drained.get().is_some()
            || gates.all(Gate::is_drained) && {
                let _ = self.drained.set(());
                true
            }
    }

    /// Wakes the freezing threads: they may be waiting for the writer that has just left a closed gate.
    #[cold]
    pub(super) fn wake(&self) {
        #[cfg(feature = "std")]
        {
            // A freezing thread that read the gate before the writer left is asleep by the time that the writer gets the lock.
            drop(self.awake.lock().unwrap_or_else(PoisonError::into_inner));
            self.left.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Catches a late writer that is admitted or that writes before it is turned away, and a drain that is never reported.
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

    /// Catches two writers that both count as alone.
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

    /// Catches a writer count that overflows into the attempts when a million reservations are open at once.
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
