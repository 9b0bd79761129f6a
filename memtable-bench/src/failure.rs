//! Why the program stopped, in words for people, and the exit code that says so to scripts.

use std::fmt;
use std::io;

/// Why the program stopped.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Arguments that cannot be meant. Nothing has run.
    Usage(String),
    /// A subject stored, found or yielded something else than it was given, or its process died.
    Subject(String),
    /// A file or stream of the program itself.
    Io { action: &'static str, place: String, source: io::Error },
}

impl Failure {
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Usage(_) => 2,
            Self::Subject(_) | Self::Io { .. } => 1,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(what) | Self::Subject(what) => f.write_str(what),
            Self::Io { action, place, source } => write!(f, "cannot {action} {place}: {source}"),
        }
    }
}
