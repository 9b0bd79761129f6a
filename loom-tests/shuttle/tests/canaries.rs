//! Mistakes that schedules must find. If they were too few, or all alike, these would fail.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle_tests::schedules::{Draw, Program, run};

/// What a failed run said.
fn complaint<P: Program>(draw: Draw) -> String {
    let failed =
        catch_unwind(AssertUnwindSafe(|| run::<P>(draw, 1, 10_000))).expect_err("no schedule shows the mistake");
    let text = failed.downcast_ref::<String>().map(String::as_str);
    text.or(failed.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

/// Writers look whether the table is frozen and then write, in two steps; thread 3 freezes.
struct LooksAndWrites {
    frozen: AtomicBool,
    written: AtomicU64,
}

impl Program for LooksAndWrites {
    type Seen = u64;

    fn new() -> Self {
        Self { frozen: AtomicBool::new(false), written: AtomicU64::new(0) }
    }

    fn thread(&self, number: usize) -> u64 {
        if number == 3 {
            self.frozen.store(true, Ordering::Relaxed);
            return self.written.load(Ordering::Relaxed);
        }
        if !self.frozen.load(Ordering::Relaxed) {
            self.written.fetch_add(1, Ordering::Relaxed);
        }
        0
    }

    fn at_rest(&self, seen: Vec<u64>) {
        assert_eq!(seen[3], self.written.load(Ordering::Relaxed), "a write came after the freeze");
    }
}

/// Catches schedules that never part a look from the write that follows it.
#[test]
fn a_freeze_between_look_and_write_is_found() {
    for draw in [Draw::Even, Draw::Priorities] {
        assert!(complaint::<LooksAndWrites>(draw).contains("a write came after the freeze"));
    }
}

/// Thread 0 wakes who waits without taking the lock under which the others look; it may come between look and wait.
struct LostWakeUp {
    ready: AtomicBool,
    waiting: (shuttle::sync::Mutex<()>, shuttle::sync::Condvar),
}

impl Program for LostWakeUp {
    type Seen = ();

    fn new() -> Self {
        Self { ready: AtomicBool::new(false), waiting: Default::default() }
    }

    fn thread(&self, number: usize) {
        if number == 0 {
            self.ready.store(true, Ordering::Relaxed);
            self.waiting.1.notify_all();
            return;
        }
        let mut looking = self.waiting.0.lock().expect("nobody panics");
        while !self.ready.load(Ordering::Relaxed) {
            looking = self.waiting.1.wait(looking).expect("nobody panics");
        }
    }

    fn at_rest(&self, _: Vec<()>) {}
}

/// Catches schedules in which a thread that waits for ever goes unnoticed.
#[test]
fn a_lost_wake_up_is_found() {
    for draw in [Draw::Even, Draw::Priorities] {
        assert!(complaint::<LostWakeUp>(draw).contains("deadlock"));
    }
}
