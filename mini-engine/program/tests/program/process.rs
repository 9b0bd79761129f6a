//! Runs the program, and keeps the directory that a test works in.

use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::thread;

use crate::scratch::TempDir;

/// The program, not yet started.
pub(crate) fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_mini-engine"))
}

/// What a finished process left.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// Stdout as text, of a process that has to have ended with exit code 0.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        assert_eq!(self.code, Some(0), "{self:?}");
        String::from_utf8(self.stdout).expect("text")
    }

    /// As [`Ran::text`], and stderr.
    #[track_caller]
    pub(crate) fn text_and_words(self) -> (String, String) {
        let words = self.stderr.clone();
        (self.text(), words)
    }

    /// Stderr of a process that has to have ended with `code` and to have printed nothing to stdout.
    #[track_caller]
    pub(crate) fn refusal(self, code: i32) -> String {
        assert_eq!((self.code, &*self.stdout), (Some(code), &b""[..]), "{self:?}");
        self.stderr
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("messages are text");
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// Runs `command` on `input`, which it need not read to the end.
pub(crate) fn run_with(mut command: Command, input: &[u8]) -> Ran {
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn");
    let mut stdin = child.stdin.take().expect("piped");
    let output = thread::scope(|threads| {
        threads.spawn(move || match stdin.write_all(input) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => panic!("{error}"),
            _ => drop(stdin),
        });
        child.wait_with_output().expect("wait")
    });
    output.into()
}

/// A directory of a test's own, and the database path `db` in it.
pub(crate) struct Room {
    directory: TempDir,
}

impl Room {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    /// A room whose database holds the records of `lines`.
    pub(crate) fn holding(lines: &str) -> Self {
        let room = Self::new();
        let ran = room.import(&["-"], lines.as_bytes());
        assert_eq!((ran.code, &*ran.stdout), (Some(0), &b""[..]), "{ran:?}");
        room
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path("db")
    }

    /// `command` with the database as its first argument, not yet started.
    pub(crate) fn command<S: AsRef<OsStr>>(&self, command: &str, args: &[S]) -> Command {
        let mut program = program();
        program.arg(command).arg(self.database()).args(args).current_dir(self.directory.path());
        program
    }

    pub(crate) fn run<S: AsRef<OsStr>>(&self, command: &str, args: &[S]) -> Ran {
        self.command(command, args).stdin(Stdio::null()).output().expect("run").into()
    }

    pub(crate) fn import(&self, args: &[&str], input: &[u8]) -> Ran {
        run_with(self.command("import", args), input)
    }

    /// Everything that the database holds, as `scan` prints it.
    #[track_caller]
    pub(crate) fn records(&self) -> String {
        self.run::<&str>("scan", &[]).text()
    }
}

/// An import that has stored `lines` and holds the database open until its input ends. Not in this process: a process that
/// another test starts at that moment would inherit the lock, and hold it for a moment longer.
pub(crate) fn importing(room: &Room, lines: &[&str]) -> (Child, ChildStdin) {
    let mut command = room.command("import", &["-", "--synced", "--batch", "1"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("spawn");
    let mut stdin = child.stdin.take().expect("piped");
    let mut acks = BufReader::new(child.stdout.take().expect("piped")).lines();
    for line in lines {
        writeln!(stdin, "{line}").expect("write");
        acks.next().expect("an ack").expect("text");
    }
    (child, stdin)
}

/// The names of what a directory holds, sorted.
pub(crate) fn names(directory: &Path) -> Vec<OsString> {
    let entries = std::fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}

/// Says that a test could not test here, past the capture that hides the output of passing tests.
#[cfg(target_os = "linux")]
pub(crate) fn skipped(test: &str, why: impl std::fmt::Display) {
    writeln!(io::stderr(), "\nSKIPPED {test}: {why}\n").expect("stderr");
}
