//! Executions that are known to exist must be found. loom 0.7.2 alone skips executions where one thread loads a value and then swaps by CAS what
//! another thread has loaded. The layout of `check` makes up for that; without it, these tests would fail.

use std::collections::BTreeSet;
use std::sync::atomic::Ordering::{self, AcqRel, Acquire, Relaxed, Release};
use std::sync::{Arc, Mutex};

use loom::sync::atomic::AtomicU32;
use loom_tests::check::{Depth, Program};

fn outcomes<T: 'static>(program: Program<T>) -> BTreeSet<String> {
    let report = program.observe(Depth::ALL, |_| ());
    println!("{report}");
    report.outcomes
}

fn set(outcomes: &[&str]) -> BTreeSet<String> {
    outcomes.iter().map(|outcome| (*outcome).to_owned()).collect()
}

/// Loads, and swaps in one more, until no other thread comes between.
fn count(word: &AtomicU32) {
    let mut seen = word.load(Acquire);
    while let Err(now) = word.compare_exchange(seen, seen + 1, AcqRel, Acquire) {
        seen = now;
    }
}

/// This many threads count; another one reads twice.
fn counters(count: u32) -> Program<AtomicU32> {
    Program::new(|| AtomicU32::new(0))
        .threads(count as usize, |word, _| self::count(word))
        .thread(|word: &AtomicU32| {
            let (first, second) = (word.load(Acquire), word.load(Acquire));
            format!("{first}{second}")
        })
        .at_rest(move |word| assert_eq!(word.load(Acquire), count))
}

/// Catches a reader whose loads are never moved across another thread's load and CAS.
#[test]
fn a_reader_beside_a_load_and_cas_sees_both_values() {
    assert_eq!(outcomes(counters(1)), set(&["00", "01", "11"]));
}

/// Catches skipped executions among two threads that load and swap, and one that reads.
#[test]
fn a_reader_beside_two_counters_sees_every_pair() {
    assert_eq!(outcomes(counters(2)), set(&["00", "01", "02", "11", "12", "22"]));
}

/// Catches a model that is sequentially consistent where the machine is not. Each thread swaps its own word by CAS, then reads the other's, as an
/// insert does beside a snapshot made of two words; both may miss each other.
#[test]
fn both_sides_of_a_store_buffer_can_miss_each_other() {
    let program = Program::new(|| [AtomicU32::new(0), AtomicU32::new(0)]).threads(2, |words, number| {
        count(&words[number]);
        words[1 - number].load(Acquire).to_string()
    });
    assert_eq!(outcomes(program), set(&["0 | 0", "0 | 1", "1 | 0", "1 | 1"]));
}

/// Catches a `repaired-loom` that is not repaired: with the reader spawned first, loom 0.7.2 finds one outcome of three. And a loom that does
/// not need the repair any more, nor the orders of `check`.
#[test]
fn a_reader_that_is_spawned_first_is_hidden_by_loom_alone() {
    let found = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = Arc::clone(&found);
    loom::model(move || {
        let word = Arc::new(AtomicU32::new(0));
        let threads: [fn(&AtomicU32) -> String; 2] = [
            |word| format!("{}{}", word.load(Acquire), word.load(Acquire)),
            |word| {
                count(word);
                String::new()
            },
        ];
        let spawn = |body: fn(&AtomicU32) -> String| {
            let word = Arc::clone(&word);
            loom::thread::spawn(move || body(&word))
        };
        let threads = threads.map(spawn);
        seen.lock().unwrap().insert(threads.map(|thread| thread.join().unwrap()).concat());
    });
    let expected = if cfg!(repaired_loom) { set(&["00", "01", "11"]) } else { set(&["00"]) };
    assert_eq!(*found.lock().unwrap(), expected);
}

/// Thread 0 writes a message and publishes it by load and CAS; thread 1 looks for the sign, then for the message.
fn message(release: Ordering, acquire: Ordering) -> Program<[AtomicU32; 2]> {
    Program::new(|| [AtomicU32::new(0), AtomicU32::new(0)])
        .thread(move |[message, sign]| {
            message.store(1, Relaxed);
            let seen = sign.load(Relaxed);
            sign.compare_exchange(seen, 1, release, Relaxed).expect("nobody else writes the sign");
        })
        .thread(move |[message, sign]| {
            let sign = sign.load(acquire);
            format!("{sign}{}", message.load(Relaxed))
        })
}

/// Catches a model in which a weakened ordering changes nothing.
#[test]
fn a_message_can_be_missed_unless_it_is_published() {
    assert_eq!(outcomes(message(Release, Acquire)), set(&["00", "01", "11"]));
    assert_eq!(outcomes(message(Relaxed, Relaxed)), set(&["00", "01", "10", "11"]));
}

/// Thread 0 locks a word and unlocks it, thread 1 changes the locked word if it sees that.
fn lock(unlocks_by_store: bool, changes_by_store: bool) -> Program<AtomicU32> {
    const FREE: u32 = 0;
    const LOCKED: u32 = 1;
    const CHANGED: u32 = 2;
    const UNLOCKED: u32 = 3;
    Program::new(|| AtomicU32::new(FREE))
        .thread(move |word: &AtomicU32| {
            word.compare_exchange(FREE, LOCKED, Acquire, Relaxed).expect("nobody else locks");
            if unlocks_by_store { word.store(UNLOCKED, Release) } else { _ = word.swap(UNLOCKED, Release) }
        })
        .thread(move |word| match word.load(Relaxed) {
            LOCKED if changes_by_store => word.store(CHANGED, Relaxed),
            LOCKED => _ = word.compare_exchange(LOCKED, CHANGED, Relaxed, Relaxed),
            _ => {}
        })
        .at_rest(|word| if word.load(Acquire) == UNLOCKED { "unlocked" } else { "locked" })
}

/// Catches a loom that is more exact than `sync::overwrite` assumes; that could then be a store, as in the shipped build. A change by CAS reads the
/// value right before it, the locking, so it cannot come after the unlocking. Also catches models that would not notice a lost unlocking.
#[test]
fn a_change_of_a_locked_word_comes_behind_the_unlocking_in_loom_alone_or_by_mistake() {
    assert_eq!(outcomes(lock(true, false)), set(&["locked", "unlocked"]), "in loom alone");
    assert_eq!(outcomes(lock(false, false)), set(&["unlocked"]));
    assert_eq!(outcomes(lock(false, true)), set(&["locked", "unlocked"]), "a mistake");
}
