//! ^C during an import: it ends behind a whole line, and says how to go on.
//!
//! The thread that reads the input looks at [`Interrupt::signal`] before each line and ends the import itself, so that the last lines are
//! durable when it says how many there are. If it waits for input it cannot look; then the process ends here, and what was stored so far
//! is in the hands of the operating system.

use std::io;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::program::failure::Failure;
use crate::program::output;

/// How long the thread that reads has to notice. A person does not feel it.
const GRACE: Duration = Duration::from_millis(300);

/// Whether a signal has come, shared by the thread that imports and the one that takes signals.
///
/// All orderings are relaxed: each of the three is a fact of its own, and says nothing about other memory.
#[derive(Default)]
pub(crate) struct Interrupt {
    signal: AtomicI32,
    /// The import has noticed, and ends by itself.
    is_ending: AtomicBool,
    /// How many lines are in the database.
    lines: AtomicU64,
}

impl Interrupt {
    /// Takes the signals that would end the process.
    pub(crate) fn watch() -> Result<Arc<Self>, Failure> {
        let failure = |source: io::Error| Failure::Io { action: "watch for", place: "signals".into(), source };
        let mut signals = Signals::new([SIGINT, SIGTERM]).map_err(failure)?;
        let interrupt = Arc::new(Self::default());
        let shared = interrupt.clone();
        let take = move || signals.forever().for_each(|signal| shared.take(signal));
        thread::Builder::new().name("signals".into()).spawn(take).map_err(failure)?;
        Ok(interrupt)
    }

    fn take(&self, signal: i32) {
        let is_second = self.signal.swap(signal, Ordering::Relaxed) != 0;
        if !is_second {
            thread::sleep(GRACE);
        }
        // Whoever is asked twice does not finish what it does: the database is sound whenever the process ends.
        if is_second || !self.is_ending.load(Ordering::Relaxed) {
            let failure = self.failure(signal);
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

    /// Notes that the first `lines` lines are in.
    pub(crate) fn stored(&self, lines: u64) {
        self.lines.store(lines, Ordering::Relaxed);
    }

    fn failure(&self, signal: i32) -> Failure {
        Failure::Interrupted { signal, lines: self.lines.load(Ordering::Relaxed) }
    }
}
