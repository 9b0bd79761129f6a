//! The database that a command works on: how it is named and opened.
//!
//! Only commands that write create one. All others refuse a directory that holds none, so that a mistyped path is an error
//! instead of an empty answer and a new directory.

use std::path::{Path, PathBuf};

use clap::Args;
use mini_engine::{Db, RecoveryReport};

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
}

/// What opening does where no database is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IfMissing {
    Create,
    Refuse,
}

impl DatabaseArgs {
    pub(crate) fn open(&self, missing: IfMissing) -> Result<Db, Failure> {
        let mut builder = Db::builder(&self.path).create_if_missing(missing == IfMissing::Create);
        if let Some(bytes) = self.memtable_bytes {
            builder = builder.memtable_bytes(bytes);
        }
        let db = builder.open()?;
        for finding in findings(&self.path, db.recovery()) {
            output::say(format_args!("{finding}"));
        }
        Ok(db)
    }
}

/// What opening the database dropped or put aside, a line each. Nobody asked for that, and exit codes do not tell of it.
fn findings(database: &Path, report: &RecoveryReport) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(torn) = &report.torn {
        let lost = match torn.dropped_bytes {
            0 => "writes that followed are missing".to_owned(),
            n => format!(
                "dropped {}",
                output::counted(n, "byte that was no whole write", "bytes that were no whole write")
            ),
        };
        lines.push(format!(
            "{}: the log ended early at offset {}, {lost}; they were never synced, as a crash leaves them: writes \
             acknowledged as synced are all there, repeat the ones after them",
            torn.log.display(),
            torn.offset
        ));
    }
    if report.manifest_tail_dropped {
        lines.push(format!(
            "{}: dropped an incomplete record of {} at the end of the manifest, of a flush or merge that a crash cut \
             short; its writes are still in the logs and tables before it, check with the command verify",
            database.display(),
            output::counted(report.manifest_tail_bytes, "byte", "bytes")
        ));
    }
    for aside in &report.set_aside {
        let bytes = std::fs::metadata(aside).map_or(0, |metadata| metadata.len());
        lines.push(format!(
            "{}: set aside a file of {}, whose place in the history was lost; it is not read any more, keep it until \
             you know that nothing is missing, then remove it",
            aside.display(),
            output::counted(bytes, "byte", "bytes")
        ));
    }
    lines
}
