//! Shows a person how far a command is: on stderr, and only when that is a terminal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// How often a bar is drawn again that nobody moves.
pub(crate) const REDRAW: Duration = Duration::from_millis(100);

const OPERATIONS: &str = "{msg:16} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left";
const FILE: &str = "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}, {eta} left{msg}";
const PIPE: &str = "{spinner} {binary_bytes} {binary_bytes_per_sec}{msg}";

/// A bar that counts operations, so many in all.
pub(crate) fn of_operations(operations: u64) -> ProgressBar {
    styled(ProgressBar::new(operations), OPERATIONS)
}

/// A bar that counts bytes, of which there are so many in all, if that is known.
pub(crate) fn of_bytes(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) => styled(ProgressBar::new(bytes), FILE),
        None => styled(ProgressBar::new_spinner(), PIPE),
    }
}

fn styled(bar: ProgressBar, template: &str) -> ProgressBar {
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        // Indicatif's plain bar: a picture is no reason to stop. A test sees that it is never needed.
        Err(_) => bar,
    }
}

/// Runs `work` and moves `bar` meanwhile to where `position` says it is; then takes the bar away.
pub(crate) fn watch<T>(bar: &ProgressBar, position: impl Fn() -> u64 + Sync, work: impl FnOnce() -> T) -> T {
    if bar.is_hidden() { work() } else { follow(bar, position, work) }
}

fn follow<T>(bar: &ProgressBar, position: impl Fn() -> u64 + Sync, work: impl FnOnce() -> T) -> T {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let draw = || {
            // Relaxed: it says nothing about other memory.
            while !has_ended.load(Ordering::Relaxed) {
                bar.set_position(position());
                thread::park_timeout(REDRAW);
            }
        };
        // Without a thread there is no bar, which is no reason to stop.
        let drawing = thread::Builder::new().spawn_scoped(scope, draw).ok();
        let _end = End { has_ended: &has_ended, bar, drawing };
        work()
    })
}

/// Ends the thread that moves the bar, and takes the bar away, also when the work panics: the scope waits for that thread.
struct End<'a, 'scope> {
    has_ended: &'a AtomicBool,
    bar: &'a ProgressBar,
    drawing: Option<ScopedJoinHandle<'scope, ()>>,
}

impl Drop for End<'_, '_> {
    fn drop(&mut self) {
        self.has_ended.store(true, Ordering::Relaxed);
        if let Some(drawing) = &self.drawing {
            drawing.thread().unpark();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_bar_follows_the_work_and_ends_with_it_even_if_it_panics() {
        // Catches a thread that goes on drawing after its command has failed, which would never end.
        let bar = ProgressBar::hidden();
        let (seen, is_seen) = mpsc::channel();
        let look = || {
            seen.send(()).ok();
            7
        };
        // A second look comes after the bar was moved by the first.
        let work = || (0..2).for_each(|_| is_seen.recv_timeout(Duration::from_secs(60)).expect("a look"));
        follow(&bar, look, work);
        assert_eq!(bar.position(), 7);
        assert!(bar.is_finished());
        bar.reset();
        let panics = AssertUnwindSafe(|| follow(&bar, || 7, || panic!("the work")));
        assert!(catch_unwind(panics).is_err());
        assert!(bar.is_finished());
    }

    #[test]
    fn all_templates_can_be_read() {
        // Catches a typing error in a template, which would leave a bar without rate and time.
        for template in [OPERATIONS, FILE, PIPE] {
            assert!(ProgressStyle::with_template(template).is_ok(), "{template}");
        }
    }
}
