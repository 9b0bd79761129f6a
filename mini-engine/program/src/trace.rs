//! The engine's traces, shown on stderr.

use std::io::{self, IsTerminal};

use tracing::level_filters::LevelFilter;
use tracing::{Level, Metadata};
use tracing_subscriber::filter::filter_fn;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// Sets the trace level for `verbose`, the number of `-v` options.
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
    // After the terminal was closed, the default would report a failed write by `eprintln!`, which panics.
    let subscriber = subscriber.with_ansi(io::stderr().is_terminal()).log_internal_errors(false).finish();
    subscriber.with(filter_fn(move |trace| level > LevelFilter::WARN || !is_of_every_day(trace))).try_init().ok();
}

/// Whether the trace reports normal events of a cluster: openraft warns of each heartbeat to an absent node.
fn is_of_every_day(trace: &Metadata<'_>) -> bool {
    trace.target().starts_with("openraft") && *trace.level() > Level::ERROR
}
