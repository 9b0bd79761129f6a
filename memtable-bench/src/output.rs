//! Standard output.

use std::io::{self, Write};

use crate::failure::Failure;

/// Prints `text`.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // Whoever read stdout has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|source| Failure::Io { action: "write", place: "stdout".into(), source }),
    }
}
