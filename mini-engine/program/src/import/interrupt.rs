//! ^C during an import: the import ends after a whole line, and prints how to continue.
//!
//! The thread that reads the input checks [`Interrupt::signal`] after each line and ends the import itself, so that the last lines are durable when
//! it reports their number. While that thread waits for input it cannot check; then this module ends the process, and the stored lines are in the
//! operating system's cache.
//!
//! ^C in a terminal also ends the program that writes to the pipe, perhaps in the middle of a line. The signal then comes before the end of the pipe.
//! But if any thread could receive the signal, that thread might run only after the reader has seen the end. So all threads but one block the
//! signals. At the end of the input the reader sends this one thread a request. Before the thread returns from its system call with the request, it
//! handles every earlier signal.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::process;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use indicatif::ProgressBar;
use nix::sys::signal::SigSet;
use nix::sys::signal::Signal::{self, SIGINT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

use crate::failure::Failure;
use crate::output;

/// The time that the reading thread has to react to a signal: too short for a person to notice.
const GRACE: Duration = Duration::from_millis(300);

/// The signals that would end the process.
const SIGNALS: [Signal; 2] = [SIGINT, SIGTERM];

/// The byte that the reader sends as a request, and receives as the answer. A signal sends another byte.
const REQUEST: [u8; 1] = *b"?";

/// The state of signals, shared by the importing thread and the thread that handles signals.
///
/// All orderings are relaxed: the three atomics are independent, and publish no other memory. A request and its answer pass through the
/// system, which orders earlier stores.
pub(crate) struct Interrupt {
    /// The last signal; 0 before the first.
    signal: Arc<AtomicUsize>,
    /// Whether the import has seen the signal, or will check soon, and ends by itself.
    is_ending: AtomicBool,
    /// The number of lines in the database, including those of an earlier import.
    lines: AtomicU64,
    /// The bar to remove before the process ends, if it is drawn.
    progress: Option<ProgressBar>,
    /// The reader's end of the socket for requests.
    socket: UnixStream,
}

impl Interrupt {
    /// Starts to handle the signals that would end the process, during an import whose first `skipped` lines are already stored. Must be
    /// called before the process has other threads.
    pub(crate) fn watch(skipped: u64, progress: ProgressBar) -> Result<Arc<Self>, Failure> {
        let signals: SigSet = SIGNALS.into_iter().collect();
        // Later threads inherit the blocked signals.
        signals.thread_block().map_err(|error| failure(error.into()))?;
        let (socket, taker) = UnixStream::pair().map_err(failure)?;
        let is_drawn = !progress.is_hidden();
        let interrupt = Arc::new(Self {
            signal: Arc::default(),
            is_ending: AtomicBool::new(false),
            lines: skipped.into(),
            progress: is_drawn.then_some(progress),
            socket,
        });
        for signal in SIGNALS {
            flag::register_usize(signal as i32, interrupt.signal.clone(), signal as usize).map_err(failure)?;
            pipe::register(signal as i32, interrupt.socket.try_clone().map_err(failure)?).map_err(failure)?;
        }
        let shared = interrupt.clone();
        let take = move || {
            signals.thread_unblock().expect("they were blocked");
            shared.take_all(taker);
        };
        thread::Builder::new().name("signals".into()).spawn(take).map_err(failure)?;
        Ok(interrupt)
    }

    /// Handles signals and requests, until the sending ends are closed.
    fn take_all(&self, mut socket: UnixStream) {
        let (mut byte, mut is_second) = ([0], false);
        while socket.read_exact(&mut byte).is_ok() {
            if byte == REQUEST {
                socket.write_all(&byte).ok();
            } else {
                self.take(is_second);
                is_second = true;
            }
        }
    }

    fn take(&self, is_second: bool) {
        if !is_second {
            thread::sleep(GRACE);
        }
        // A second signal ends the process at once: the database is sound at any time.
        if is_second || !self.is_ending.load(Ordering::Relaxed) {
            let failure = self.failure(self.signal.load(Ordering::Relaxed));
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
                Err(self.failure(signal))
            }
        }
    }

    /// Like [`check`](Interrupt::check), and certain to see every signal that came before the call.
    pub(crate) fn check_at_end(&self) -> Result<(), Failure> {
        self.is_ending.store(true, Ordering::Relaxed);
        let (mut socket, mut byte) = (&self.socket, REQUEST);
        socket.write_all(&byte).and_then(|()| socket.read_exact(&mut byte)).map_err(failure)?;
        self.check()?;
        // From now on a signal ends the process at once, since the end of the import may take long.
        self.is_ending.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Records that the first `lines` lines are stored.
    pub(crate) fn stored(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    fn failure(&self, signal: usize) -> Failure {
        Failure::Interrupted { signal: signal as i32, lines: self.lines.load(Ordering::Relaxed) }
    }
}

fn failure(source: io::Error) -> Failure {
    Failure::Io { action: "watch for", place: "signals".into(), source }
}

/// Removes the bar, unless that takes long: the import locks the bar while it prints, and may wait for the reader of its output.
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
    fn the_end_of_the_input_waits_for_the_thread_that_takes_signals() {
        // Catches an import that checks for a signal before the other thread must have handled it. A real thread that receives a request has
        // handled all earlier signals; here the test sets the signal itself.
        let (socket, mut taker) = UnixStream::pair().expect("sockets");
        let signal = Arc::new(AtomicUsize::new(0));
        let interrupt = Interrupt {
            signal: signal.clone(),
            is_ending: AtomicBool::new(false),
            lines: 7.into(),
            progress: None,
            socket,
        };
        for came in [0, SIGINT as usize] {
            thread::scope(|scope| {
                let ended = scope.spawn(|| interrupt.check_at_end());
                let mut byte = [0];
                taker.read_exact(&mut byte).expect("a request");
                assert!(byte == REQUEST && interrupt.check().is_ok());
                signal.store(came, Ordering::Relaxed);
                taker.write_all(&byte).expect("an answer");
                let expected = (came > 0).then_some((came as i32, 7));
                let found = ended.join().expect("no panic").err().map(|failure| match failure {
                    Failure::Interrupted { signal, lines } => (signal, lines),
                    other => panic!("{other}"),
                });
                assert_eq!((found, interrupt.is_ending.load(Ordering::Relaxed)), (expected, came > 0));
            });
        }
    }

    #[test]
    fn a_bar_that_is_held_does_not_keep_the_process() {
        // Catches a ^C that waits because the reader of the acknowledgements has stopped reading.
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
