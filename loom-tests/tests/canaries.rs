//! The method finds what is known to be there. loom 0.7.2 alone skips executions where one thread loads and then swaps
//! by CAS what another has loaded; if the layout of `check` did not make up for it, these would fail.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};

use loom::sync::atomic::AtomicU32;
use loom_tests::check::{Depth, Program, observe};

fn outcomes<P: Program>() -> BTreeSet<String> {
    let report = observe::<P>(Depth::ALL, |_| ());
    println!("{report}");
    report.outcomes
}

fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| (*outcome).to_owned()).collect()
}

/// Loads, and swaps in one more, until nobody came between.
fn count(word: &AtomicU32) {
    let mut seen = word.load(Acquire);
    while let Err(now) = word.compare_exchange(seen, seen + 1, AcqRel, Acquire) {
        seen = now;
    }
}

/// All threads but the last count; the last one reads twice.
struct Counter<const THREADS: usize>(AtomicU32);

impl<const THREADS: usize> Program for Counter<THREADS> {
    const THREADS: usize = THREADS;

    fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    fn thread(&self, number: usize) -> String {
        if number < THREADS - 1 {
            count(&self.0);
            return String::new();
        }
        let (first, second) = (self.0.load(Acquire), self.0.load(Acquire));
        format!("{first}{second}")
    }

    fn at_rest(&self) -> String {
        assert_eq!(self.0.load(Acquire), THREADS as u32 - 1);
        String::new()
    }
}

/// Catches a reader whose loads are never moved across another thread's load and CAS.
#[test]
fn a_reader_beside_a_load_and_cas_sees_both_values() {
    assert_eq!(outcomes::<Counter<2>>(), set(&["00", "01", "11"]));
}

/// Catches skipped executions among two threads that load and swap, and one that reads.
#[test]
fn a_reader_beside_two_counters_sees_every_pair() {
    assert_eq!(outcomes::<Counter<3>>(), set(&["00", "01", "02", "11", "12", "22"]));
}

/// Each thread swaps its own word by CAS, then reads the other's, as in an insert beside a snapshot made of two words.
struct StoreBuffer([AtomicU32; 2]);

impl Program for StoreBuffer {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self([AtomicU32::new(0), AtomicU32::new(0)])
    }

    fn thread(&self, number: usize) -> String {
        count(&self.0[number]);
        self.0[1 - number].load(Acquire).to_string()
    }

    fn at_rest(&self) -> String {
        String::new()
    }
}

/// Catches a model that is sequentially consistent where the machine is not: both sides may miss each other.
#[test]
fn both_sides_of_a_store_buffer_can_miss_each_other() {
    assert_eq!(outcomes::<StoreBuffer>(), set(&["0 | 0", "0 | 1", "1 | 0", "1 | 1"]));
}

/// Thread 0 writes a message and publishes it by load and CAS; thread 1 looks for the sign, then for the message.
struct Message<const PUBLISHED: bool>([AtomicU32; 2]);

impl<const PUBLISHED: bool> Program for Message<PUBLISHED> {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self([AtomicU32::new(0), AtomicU32::new(0)])
    }

    fn thread(&self, number: usize) -> String {
        let [message, sign] = &self.0;
        let (release, acquire): (Ordering, Ordering) = if PUBLISHED { (Release, Acquire) } else { (Relaxed, Relaxed) };
        if number == 0 {
            message.store(1, Relaxed);
            let seen = sign.load(Relaxed);
            sign.compare_exchange(seen, 1, release, Relaxed).expect("nobody else writes the sign");
            return String::new();
        }
        let sign = sign.load(acquire);
        format!("{sign}{}", message.load(Relaxed))
    }

    fn at_rest(&self) -> String {
        String::new()
    }
}

/// Catches a model in which a weakened ordering changes nothing.
#[test]
fn a_message_can_be_missed_unless_it_is_published() {
    assert_eq!(outcomes::<Message<true>>(), set(&["00", "01", "11"]));
    assert_eq!(outcomes::<Message<false>>(), set(&["00", "01", "10", "11"]));
}

/// Thread 0 locks a word and unlocks it, thread 1 changes the locked word if it sees that.
struct Lock<const UNLOCKS_BY_STORE: bool, const CHANGES_BY_STORE: bool>(AtomicU32);

const FREE: u32 = 0;
const LOCKED: u32 = 1;
const CHANGED: u32 = 2;
const UNLOCKED: u32 = 3;

impl<const UNLOCKS_BY_STORE: bool, const CHANGES_BY_STORE: bool> Program for Lock<UNLOCKS_BY_STORE, CHANGES_BY_STORE> {
    const THREADS: usize = 2;

    fn new() -> Self {
        Self(AtomicU32::new(FREE))
    }

    fn thread(&self, number: usize) -> String {
        let Self(word) = self;
        match number {
            0 => {
                word.compare_exchange(FREE, LOCKED, Acquire, Relaxed).expect("nobody else locks");
                if UNLOCKS_BY_STORE { word.store(UNLOCKED, Release) } else { _ = word.swap(UNLOCKED, Release) }
            }
            _ if word.load(Relaxed) != LOCKED => {}
            _ if CHANGES_BY_STORE => word.store(CHANGED, Relaxed),
            _ => _ = word.compare_exchange(LOCKED, CHANGED, Relaxed, Relaxed),
        }
        String::new()
    }

    fn at_rest(&self) -> String {
        if self.0.load(Acquire) == UNLOCKED { "unlocked" } else { "locked" }.to_owned()
    }
}

/// Catches a loom that knows better than `sync::overwrite` assumes, which could then be a store as in the shipped build: a change by CAS
/// reads what is right before it, the locking, so it cannot come behind the unlocking. And models that would not see an unlocking
/// that is lost.
#[test]
fn a_change_of_a_locked_word_comes_behind_the_unlocking_in_loom_alone_or_by_mistake() {
    assert_eq!(outcomes::<Lock<true, false>>(), set(&["locked", "unlocked"]), "in loom alone");
    assert_eq!(outcomes::<Lock<false, false>>(), set(&["unlocked"]));
    assert_eq!(outcomes::<Lock<false, true>>(), set(&["locked", "unlocked"]), "a mistake");
}
