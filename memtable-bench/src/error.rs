//! Why the program stopped: the message, and the exit code for scripts.

use std::io;
use std::path::Path;

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The arguments make no sense together. Nothing has run.
    #[error("{0}")]
    Usage(String),
    /// A subject gave a wrong result, or its process died.
    #[error("{0}")]
    Subject(String),
    /// A file or stream of the program itself.
    #[error("cannot {action} {place}: {source}")]
    Io { action: &'static str, place: String, source: io::Error },
}

impl Error {
    /// Turns an I/O error at `path` into an [`Error`], for `map_err`.
    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io { action, place: path.display().to_string(), source }
    }

    pub(crate) fn exit_code(&self) -> u8 {
        if matches!(self, Self::Usage(_)) { 2 } else { 1 }
    }
}

impl From<String> for Error {
    fn from(refusal: String) -> Self {
        Self::Usage(refusal)
    }
}
