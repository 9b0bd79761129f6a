//! The database that a command works on: how it is named and opened.
//!
//! Only commands that write create one. All others refuse a directory that holds none, so that a mistyped path is an error
//! instead of an empty answer and a new directory. Commands that only read open it read-only: they change nothing in it, and may
//! run beside each other.

use std::path::PathBuf;

use clap::Args;
use mini_engine::{Db, RecoveryMode};

use super::failure::Failure;
use super::output;

/// The arguments by which every command names its database.
#[derive(Args)]
pub(crate) struct DatabaseArgs {
    /// Directory of the database
    #[arg(value_name = "DB")]
    pub(crate) path: PathBuf,
    /// Bytes that a memtable holds before it is written out as a table [default: 64 MiB]
    #[arg(long, value_name = "N")]
    pub(crate) memtable_bytes: Option<usize>,
    /// Go on without damaged tables and logs: reads of keys that were in them fail then. A command that
    /// writes sets them aside, see the command quarantine. Reads the whole database first
    #[arg(verbatim_doc_comment, long)]
    quarantine: bool,
}

/// What a command is going to do with the database.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum OpenFor {
    /// Nothing in the directory changes, and others may read at the same time.
    Reading,
    Writing,
    /// As for writing; a database is made where there is none.
    Creating,
}

impl DatabaseArgs {
    pub(crate) fn open(&self, purpose: OpenFor) -> Result<Db, Failure> {
        let builder = Db::builder(&self.path).create_if_missing(purpose == OpenFor::Creating);
        let mut builder = builder.read_only(purpose == OpenFor::Reading);
        if let Some(bytes) = self.memtable_bytes {
            builder = builder.memtable_bytes(bytes);
        }
        if self.quarantine {
            builder = builder.recovery_mode(RecoveryMode::Quarantine);
        }
        let db = builder.open()?;
        // The command did not ask for that, and exit codes do not tell of it.
        for finding in db.recovery().findings() {
            output::say(format_args!("{finding}"));
        }
        Ok(db)
    }
}
