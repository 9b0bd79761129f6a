//! Runs the program, and holds the directory of a test.

#[cfg(target_os = "linux")]
pub(crate) mod mount;
#[cfg(unix)]
pub(crate) mod server;

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use proof::TempDir;

/// The time after which a process without output has failed.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The program, not yet started: the one in `TESTED_PROGRAM` (`.ci/platforms` sets it to a program of another processor), or else this build's.
pub(crate) fn program() -> Command {
    Command::new(std::env::var_os("TESTED_PROGRAM").unwrap_or_else(|| env!("CARGO_BIN_EXE_mini-engine").into()))
}

/// The words of a line, separated by spaces that are not within single quotes.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (number, part) in line.split('\'').enumerate() {
        match number % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

/// Runs the program with the arguments of `line`.
pub(crate) fn run(line: &str) -> Ran {
    let mut program = program();
    program.args(words(line));
    run_with(program, b"")
}

/// The exit code and output of a finished process.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: String,
}

impl Ran {
    /// Stdout as text, and stderr, of a process that must have ended with `code`.
    #[track_caller]
    pub(crate) fn ended(self, code: i32) -> (String, String) {
        assert_eq!(self.code, Some(code), "{self:?}");
        (String::from_utf8(self.stdout).expect("text"), self.stderr)
    }

    /// Stdout as text, of a process that must have ended with exit code 0.
    #[track_caller]
    pub(crate) fn text(self) -> String {
        self.ended(0).0
    }

    /// Stderr of a process that must have ended with `code` and printed nothing to stdout.
    #[track_caller]
    pub(crate) fn refused(self, code: i32) -> String {
        let (printed, said) = self.ended(code);
        assert_eq!(printed, "", "{said}");
        said
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let stderr = String::from_utf8(output.stderr).expect("messages are text");
        Self { code: output.status.code(), stdout: output.stdout, stderr }
    }
}

/// Checks that `text` contains all of `parts`, which are separated by `|`.
#[track_caller]
pub(crate) fn check_says(text: &str, parts: &str) {
    parts.split('|').for_each(|part| assert!(text.contains(part), "{part}: {text}"));
}

/// Starts `command` with its three streams in pipes.
pub(crate) fn piped(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("spawn")
}

/// Runs `command` on `input`, which it need not read to the end.
pub(crate) fn run_with(command: Command, input: &[u8]) -> Ran {
    let mut child = piped(command);
    let mut stdin = child.stdin.take().expect("piped");
    thread::scope(|threads| {
        threads.spawn(move || match stdin.write_all(input) {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => panic!("{error}"),
            _ => drop(stdin),
        });
        finished(child)
    })
}

/// The exit code and output of a process that must end by itself.
pub(crate) fn finished(child: Child) -> Ran {
    let id = child.id().to_string();
    let (ended, has_ended) = mpsc::channel();
    thread::spawn(move || ended.send(child.wait_with_output().expect("wait")));
    let output = has_ended.recv_timeout(PATIENCE).unwrap_or_else(|error| {
        Command::new("kill").args(["-9", &id]).status().ok();
        panic!("it does not end: {error}")
    });
    output.into()
}

/// Waits until a condition is true.
#[cfg(unix)]
#[track_caller]
pub(crate) fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "it never became so: {what}");
        thread::sleep(Duration::from_millis(5));
    }
}

/// Kills a process.
pub(crate) fn kill(mut child: Child) {
    child.kill().expect("kill");
    child.wait().expect("wait");
}

/// Changes a byte of a file.
pub(crate) fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).expect("read");
    bytes[at] ^= 1;
    fs::write(path, bytes).expect("write");
}

/// Takes bytes off the end of a file.
pub(crate) fn cut(path: &Path, bytes: u64) {
    let file = fs::File::options().write(true).open(path).expect("open");
    file.set_len(file.metadata().expect("metadata").len() - bytes).expect("cut");
}

/// A directory of a test's own, and a database in it: `db`, unless it was made by [`Room::with`].
pub(crate) struct Room {
    path: PathBuf,
    database: &'static str,
    _directory: Option<TempDir>,
}

impl Room {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().expect("a temporary directory");
        Self { path: directory.path().to_owned(), database: "db", _directory: Some(directory) }
    }

    /// A room in a directory that is not removed.
    pub(crate) fn within(path: PathBuf) -> Self {
        Self { path, database: "db", _directory: None }
    }

    /// The same directory, with another database in it.
    pub(crate) fn with(&self, database: &'static str) -> Self {
        Self { path: self.path.clone(), database, _directory: None }
    }

    /// A room whose database holds the records of `lines`.
    pub(crate) fn holding(lines: &str) -> Self {
        let room = Self::new();
        room.import("-", lines.as_bytes()).refused(0);
        room
    }

    /// A room whose database has a thousand records in one table of many blocks: `key0000` and so on.
    pub(crate) fn of_a_thousand() -> Self {
        let line = |n: usize| format!("key{n:04}\tvalue {n} {}\n", "v".repeat(90));
        Self::holding(&(0..1000).map(line).collect::<String>())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.path(self.database)
    }

    /// The newest file of the database whose name contains `part`.
    pub(crate) fn file(&self, part: &str) -> PathBuf {
        let named = |name: &OsString| name.to_string_lossy().contains(part);
        self.database().join(names(&self.database()).into_iter().rfind(named).expect("a file"))
    }

    /// The command of `line`, with the database as its first argument, not yet started.
    pub(crate) fn command(&self, line: &str) -> Command {
        let words = words(line);
        let mut program = program();
        program.arg(&words[0]).arg(self.database()).args(&words[1..]).current_dir(&self.path);
        program
    }

    pub(crate) fn run(&self, line: &str) -> Ran {
        run_with(self.command(line), b"")
    }

    /// Runs each line, and compares its output.
    #[track_caller]
    pub(crate) fn prints(&self, lines: &[(&str, &str)]) {
        for (line, expected) in lines {
            assert_eq!(self.run(line).text(), *expected, "{line}");
        }
    }

    /// Runs each line, which must end with `code`, print nothing to stdout, and print to stderr the parts that are separated by `|`.
    #[track_caller]
    pub(crate) fn refuses(&self, code: i32, lines: &[(&str, &str)]) {
        for (line, parts) in lines {
            check_says(&self.run(line).refused(code), parts);
        }
    }

    /// Imports `input` with these arguments.
    pub(crate) fn import(&self, args: &str, input: &[u8]) -> Ran {
        run_with(self.command(&format!("import {args}")), input)
    }

    /// Starts an import with these arguments. Returns its input, to be sent in parts, and its acknowledgements.
    pub(crate) fn begin_import(&self, args: &str) -> (Child, ChildStdin, Acks) {
        let mut child = piped(self.command(&format!("import - --synced {args}")));
        let (stdin, stdout) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        (child, stdin, Acks(BufReader::new(stdout)))
    }

    /// An import that has stored `lines` and holds the database open until its input ends.
    pub(crate) fn importing(&self, lines: &[&str]) -> (Child, ChildStdin) {
        let (child, mut stdin, mut acks) = self.begin_import("--batch 1");
        for line in lines {
            writeln!(stdin, "{line}").expect("write");
            acks.next().expect("an ack");
        }
        (child, stdin)
    }

    /// Kills an import that has stored `lines`, so that all of the lines are only in the log.
    pub(crate) fn killed_import(&self, lines: &[&str]) {
        let (child, _stdin) = self.importing(lines);
        kill(child);
    }

    /// The contents of the database, as `scan` prints them.
    #[track_caller]
    pub(crate) fn records(&self) -> String {
        self.run("scan").text()
    }
}

/// The acknowledgements of an import: numbers of lines, until the process has ended.
pub(crate) struct Acks(BufReader<ChildStdout>);

impl Iterator for Acks {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        let mut line = String::new();
        self.0.read_line(&mut line).expect("read");
        // A line that a kill cut off acknowledges nothing.
        let number = line.strip_suffix('\n')?;
        Some(number.strip_prefix("acked ").expect("an ack").parse().expect("a number"))
    }
}

/// The names of the files in a directory, sorted.
pub(crate) fn names(directory: &Path) -> Vec<OsString> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut names: Vec<_> = entries.map(|entry| entry.expect("an entry").file_name()).collect();
    names.sort();
    names
}

/// Prints that a test could not run its checks here. The message appears although the test harness captures the output of passing tests.
pub(crate) fn skipped(test: &str, why: impl std::fmt::Display) {
    writeln!(io::stderr(), "\nSKIPPED {test}: {why}\n").expect("stderr");
}

/// The seed of a test that kills processes: `KILL_SEED`, or a fresh one, which is printed.
pub(crate) fn kill_seed() -> u64 {
    proof::environment::seed("KILL_SEED")
}
