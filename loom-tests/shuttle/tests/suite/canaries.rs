//! Planted mistakes that the schedules must find. These tests fail if there are too few schedules, or if all schedules are alike.

use std::panic::{AssertUnwindSafe, catch_unwind};

use shuttle::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle_tests::schedules::{Draw, Program};

/// The message of a failed run of a program.
fn complaint<T: Send + Sync + 'static, S: Send + 'static>(program: Program<T, S>, draw: Draw) -> String {
    let failed = catch_unwind(AssertUnwindSafe(|| program.run(draw, 1, 10_000)));
    let failed = failed.expect_err("no schedule shows the mistake");
    let text = failed.downcast_ref::<String>().map(String::as_str);
    text.or(failed.downcast_ref::<&str>().copied()).unwrap_or_default().to_owned()
}

/// Catches schedules that never switch between a load and the write that follows it. Writers check whether the table is frozen and then write, in
/// two steps; thread 3 freezes.
#[test]
fn a_freeze_between_look_and_write_is_found() {
    for draw in [Draw::Even, Draw::Priorities] {
        let looks_and_writes = Program {
            new: || (AtomicBool::new(false), AtomicU64::new(0)),
            thread: |(frozen, written), number| {
                if number == 3 {
                    frozen.store(true, Ordering::Relaxed);
                    return written.load(Ordering::Relaxed);
                }
                if !frozen.load(Ordering::Relaxed) {
                    written.fetch_add(1, Ordering::Relaxed);
                }
                0
            },
            at_rest: |(_, written), seen| {
                assert_eq!(seen[3], written.load(Ordering::Relaxed), "a write came after the freeze");
            },
        };
        assert!(complaint(looks_and_writes, draw).contains("a write came after the freeze"));
    }
}

/// Catches schedules in which an endless wait is not noticed. Thread 0 wakes waiting threads without taking the lock under which they check their
/// condition, so it may come between a check and the wait.
#[test]
fn a_lost_wake_up_is_found() {
    for draw in [Draw::Even, Draw::Priorities] {
        let lost_wake_up = Program {
            new: || (AtomicBool::new(false), Mutex::new(()), Condvar::new()),
            thread: |(ready, lock, waiting), number| {
                if number == 0 {
                    ready.store(true, Ordering::Relaxed);
                    waiting.notify_all();
                    return;
                }
                let mut looking = lock.lock().expect("nobody panics");
                while !ready.load(Ordering::Relaxed) {
                    looking = waiting.wait(looking).expect("nobody panics");
                }
            },
            at_rest: |_, _| {},
        };
        assert!(complaint(lost_wake_up, draw).contains("deadlock"));
    }
}
