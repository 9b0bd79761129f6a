//! Q1 to Q6: the engine publishes writes in the order of their tickets, beside rotations and syncs.

use crate::check::Program;
use crate::group_commit::GroupCommit;
use crate::publication::Publication;
use crate::sync::{AtomicU64, Mutex, Ordering, yield_now};

/// Places of a log or a memtable: 0 before they are filled.
type Places<const N: usize> = [AtomicU64; N];

fn places<const N: usize>() -> Places<N> {
    std::array::from_fn(|_| AtomicU64::new(0))
}

/// How many places are filled, from the first on.
fn filled<const N: usize>(places: &Places<N>) -> usize {
    places.iter().take_while(|place| place.load(Ordering::Relaxed) != 0).count()
}

/// Writers whose tickets are given out, and a reader. Of three writers, the second may publish its own ticket after the third has
/// published that of the first.
pub(super) struct InOrder<const WRITERS: usize> {
    publication: Publication<4>,
    places: Places<WRITERS>,
}

impl<const WRITERS: usize> Program for InOrder<WRITERS> {
    const THREADS: usize = WRITERS + 1;

    fn new() -> Self {
        Self { publication: Publication::new(0), places: places() }
    }

    fn thread(&self, number: usize) -> String {
        if number < WRITERS {
            self.places[number].store(1, Ordering::Relaxed);
            self.publication.complete(number as u64, number as u64 + 1);
            return String::new();
        }
        let visible = self.publication.visible() as usize;
        assert!(filled(&self.places) >= visible, "{visible} are visible");
        visible.to_string()
    }

    fn at_rest(&self) -> String {
        let all = WRITERS as u64;
        assert_eq!((self.publication.visible(), self.publication.tickets_with_slots()), (all, all + 4));
        String::new()
    }
}

pub(super) const IN_ORDER: &[&str] = &["0", "1", "2"];
pub(super) const IN_ORDER_OF_THREE: &[&str] = &["0", "1", "2", "3"];

/// Two writers that wait for their own writes to be visible.
pub(super) struct Sleepers(Publication<2>);

impl Program for Sleepers {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(Publication::new(0))
    }

    fn thread(&self, number: usize) -> String {
        let own = number as u64 + 1;
        self.0.complete(number as u64, own);
        // Whoever is left behind sleeps for ever, which loom reports.
        assert!(self.0.wait(own, || false));
        own.to_string()
    }

    fn at_rest(&self) -> String {
        assert_eq!(self.0.visible(), 2);
        String::new()
    }
}

/// Tickets that have the same slot, one after the other.
pub(super) struct OneSlot {
    publication: Publication<1>,
    next: Mutex<u64>,
}

impl Program for OneSlot {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self { publication: Publication::new(0), next: Mutex::new(0) }
    }

    fn thread(&self, _: usize) -> String {
        let ticket = {
            let mut next = self.next.lock().expect("no model panicked");
            while *next >= self.publication.tickets_with_slots() {
                yield_now();
            }
            *next += 1;
            *next - 1
        };
        self.publication.complete(ticket, ticket + 1);
        assert!(self.publication.wait(ticket + 1, || false));
        String::new()
    }

    fn at_rest(&self) -> String {
        assert_eq!((self.publication.visible(), self.publication.tickets_with_slots()), (2, 3));
        String::new()
    }
}

/// Gives out a ticket under the write lock: the next number.
fn begin(last: &Mutex<u64>) -> u64 {
    let mut last = last.lock().expect("no model panicked");
    *last += 1;
    *last - 1
}

/// Two writers, and one that freezes what they write to.
pub(super) struct Rotation {
    publication: Publication<2>,
    last: Mutex<u64>,
    places: Places<2>,
}

impl Program for Rotation {
    const THREADS: usize = 3;

    fn new() -> Self {
        Self { publication: Publication::new(0), last: Mutex::new(0), places: places() }
    }

    fn thread(&self, number: usize) -> String {
        if number < 2 {
            let ticket = begin(&self.last);
            self.places[ticket as usize].store(1, Ordering::Relaxed);
            self.publication.complete(ticket, ticket + 1);
            return String::new();
        }
        let last = self.last.lock().expect("no model panicked");
        assert!(self.publication.wait(*last, || false));
        assert!(filled(&self.places) as u64 >= *last, "frozen without a write that was under way");
        last.to_string()
    }

    fn at_rest(&self) -> String {
        assert_eq!(self.publication.visible(), 2);
        // A load follows, which waits as the rotation does.
        self.publication.raise(5);
        assert_eq!(self.publication.visible(), 5);
        String::new()
    }
}

pub(super) const ROTATION: &[&str] = &["0", "1", "2"];

/// Two writers whose frames one of them, or each, makes durable.
pub(super) struct GroupSync {
    publication: Publication<2>,
    last: Mutex<u64>,
    log: Places<2>,
    commit: GroupCommit,
    /// How many frames are on the device.
    durable: AtomicU64,
}

impl Program for GroupSync {
    const THREADS: usize = 2;

    fn new() -> Self {
        let (last, commit, durable) = (Mutex::new(0), GroupCommit::new(0), AtomicU64::new(0));
        Self { publication: Publication::new(0), last, log: places(), commit, durable }
    }

    fn thread(&self, _: usize) -> String {
        let ticket = begin(&self.last);
        self.log[ticket as usize].store(1, Ordering::Relaxed);
        self.publication.complete(ticket, ticket + 1);
        assert!(self.publication.wait(ticket + 1, || false));
        self.commit.complete(ticket + 1);
        // What the device finds in the log when it begins is what it makes durable.
        let device = || {
            self.durable.store(filled(&self.log) as u64, Ordering::Relaxed);
            Ok::<_, ()>(())
        };
        let turn = self.commit.turn_unless_synced(ticket + 1);
        let called = turn.is_some_and(|turn| turn.sync(device).expect("the device does not fail"));
        // In this order: the other thread may sync in between.
        let synced = self.commit.synced();
        let durable = self.durable.load(Ordering::Relaxed);
        assert!(synced > ticket, "acknowledged before it is synced");
        assert!(synced <= durable, "a sync that claims a hole");
        if called { "own" } else { "shared" }.to_owned()
    }

    fn at_rest(&self) -> String {
        assert_eq!(self.commit.synced(), 2);
        String::new()
    }
}

pub(super) const GROUP_COMMIT: &[&str] = &["own | own", "own | shared", "shared | own"];
