//! Publication in order: what several threads write at once becomes visible in the order of their sequence numbers (rule 12).
//!
//! Under the write lock a write gets a ticket, one after the other, together with its sequence numbers. Then its thread fills the log
//! and the memtable, without the lock, and [completes](Publication::complete) the ticket. Whoever completes the first ticket that is
//! not yet published publishes it, and all behind it that are complete; so nobody has to wait for a thread that has done its part.
//! (Pebble's commit pipeline; the ring of slots is that of the Disruptor: Thompson et al. 2011.)
//!
//! Q1 Slot `t % SLOTS` belongs to ticket `t` from when it is given out until it is published. A ticket is only given out if the one
//!    that had the slot before is published ([`tickets_with_slots`](Publication::tickets_with_slots)).
//! Q2 A slot whose mark is `t + 1` says that `t` is complete and has the last number of `t`: written before the mark, by the one
//!    thread that has the ticket.
//! Q3 `published` goes up by one with each ticket, by the one compare-and-swap that succeeds. It does so only after the mark of the
//!    ticket was seen. So every ticket below it is complete.
//! Q4 `visible` is raised to the last number of a ticket after `published` has passed it, never lowered. So all numbers up to
//!    `visible` are complete, whichever of several publishing threads raises it first.
//! Q5 No ticket is left behind: a thread marks its slot before it looks whether its ticket is the next, and a publishing thread raises
//!    `published` before it looks at the next slot, both sequentially consistent. So at least one of the two sees the other.
//! Q6 No sleeper is left behind: it counts itself before it looks at `visible` for the last time, and a publishing thread raises
//!    `visible` before it looks at the count, all sequentially consistent. The last look is under the lock that it sleeps on.

use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Condvar, Mutex, MutexGuard, PoisonError, spin_loop, yield_now};
use crate::types::SeqNo;

/// How many writes may be between their tickets and their publication: more than threads that can run at once.
const SLOTS: usize = 256;
/// How often a thread looks again before it sleeps. What it waits for takes another thread about a microsecond, unless that was
/// interrupted.
const SPINS: usize = 100;
/// How often it then gives its processor away before it sleeps: to be woken takes longer than most interruptions.
const YIELDS: usize = 20;

/// On a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded<T>(T);

#[derive(Debug, Default)]
struct Slot {
    /// The ticket that is complete, plus one.
    mark: AtomicU64,
    last_seqno: AtomicU64,
}

/// What each publication writes: together, so that they move between processors together.
#[derive(Debug, Default)]
struct Front {
    /// How many tickets are published.
    published: AtomicU64,
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    /// How many threads sleep until a number is visible.
    sleepers: AtomicUsize,
}

/// The order in which writes become visible.
#[derive(Debug)]
pub(crate) struct Publication<const N: usize = SLOTS> {
    slots: Box<[Padded<Slot>]>,
    front: Padded<Front>,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl<const N: usize> Publication<N> {
    pub(crate) fn new(visible: SeqNo) -> Self {
        Self {
            slots: (0..N).map(|_| Padded::default()).collect(),
            front: Padded(Front { visible: AtomicU64::new(visible), ..Front::default() }),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// The newest sequence number that readers may see.
    pub(crate) fn visible(&self) -> SeqNo {
        // ORDERING(visible): Acquire; pairs with the read-modify-write in `publish`. Weaker: a reader could see the number and miss
        // the memtable's nodes, or the view, that the write went to.
        self.front.0.visible.load(Ordering::Acquire)
    }

    /// Raises the visible number, while no ticket is out.
    pub(crate) fn raise(&self, seqno: SeqNo) {
        self.front.0.visible.fetch_max(seqno, Ordering::SeqCst);
    }

    /// Below which number tickets may be given out (Q1). They are numbered from 0.
    pub(crate) fn tickets_with_slots(&self) -> u64 {
        // ORDERING(published): Acquire; pairs with the compare-and-swap in `publish`. Weaker: the new owner's mark could come before
        // the look at the old one.
        self.front.0.published.load(Ordering::Acquire) + N as u64
    }

    /// Says that the write with `ticket` is in the log and in the memtable up to `last_seqno`, and publishes what can be published.
    pub(crate) fn complete(&self, ticket: u64, last_seqno: SeqNo) {
        let slot = self.slot(ticket);
        // ORDERING(last): Relaxed; the mark's store releases it.
        slot.last_seqno.store(last_seqno, Ordering::Relaxed);
        // ORDERING(mark): SeqCst (Q5); its release pairs with the load in `publish`. Weaker: a ticket could stay unpublished.
        slot.mark.store(ticket + 1, Ordering::SeqCst);
        if self.publish() && self.front.0.sleepers.load(Ordering::SeqCst) > 0 {
            self.wake_all();
        }
    }

    /// Publishes all complete tickets from the first on; whether there was one.
    fn publish(&self) -> bool {
        let mut has_published = false;
        loop {
            let ticket = self.front.0.published.load(Ordering::SeqCst);
            let slot = self.slot(ticket);
            // ORDERING(mark): SeqCst (Q5); its acquire pairs with the store in `complete`.
            if slot.mark.load(Ordering::SeqCst) != ticket + 1 {
                return has_published;
            }
            // If another thread publishes the ticket first this may be a later one's number: it is not used then (Q1).
            let last_seqno = slot.last_seqno.load(Ordering::Relaxed);
            // ORDERING(published): SeqCst (Q5); its release pairs with the load in `tickets_with_slots`.
            let passed =
                self.front.0.published.compare_exchange(ticket, ticket + 1, Ordering::SeqCst, Ordering::SeqCst);
            if passed.is_ok() {
                // ORDERING(visible): SeqCst (Q6). Its release is that of this thread, which has acquired the mark of this ticket and,
                // by `published`, those of all before.
                self.front.0.visible.fetch_max(last_seqno, Ordering::SeqCst);
                has_published = true;
            }
        }
    }

    /// Waits until `seqno` is visible; false if `is_over` says before that it will never be.
    pub(crate) fn wait(&self, seqno: SeqNo, is_over: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            if self.visible() >= seqno {
                return true;
            }
            spin_loop();
        }
        for _ in 0..YIELDS {
            yield_now();
            if self.visible() >= seqno {
                return true;
            }
        }
        self.sleep(seqno, is_over)
    }

    #[cold]
    fn sleep(&self, seqno: SeqNo, is_over: impl Fn() -> bool) -> bool {
        let mut held = self.lock();
        // ORDERING(sleepers): SeqCst (Q6).
        self.front.0.sleepers.fetch_add(1, Ordering::SeqCst);
        let is_visible = loop {
            if self.front.0.visible.load(Ordering::SeqCst) >= seqno {
                break true;
            }
            if is_over() {
                break false;
            }
            held = self.wake.wait(held).unwrap_or_else(PoisonError::into_inner);
        };
        self.front.0.sleepers.fetch_sub(1, Ordering::SeqCst);
        is_visible
    }

    /// Lets those who wait look again whether it is over.
    pub(crate) fn wake_all(&self) {
        // Whoever has looked in vain sleeps once this has the lock.
        drop(self.lock());
        self.wake.notify_all();
    }

    fn slot(&self, ticket: u64) -> &Slot {
        // In range: it is a remainder.
        &self.slots[(ticket % N as u64) as usize].0
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.sleep.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_visible_in_order_whatever_order_they_are_completed_in() {
        // Catches a number that is visible before one that is smaller is complete, and a slot that is given out twice.
        let publication = Publication::<4>::new(100);
        let done = |ticket, last| {
            publication.complete(ticket, last);
            publication.visible()
        };
        assert_eq!((done(1, 112), done(2, 113), done(0, 110)), (100, 100, 113));
        assert_eq!(publication.tickets_with_slots(), 3 + 4);
        assert_eq!((done(4, 115), done(3, 114), done(5, 120)), (113, 115, 120));
        assert!(publication.wait(120, || false));
        assert!(!publication.wait(121, || true));
    }

    #[test]
    fn threads_that_complete_tickets_of_theirs_all_see_them_published() {
        // Catches a ticket or a sleeper that is left behind, with fewer slots than tickets.
        let publication = Publication::<8>::new(0);
        let next = Mutex::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        let mut given = next.lock().unwrap();
                        let ticket = *given;
                        assert!(ticket < publication.tickets_with_slots(), "at most one for each thread");
                        *given += 1;
                        drop(given);
                        publication.complete(ticket, ticket + 1);
                        assert!(publication.wait(ticket + 1, || false));
                    }
                });
            }
        });
        assert_eq!(publication.visible(), 8000);
    }
}
