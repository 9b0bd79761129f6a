//! The database of a command: its arguments, and opening it.
//!
//! Only commands that write create a database. All others refuse a directory without a database, so that a mistyped path is an error instead of
//! an empty answer and a new directory. Commands that only read open it read-only: they change no file of it, and may run at the same time. While
//! another process writes to it, they open it as a reader beside that process, unless `--wait` asks for the end of that process.

use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use mini_engine::{Builder, Db, Error, RecoveryMode};

use crate::failure::{Failure, refuse_node};
use crate::{node_directory, output, size};

/// The value of `--wait` for a wait without an end.
const FOREVER: &str = "forever";
/// A lock cannot notify waiting processes, so they poll.
const BETWEEN_TRIES: Duration = Duration::from_millis(50);

/// The arguments of every command for its database.
#[derive(Args)]
pub(crate) struct DatabaseArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,
    /// Bytes that a memtable holds before it is written out as a table, such as 16M [default: 64M]
    #[arg(long, value_name = "SIZE", value_parser = size::parse_in_memory)]
    pub(crate) memtable_bytes: Option<usize>,
    /// While another process has the database open, wait for it: at most SECS seconds, or as long as it takes:
    /// `--wait forever`, or --wait as the last argument. Commands that only read need not wait: without this,
    /// they show what had been written when they began
    #[arg(long, value_name = "SECS", num_args = 0..=1, default_missing_value = FOREVER)]
    #[arg(value_parser = parse_wait)]
    wait: Option<u64>,
    /// Go on without damaged tables and logs: reads of keys that were in the tables fail then, and what the logs held behind
    /// the damage is lost. `repair` saves more, if it comes before: a command that writes sets the files aside, see the
    /// command quarantine. Reads the whole database first
    #[arg(long)]
    quarantine: bool,
}

fn parse_wait(text: &str) -> Result<u64, &'static str> {
    if text == FOREVER { Ok(u64::MAX) } else { text.parse().map_err(|_| "expected a number of seconds, or forever") }
}

/// The kind of access that a command needs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFor {
    /// No file of the database changes, and others may use it at the same time.
    Reading,
    /// As `Writing`, but as `Reading` while another process writes.
    Copying,
    Writing,
    /// As `Writing`, but creates a database if there is none.
    Creating,
}

impl DatabaseArgs {
    pub(crate) fn open(&self, purpose: OpenFor) -> Result<Db, Failure> {
        if purpose != OpenFor::Reading {
            refuse_node(&self.path, node_directory::IF_SOUND)?;
        }
        let builder = self.builder().create_if_missing(purpose == OpenFor::Creating);
        let builder = builder.read_only(purpose == OpenFor::Reading);
        let reads = matches!(purpose, OpenFor::Reading | OpenFor::Copying);
        let db = match self.when_free(|| builder.clone().open()) {
            Err(Error::Locked { .. }) if reads && self.wait.is_none() && !self.quarantine => {
                self.builder().reader().open()
            }
            opened => opened,
        }?;
        // Findings go to the log: they are no results of the command, and exit codes do not show them.
        for finding in db.recovery().findings() {
            output::say(format_args!("{finding}"));
        }
        Ok(db)
    }

    /// Calls `open`; if `--wait` is given, repeats it while another process has the database open.
    pub(crate) fn when_free<T>(&self, open: impl Fn() -> Result<T, Error>) -> Result<T, Error> {
        let until = Instant::now().checked_add(Duration::from_secs(self.wait.unwrap_or(0)));
        let mut is_told = false;
        loop {
            match open() {
                Err(error @ Error::Locked { .. }) if until.is_none_or(|until| Instant::now() < until) => {
                    if !std::mem::replace(&mut is_told, true) {
                        output::say(format_args!("{error}: waiting"));
                    }
                    thread::sleep(BETWEEN_TRIES);
                }
                opened => return opened,
            }
        }
    }

    /// A builder with the options of the arguments.
    pub(crate) fn builder(&self) -> Builder {
        let mut builder = Db::builder(&self.path);
        if let Some(bytes) = self.memtable_bytes {
            builder = builder.memtable_bytes(bytes);
        }
        if self.quarantine {
            builder = builder.recovery_mode(RecoveryMode::Quarantine);
        }
        builder
    }
}
