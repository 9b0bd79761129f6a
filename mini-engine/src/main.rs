//! The program `mini-engine`: a database directory for people and shell scripts.
//!
//! Everything is in `program`; this file only turns its outcome into the process's exit code.
#![forbid(unsafe_code)]

mod program;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::run()
}
