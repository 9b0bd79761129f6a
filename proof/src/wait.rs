//! A wait for other threads that fails after a while: a test whose wait never ends is named instead of hanging.

use std::thread;
use std::time::{Duration, Instant};

/// The time after which a wait has failed.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits as long as `is_so` is true.
///
/// # Panics
/// After [`PATIENCE`].
#[track_caller]
pub fn wait_while(mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while is_so() {
        assert!(begun.elapsed() < PATIENCE, "a wait that does not end");
        thread::yield_now();
    }
}
