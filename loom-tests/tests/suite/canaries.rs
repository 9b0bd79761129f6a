//! Checks that the models find executions that are known to exist. loom 0.7.2 alone skips executions in which one thread loads a word and then
//! changes it by CAS after another thread has loaded it. `check` finds them by every order of spawning; otherwise these tests would fail.

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

/// Increments the word by load and CAS, and repeats if another thread came in between.
fn count(word: &AtomicU32) {
    let mut seen = word.load(Acquire);
    while let Err(now) = word.compare_exchange(seen, seen + 1, AcqRel, Acquire) {
        seen = now;
    }
}

/// `count` threads increment the word; another one reads it twice.
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

/// Catches skipped executions of two threads that increment, and one that reads.
#[test]
fn a_reader_beside_two_counters_sees_every_pair() {
    assert_eq!(outcomes(counters(2)), set(&["00", "01", "02", "11", "12", "22"]));
}

/// Catches a model that is sequentially consistent where the machine is not. Each thread changes its own word by CAS, then reads the other's,
/// like an insert concurrent with a snapshot that consists of two words. Both threads may miss the other's change.
#[test]
fn both_sides_of_a_store_buffer_can_miss_each_other() {
    let program = Program::new(|| [AtomicU32::new(0), AtomicU32::new(0)]).threads(2, |words, number| {
        count(&words[number]);
        words[1 - number].load(Acquire).to_string()
    });
    assert_eq!(outcomes(program), set(&["0 | 0", "0 | 1", "1 | 0", "1 | 1"]));
}

/// Catches a `repaired-loom` that is not repaired: with the reader spawned first, loom 0.7.2 finds one outcome of three. Also catches a newer
/// loom that needs neither the repair nor the spawn orders of `check`.
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

/// Thread 0 writes a message and publishes it by load and CAS of a flag; thread 1 reads the flag, then the message.
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

/// Thread 0 locks a word and unlocks it; thread 1 changes the word if it sees it locked.
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

/// Catches a loom that is more exact than `sync::overwrite` assumes; then `overwrite` could be a store, as in the shipped build. A change by CAS
/// directly follows the value that it reads, the locked word, so it cannot come after the unlocking. Also catches models that miss a lost unlocking.
#[test]
fn a_change_of_a_locked_word_comes_behind_the_unlocking_in_loom_alone_or_by_mistake() {
    assert_eq!(outcomes(lock(true, false)), set(&["locked", "unlocked"]), "in loom alone");
    assert_eq!(outcomes(lock(false, false)), set(&["unlocked"]));
    assert_eq!(outcomes(lock(false, true)), set(&["locked", "unlocked"]), "a mistake");
}
