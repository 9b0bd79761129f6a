//! Publication in order: concurrent writes become visible in the order of their sequence numbers (rule 12).
//!
//! Under the write lock each write gets a ticket (consecutive numbers), together with its sequence numbers. Then its thread fills the log and the
//! memtable, without the lock, and [completes](Publication::complete) the ticket. The thread that completes the first unpublished ticket publishes it
//! and all complete tickets that follow it; so no thread has to wait for another after it has done its part. (Pebble's commit pipeline; the ring of
//! slots is that of the Disruptor: Thompson et al. 2011.)
//!
//! Q1 Slot `t % SLOTS` belongs to ticket `t` from the assignment of the ticket to its publication. A ticket is assigned only after the previous
//! ticket of its slot is published ([`tickets_with_slots`](Publication::tickets_with_slots)).
//! Q2 If the mark of a slot is `t + 1`, then `t` is complete, and the slot holds the last sequence number of `t`. Only the thread with the ticket
//! writes the slot, first the sequence number and then the mark.
//! Q3 `published` increases by one for each ticket, by the one compare-and-swap that succeeds, and only after the mark of the ticket was read. So
//! every ticket below `published` is complete.
//! Q4 `visible` is raised to the last sequence number of a ticket after `published` has passed the ticket, and is never lowered. So all numbers up to
//!    `visible` are complete, whichever of several publishing threads raises it first.
//! Q5 No ticket is left behind: a thread writes its mark before it reads `published`, and a publishing thread raises `published` before it reads the
//!    next mark, each with a sequentially consistent fence in between. So at least one of the two threads sees the other's write.
//! Q6 No sleeper is left behind: it increments `sleepers` before it reads `visible` for the last time, and a publishing thread raises `visible`
//!    before it reads `sleepers`, each with such a fence in between. The sleeper's last read happens under the lock that it sleeps on.
//!
//! Shown by the models of `loom-tests`, which compile this file.

use crate::sync::{
    AtomicU64, Condvar, Mutex, MutexGuard, Ordering, PoisonError, SPINS, YIELDS, fence, spin_loop, yield_now,
};
use crate::types::SeqNo;

/// The maximum number of writes between ticket and publication; it exceeds the number of threads that can run at once.
const SLOTS: usize = 256;

/// A value on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Padded<T>(T);

#[derive(Debug, Default)]
struct TicketSlot {
    /// The number of the complete ticket, plus one.
    mark: AtomicU64,
    last_seqno: AtomicU64,
}

/// The words that each publication writes, on one cache line, so that they move between processors together.
#[derive(Debug, Default)]
struct Front {
    /// The number of published tickets.
    published: AtomicU64,
    /// The newest sequence number that readers may see.
    visible: AtomicU64,
    /// The number of threads that sleep until a number is visible.
    sleepers: AtomicU64,
}

/// The order in which writes become visible.
#[derive(Debug)]
pub(crate) struct Publication<const N: usize = SLOTS> {
    slots: Box<[Padded<TicketSlot>; N]>,
    front: Padded<Front>,
    sleep: Mutex<()>,
    wake: Condvar,
}

impl<const N: usize> Publication<N> {
    pub(crate) fn new(visible: SeqNo) -> Self {
        Self {
            slots: Box::new(std::array::from_fn(|_| Padded::default())),
            front: Padded(Front { visible: AtomicU64::new(visible), ..Front::default() }),
            sleep: Mutex::new(()),
            wake: Condvar::new(),
        }
    }

    /// The newest sequence number that readers may see.
    pub(crate) fn visible(&self) -> SeqNo {
        // ORDERING(visible): Acquire; pairs with the release in `publish`. Weaker: a reader could see the number and miss the write's nodes in the
        // memtable, or its view.
        self.front.0.visible.load(Ordering::Acquire)
    }

    /// Raises the visible number while no ticket is unpublished.
    pub(crate) fn raise(&self, seqno: SeqNo) {
        // ORDERING(visible): Release; as in `publish`.
        self.front.0.visible.fetch_max(seqno, Ordering::Release);
    }

    /// Tickets below this number may be assigned (Q1). They are numbered from 0.
    pub(crate) fn tickets_with_slots(&self) -> u64 {
        // ORDERING(published): Acquire; pairs with the compare-and-swap in `publish`. Weaker: the mark of the slot's new owner could come before the
        // read of the old one.
        self.front.0.published.load(Ordering::Acquire) + N as u64
    }

    /// Records that the write with `ticket`, up to `last_seqno`, is in the log and in the memtable, and publishes all tickets that can be published.
    #[inline]
    pub(crate) fn complete(&self, ticket: u64, last_seqno: SeqNo) {
        let slot = self.slot(ticket);
        // ORDERING(last): Relaxed; the mark's store releases it.
        slot.last_seqno.store(last_seqno, Ordering::Relaxed);
        // ORDERING(mark): Release; pairs with Acquire in `publish`. Weaker: the number could be visible without the write.
        slot.mark.store(ticket + 1, Ordering::Release);
        // This load comes after the last fence in `publish` (Q6).
        if self.publish() && self.front.0.sleepers.load(Ordering::Relaxed) > 0 {
            self.wake_all();
        }
    }

    /// Publishes all complete tickets, beginning with the first unpublished one. Returns whether it published any.
    #[inline]
    fn publish(&self) -> bool {
        let Front { published, visible, .. } = &self.front.0;
        let mut has_published = false;
        loop {
            // ORDERING(publish): SeqCst, between this thread's mark and its load of `published`, and between its raising of `published` and `visible`
            // and its loads of the next mark (Q5) and of the sleepers (Q6).
            fence(Ordering::SeqCst);
            let ticket = published.load(Ordering::Relaxed);
            let slot = self.slot(ticket);
            // ORDERING(mark): Acquire; pairs with Release in `complete`.
            if slot.mark.load(Ordering::Acquire) != ticket + 1 {
                return has_published;
            }
            // If another thread publishes the ticket first, this may be the number of a later ticket; then it is not used (Q1).
            let last_seqno = slot.last_seqno.load(Ordering::Relaxed);
            // ORDERING(published): AcqRel; releases everything that this thread and earlier publishing threads have acquired from the marks, and
            // acquires the same from them. Weaker: the release of `visible` would not cover the earlier tickets.
            let passed = published.compare_exchange(ticket, ticket + 1, Ordering::AcqRel, Ordering::Relaxed);
            if passed.is_ok() {
                // ORDERING(visible): Release; pairs with Acquire in `visible`.
                visible.fetch_max(last_seqno, Ordering::Release);
                has_published = true;
            }
        }
    }

    /// Waits until `seqno` is visible; returns false if `is_over` becomes true before.
    #[inline]
    pub(crate) fn wait(&self, seqno: SeqNo, is_over: impl Fn() -> bool) -> bool {
        self.visible() >= seqno || self.wait_long(seqno, is_over)
    }

    #[cold]
    fn wait_long(&self, seqno: SeqNo, is_over: impl Fn() -> bool) -> bool {
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
        self.front.0.sleepers.fetch_add(1, Ordering::Relaxed);
        // ORDERING(sleep): SeqCst, between the increment of `sleepers` and the load of `visible` (Q6).
        fence(Ordering::SeqCst);
        let is_visible = loop {
            if self.visible() >= seqno {
                break true;
            }
            if is_over() {
                break false;
            }
            held = self.wake.wait(held).unwrap_or_else(PoisonError::into_inner);
        };
        self.front.0.sleepers.fetch_sub(1, Ordering::Relaxed);
        is_visible
    }

    /// Makes waiting threads call `is_over` again.
    #[cold]
    pub(crate) fn wake_all(&self) {
        // Once the lock is taken here, each waiting thread either sees the change or already sleeps.
        drop(self.lock());
        self.wake.notify_all();
    }

    fn slot(&self, ticket: u64) -> &TicketSlot {
        // The index is in range, because it is a remainder.
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
        // Catches a number that is visible before a smaller one is complete, and a slot that is assigned twice.
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
