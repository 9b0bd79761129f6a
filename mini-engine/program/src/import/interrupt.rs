//! ^C during an import: it ends after a whole line, and says how to continue.
//!
//! The thread that reads the input checks [`Interrupt::signal`] after each line and ends the import itself, so that the last lines are durable when
//! it reports their number. While it waits for input it cannot check; then the process ends here, and the operating system has the lines that were
//! stored so far.
//!
//! ^C in a terminal also ends the program that writes to the pipe, perhaps in the middle of a line. So the signal handler itself sets `signal`: it
//! runs before the reading thread sees the end of the pipe. Another thread could be too late to prevent half a line.

use std::io;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;

use crate::failure::Failure;
use crate::output;

/// The time that the reading thread has to notice. It is too short to disturb a person.
const GRACE: Duration = Duration::from_millis(300);

/// The signals that would end the process.
const SIGNALS: [i32; 2] = [SIGINT, SIGTERM];

/// Whether a signal has come, shared by the thread that imports and the one that takes signals.
///
/// All orderings are relaxed: each of the three is independent, and says nothing about other memory.
pub(crate) struct Interrupt {
    /// The last signal; 0 before the first.
    signal: Arc<AtomicUsize>,
    /// Whether the import has noticed, and ends by itself.
    is_ending: AtomicBool,
    /// The number of lines in the database, including those of an earlier import.
    lines: AtomicU64,
    /// The bar to remove before the process ends, if it is drawn.
    progress: Option<ProgressBar>,
}

impl Interrupt {
    /// Takes the signals that would end the process, during an import whose first `skipped` lines are already stored.
    pub(crate) fn watch(skipped: u64, progress: ProgressBar) -> Result<Arc<Self>, Failure> {
        let failure = |source: io::Error| Failure::Io { action: "watch for", place: "signals".into(), source };
        let (signal, is_ending) = (Arc::default(), AtomicBool::new(false));
        let drawn = (!progress.is_hidden()).then_some(progress);
        let interrupt = Arc::new(Self { signal, is_ending, lines: skipped.into(), progress: drawn });
        for signal in SIGNALS {
            flag::register_usize(signal, interrupt.signal.clone(), signal as usize).map_err(failure)?;
        }
        let mut signals = Signals::new(SIGNALS).map_err(failure)?;
        let shared = interrupt.clone();
        let take = move || signals.forever().zip(0..).for_each(|(signal, before)| shared.take(signal, before > 0));
        thread::Builder::new().name("signals".into()).spawn(take).map_err(failure)?;
        Ok(interrupt)
    }

    fn take(&self, signal: i32, is_second: bool) {
        if !is_second {
            thread::sleep(GRACE);
        }
        // A second signal ends the process at once: the database is sound at any time.
        if is_second || !self.is_ending.load(Ordering::Relaxed) {
            let failure = self.failure(signal);
            if let Some(progress) = self.progress.as_ref().filter(|_| !is_second) {
                clear(progress);
            }
            output::say(format_args!("mini-engine: {failure}"));
            process::exit(failure.exit_code().into());
        }
    }

    /// The failure that ends the import, once a signal has come.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match self.signal.load(Ordering::Relaxed) {
            0 => Ok(()),
            signal => {
                self.is_ending.store(true, Ordering::Relaxed);
                Err(self.failure(signal as i32))
            }
        }
    }

    /// Records that the first `lines` lines are stored.
    pub(crate) fn stored(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    fn failure(&self, signal: i32) -> Failure {
        Failure::Interrupted { signal, lines: self.lines.load(Ordering::Relaxed) }
    }
}

/// Removes the bar, unless that takes long: the import holds it while it prints, and the reader of its output may have stopped.
fn clear(progress: &ProgressBar) {
    let (cleared, is_cleared) = mpsc::channel();
    let progress = progress.clone();
    let clear = move || {
        progress.finish_and_clear();
        cleared.send(()).ok();
    };
    if thread::Builder::new().spawn(clear).is_ok() {
        is_cleared.recv_timeout(GRACE).ok();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_that_is_held_does_not_keep_the_process() {
        // Catches a ^C that waits for a reader of the acknowledgements that has stopped reading.
        let bar = ProgressBar::hidden();
        let ((held, is_held), (release, is_released)) = (mpsc::channel(), mpsc::channel());
        thread::scope(|scope| {
            let import = bar.clone();
            scope.spawn(move || {
                import.suspend(|| {
                    held.send(()).expect("a test that waits");
                    is_released.recv().ok();
                });
            });
            is_held.recv().expect("a thread that holds the bar");
            clear(&bar);
            assert!(release.send(()).is_ok(), "it was held all the time");
        });
        clear(&bar);
        assert!(bar.is_finished());
    }
}
