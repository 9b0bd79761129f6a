//! Shows the progress of a command: on stderr, and only when that is a terminal.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// The interval at which an unmoved bar is redrawn.
pub(crate) const REDRAW: Duration = Duration::from_millis(100);

/// The template of a bar, for terminals with [`COLUMNS`] columns and for narrower ones.
struct Template {
    wide: &'static str,
    /// Fits into half as many columns, in which the wide form would wrap.
    narrow: &'static str,
}

/// The usual width of a terminal.
const COLUMNS: u16 = 80;

const OPERATIONS: Template = Template {
    wide: "{msg:16} {wide_bar} {human_pos}/{human_len} {per_sec}, {eta} left",
    narrow: "{msg:16} {wide_bar} {percent}%, {eta} left",
};
const FILE: Template = Template {
    wide: "{wide_bar} {binary_bytes}/{binary_total_bytes} {binary_bytes_per_sec}, {eta} left{msg}",
    narrow: "{wide_bar} {percent}%, {eta} left",
};
const PIPE: Template =
    Template { wide: "{spinner} {binary_bytes} {binary_bytes_per_sec}{msg}", narrow: "{spinner} {binary_bytes}{msg}" };

/// A bar that counts up to `operations`.
pub(crate) fn of_operations(operations: u64) -> ProgressBar {
    styled(ProgressBar::new(operations), &OPERATIONS, columns())
}

/// A bar that counts bytes, up to `bytes` if the number is known.
pub(crate) fn of_bytes(bytes: Option<u64>) -> ProgressBar {
    match bytes {
        Some(bytes) => styled(ProgressBar::new(bytes), &FILE, columns()),
        None => styled(ProgressBar::new_spinner(), &PIPE, columns()),
    }
}

/// The width of the terminal, if known.
fn columns() -> u16 {
    let known = rustix::termios::tcgetwinsize(io::stderr()).ok().map(|size| size.ws_col);
    known.filter(|columns| *columns > 0).unwrap_or(COLUMNS)
}

fn styled(bar: ProgressBar, template: &Template, columns: u16) -> ProgressBar {
    match ProgressStyle::with_template(if columns < COLUMNS { template.narrow } else { template.wide }) {
        Ok(style) => bar.with_style(style),
        // A faulty template falls back to indicatif's plain bar and does not stop the program. A test checks that this never happens.
        Err(_) => bar,
    }
}

/// Runs `work`, meanwhile moves `bar` to `position`, and finally removes the bar.
pub(crate) fn watch<T>(bar: &ProgressBar, position: impl Fn() -> u64 + Sync, work: impl FnOnce() -> T) -> T {
    if bar.is_hidden() { work() } else { follow(bar, position, work) }
}

fn follow<T>(bar: &ProgressBar, position: impl Fn() -> u64 + Sync, work: impl FnOnce() -> T) -> T {
    let has_ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let draw = || {
            // Relaxed: the flag publishes no other memory.
            while !has_ended.load(Ordering::Relaxed) {
                bar.set_position(position());
                thread::park_timeout(REDRAW);
            }
        };
        // If the thread cannot start, the command runs without a bar.
        let drawing = thread::Builder::new().spawn_scoped(scope, draw).ok();
        let _end = End { has_ended: &has_ended, bar, drawing };
        work()
    })
}

/// When dropped, ends the thread that moves the bar, and removes the bar. That must happen even if the work panics, because the scope waits for that
/// thread.
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
    use std::sync::atomic::AtomicUsize;
    use std::sync::{Arc, mpsc};

    use indicatif::{ProgressDrawTarget, TermLike};

    use super::*;

    #[test]
    fn the_bar_follows_the_work_and_ends_with_it_even_if_it_panics() {
        // Catches a thread that never ends, but continues to draw after its command has failed.
        let bar = ProgressBar::hidden();
        let (seen, is_seen) = mpsc::channel();
        let look = || {
            seen.send(()).ok();
            7
        };
        // The second call of `position` comes after the bar was moved to the result of the first.
        let work = || (0..2).for_each(|_| is_seen.recv_timeout(Duration::from_secs(60)).expect("a look"));
        follow(&bar, look, work);
        assert_eq!(bar.position(), 7);
        assert!(bar.is_finished());
        bar.reset();
        let panics = AssertUnwindSafe(|| follow(&bar, || 7, || panic!("the work")));
        assert!(catch_unwind(panics).is_err());
        assert!(bar.is_finished());
    }

    /// A terminal that records its longest line.
    #[derive(Clone, Debug, Default)]
    struct Paper {
        columns: u16,
        longest: Arc<AtomicUsize>,
    }

    impl TermLike for Paper {
        fn width(&self) -> u16 {
            self.columns
        }
        fn write_line(&self, line: &str) -> io::Result<()> {
            self.write_str(line)
        }
        fn write_str(&self, line: &str) -> io::Result<()> {
            self.longest.fetch_max(line.trim_end().chars().count(), Ordering::Relaxed);
            Ok(())
        }
        fn move_cursor_up(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> io::Result<()> {
            Ok(())
        }
        fn clear_line(&self) -> io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn every_bar_fits_into_its_terminal() {
        // Catches a line that is wrapped, and a typing error in a template, which would leave a bar without rate and time.
        let all = 10_000_000_000;
        let messages = [(OPERATIONS, "readwhilewriting"), (FILE, ", 10000000000 lines"), (PIPE, ", 10000000000 lines")];
        // The bar does not move here, so it shows "0.0000/s" and "0s left". The longest likely texts are longer by these numbers of characters.
        let (of_time, of_rate) = (1, 12);
        for (columns, left) in [(40, of_time), (79, of_time), (80, of_time + of_rate)] {
            for (template, message) in &messages {
                assert!(ProgressStyle::with_template(template.narrow).is_ok(), "{}", template.narrow);
                assert!(ProgressStyle::with_template(template.wide).is_ok(), "{}", template.wide);
                let paper = Paper { columns: columns - left, ..Paper::default() };
                let target = ProgressDrawTarget::term_like(Box::new(paper.clone()));
                let bar =
                    ProgressBar::with_draw_target(Some(all), target).with_position(all - 1).with_message(*message);
                styled(bar, template, columns).force_draw();
                let longest = paper.longest.load(Ordering::Relaxed);
                assert!(longest > 16 && longest <= paper.columns.into(), "{}: {longest} of {columns}", template.wide);
            }
        }
    }
}
