//! The reason why the program stopped: a message, and an exit code for scripts.

use std::io;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
#[error("{text}")]
pub(crate) struct Error {
    pub(crate) exit_code: u8,
    text: String,
}

impl Error {
    /// A subject gave a wrong result, or its process died.
    pub(crate) fn subject(text: impl Into<String>) -> Self {
        Self { exit_code: 1, text: text.into() }
    }

    /// Turns an error of the program's own I/O at `path` into an [`Error`], for `map_err`.
    pub(crate) fn io(action: &str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::subject(format!("cannot {action} {}: {error}", path.display()))
    }
}

/// The arguments contradict each other. Nothing has run.
impl From<String> for Error {
    fn from(text: String) -> Self {
        Self { exit_code: 2, text }
    }
}
