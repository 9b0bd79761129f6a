//! The engine's traces, shown on stderr.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;

/// Sets the trace level for this many `-v`.
pub(crate) fn by_verbosity(verbose: u8) {
    let level = match verbose {
        0 => return,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    to_stderr(level);
}

/// Shows traces of at least this level, unless tracing has already begun.
pub(crate) fn to_stderr(level: LevelFilter) {
    let subscriber = tracing_subscriber::fmt().with_max_level(level).with_writer(io::stderr);
    subscriber.with_ansi(io::stderr().is_terminal()).try_init().ok();
}
