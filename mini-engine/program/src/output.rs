//! The program's two streams: results on stdout, messages on stderr.
//!
//! A reader such as `head` in `scan | head` may close the pipe early: that is `Failure::ClosedPipe`, which ends the
//! program quietly. Messages to a closed stderr are dropped; `eprintln!` would panic instead.

use std::fmt;
use std::io::{self, BufWriter, StdoutLock, Write};

use crate::failure::Failure;

const BUFFER_BYTES: usize = 1 << 16;

/// Writes one line to stderr.
pub(crate) fn say(line: fmt::Arguments<'_>) {
    writeln!(io::stderr().lock(), "{line}").ok();
}

/// Buffered stdout. Written bytes are certain only after `finish`.
pub(crate) struct Output {
    out: BufWriter<StdoutLock<'static>>,
}

impl Output {
    pub(crate) fn new() -> Self {
        Self { out: BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock()) }
    }

    /// Passes stdout to `write`, and converts its errors.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        write(&mut self.out).map_err(failure)
    }

    /// Sends the buffered bytes now; more may follow.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.out.flush().map_err(failure)
    }

    /// Ends the output. Without this, an error of the last write would go unnoticed.
    pub(crate) fn finish(mut self) -> Result<(), Failure> {
        self.flush()
    }
}

fn failure(source: io::Error) -> Failure {
    if source.kind() == io::ErrorKind::BrokenPipe {
        return Failure::ClosedPipe;
    }
    Failure::Io { action: "write to", place: "stdout".into(), source }
}
