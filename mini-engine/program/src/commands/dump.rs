//! `dump`: prints the contents of one file of a database.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::{Args, ValueEnum};
use mini_engine::dump;
use mini_engine::fs::{FileSystem, StdFs};

use crate::failure::{Exit, Failure};
use crate::output::Output;
use crate::record;

/// Print what one file of a database holds, in lines for people
///
/// Nothing is opened but this file, and nothing is changed: a file set aside or copied elsewhere
/// will do, as long as its name has its number and its ending in it. Damage goes to stderr with its offset,
/// after what could be read, and the exit code is 3. Long keys and values are cut.
#[derive(Args)]
#[command(
    allow_missing_positional = true,
    after_help = "\
Examples:
  mini-engine dump files.db/000012.log
  mini-engine dump files.db/000012.log.tail.aside
  mini-engine dump files.db/000009.sst | less
  mini-engine dump files.db/MANIFEST-000013
  mini-engine dump damaged.db/000012.log --json | less"
)]
pub(crate) struct DumpArgs {
    /// What the file is, if that shall not go by its name
    kind: Option<FileKind>,
    /// The file
    file: PathBuf,
    /// Print every operation of a log, or the newest version of each key of a table, as a JSON object a line, whole:
    /// {"seqno":7,"key":"..","value":".."}, or "removed":true. Of a keyspace other than the default one, "keyspace" is its number,
    /// by which the manifest names it. Reads on behind damage. To save what is left of a
    /// database use `repair`, and for a node of a cluster `scan --skip-damaged`: one file does not tell which of its
    /// versions are the newest
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FileKind {
    /// A log of writes, *.log
    #[value(name = "wal")]
    Log,
    /// A sorted table, *.sst
    Table,
    /// A list of version edits, MANIFEST-*
    Manifest,
}

impl FileKind {
    /// The kind of a file by its name, which may have a suffix: `000012.log.tail.aside`.
    fn of(file: &Path) -> Result<Self, Failure> {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let mut endings = name.split('.').skip(1);
        let by_ending = endings.find_map(|ending| match ending {
            "log" => Some(Self::Log),
            "sst" => Some(Self::Table),
            _ => None,
        });
        let kind = if name.starts_with("MANIFEST-") { Some(Self::Manifest) } else { by_ending };
        kind.ok_or_else(|| {
            let what = "expected a name like 000012.log, 000012.sst or MANIFEST-000012";
            Failure::Usage(format!("{what}, found {}", file.display()))
        })
    }
}

pub(crate) fn run(args: &DumpArgs) -> Result<Exit, Failure> {
    let kind = args.kind.map_or_else(|| FileKind::of(&args.file), Ok)?;
    if args.json {
        return dump_json(args, kind);
    }
    let mut output = Output::new();
    let mut written = Ok(());
    let mut parts = |part: dump::Part<'_>| {
        written = output.write(|out| writeln!(out, "{part}"));
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let fs: Arc<dyn FileSystem> = Arc::new(StdFs);
    let dumped = match kind {
        FileKind::Log => dump::log(&fs, &args.file, &mut parts),
        FileKind::Table => dump::table(&fs, &args.file, &mut parts),
        FileKind::Manifest => dump::manifest(&fs, &args.file, &mut parts),
    };
    written?;
    // The readable part is printed before any error about the rest.
    output.finish()?;
    dumped?;
    Ok(Exit::Done)
}

fn dump_json(args: &DumpArgs, kind: FileKind) -> Result<Exit, Failure> {
    let mut output = Output::new();
    let mut written = Ok(());
    let mut entries = |entry: dump::Entry<'_>| {
        written = output.write(|out| record::print_entry(out, &entry));
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    };
    let fs: Arc<dyn FileSystem> = Arc::new(StdFs);
    let dumped = match kind {
        FileKind::Log => dump::log_entries(&fs, &args.file, &mut entries),
        FileKind::Table => dump::table_entries(&fs, &args.file, &mut entries),
        FileKind::Manifest => {
            return Err(Failure::Usage("a manifest has no entries: --json is for logs and tables".into()));
        }
    };
    written?;
    output.finish()?;
    dumped?;
    Ok(Exit::Done)
}
