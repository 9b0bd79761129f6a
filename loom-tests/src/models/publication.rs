//! Q1 to Q6: the engine publishes writes in the order of their tickets, during rotations and syncs.

use crate::check::Program;
use crate::group_commit::GroupCommit;
use crate::publication::Publication;
use crate::sync::{AtomicU64, Mutex, Ordering, yield_now};

/// Places of a log or a memtable: 0 before they are filled.
pub(super) type Places<const N: usize> = [AtomicU64; N];

fn places<const N: usize>() -> Places<N> {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// The number of filled places, from the first place up to the first gap.
fn filled<const N: usize>(places: &Places<N>) -> usize {
    places.iter().take_while(|place| place.load(Ordering::Relaxed) != 0).count()
}

/// Writers that already have tickets, and a reader. The second of three writers may publish its ticket after the third has published the first's.
pub(super) fn in_order<const WRITERS: usize>(visible: &[&str]) -> Program<(Publication<4>, Places<WRITERS>)> {
    Program::new(|| (Publication::new(0), places::<WRITERS>()))
        .threads(WRITERS, |(publication, places), number| {
            places[number].store(1, Ordering::Relaxed);
            publication.complete(number as u64, number as u64 + 1);
        })
        .thread(|(publication, places)| {
            let visible = publication.visible() as usize;
            assert!(filled(places) >= visible, "{visible} are visible");
            visible.to_string()
        })
        .at_rest(|(publication, _)| {
            let all = WRITERS as u64;
            assert_eq!((publication.visible(), publication.tickets_with_slots()), (all, all + 4));
        })
        .expects(visible)
}

/// Two writers that wait for their own writes to be visible.
pub(super) fn sleepers() -> Program<Publication<2>> {
    Program::new(|| Publication::new(0))
        .threads(2, |publication: &Publication<2>, number| {
            let own = number as u64 + 1;
            publication.complete(number as u64, own);
            // A thread that is never woken sleeps for ever, which loom reports as a deadlock.
            assert!(publication.wait(own, || false));
            own.to_string()
        })
        .at_rest(|publication| assert_eq!(publication.visible(), 2))
        .expects(&["1 | 2"])
}

/// The values that are given out under the write lock.
pub(super) type Next = Mutex<u64>;

/// Tickets that have the same slot, one after the other.
pub(super) fn one_slot() -> Program<(Publication<1>, Next)> {
    Program::new(|| (Publication::new(0), Mutex::new(0)))
        .threads(2, |(publication, next): &(Publication<1>, Next), _| {
            let ticket = {
                let mut next = next.lock().expect("no model panicked");
                while *next >= publication.tickets_with_slots() {
                    yield_now();
                }
                *next += 1;
                *next - 1
            };
            publication.complete(ticket, ticket + 1);
            assert!(publication.wait(ticket + 1, || false));
        })
        .at_rest(|(publication, _)| assert_eq!((publication.visible(), publication.tickets_with_slots()), (2, 3)))
}

/// The data that two writers share.
pub(super) struct Writers {
    publication: Publication<2>,
    next: Next,
    places: Places<2>,
}

impl Writers {
    fn new() -> Self {
        Self { publication: Publication::new(0), next: Mutex::new(0), places: places() }
    }

    /// Takes the next ticket, under the write lock, and writes to its place.
    fn write(&self) -> u64 {
        let ticket = {
            let mut next = self.next.lock().expect("no model panicked");
            *next += 1;
            *next - 1
        };
        self.places[ticket as usize].store(1, Ordering::Relaxed);
        self.publication.complete(ticket, ticket + 1);
        ticket
    }
}

/// Two writers, and a thread that freezes the log that they write to.
pub(super) fn rotation() -> Program<Writers> {
    Program::new(Writers::new)
        .threads(2, |writers, _| _ = writers.write())
        .thread(|writers| {
            let last = writers.next.lock().expect("no model panicked");
            assert!(writers.publication.wait(*last, || false));
            assert!(filled(&writers.places) as u64 >= *last, "frozen without a write that was under way");
            last.to_string()
        })
        .at_rest(|writers| {
            assert_eq!(writers.publication.visible(), 2);
            // A bulk load follows, which waits as the rotation does.
            writers.publication.raise(5);
            assert_eq!(writers.publication.visible(), 5);
        })
        .expects(&["0", "1", "2"])
}

/// Two writers; one or both make the frames durable. Returns the number of durable frames.
pub(super) fn group_sync() -> Program<(Writers, GroupCommit, AtomicU64)> {
    Program::new(|| (Writers::new(), GroupCommit::new(0), AtomicU64::new(0)))
        .threads(2, |(writers, commit, durable), _| {
            let ticket = writers.write();
            assert!(writers.publication.wait(ticket + 1, || false));
            commit.complete(ticket + 1);
            // The device makes the frames durable that are in the log when the sync begins.
            let device = || {
                durable.store(filled(&writers.places) as u64, Ordering::Relaxed);
                Ok::<_, ()>(())
            };
            let called = commit.turn().sync(device).expect("the device does not fail");
            // Read in this order: the other thread may sync in between.
            let synced = commit.synced();
            assert!(synced > ticket, "acknowledged before it is synced");
            assert!(synced <= durable.load(Ordering::Relaxed), "a sync that claims a hole");
            if called { "own" } else { "shared" }
        })
        .at_rest(|(_, commit, _)| assert_eq!(commit.synced(), 2))
        .expects(&["own | own", "own | shared", "shared | own"])
}
