//! `aside`: lists the files that recovery has set aside, and removes them.

use std::ffi::OsString;
use std::path::Path;

use clap::Args;

use crate::database::{DatabaseArgs, OpenFor};
use crate::failure::{Exit, Failure};
use crate::output::Output;

/// List the files that were set aside, or remove them
///
/// An open that cannot use a file, or the end of a log, keeps it under a name that ends in .aside.
/// `repair` reads the tables among them that were quarantined, dropped ones too; nothing reads the others
/// any more. `dump` shows what is in a file. Prints one file a line: name, bytes.
#[derive(Args)]
#[command(
    verbatim_doc_comment,
    after_help = "\
Examples:
  mini-engine aside files.db
  mini-engine dump files.db/000012.log.tail.aside --json
  mini-engine aside files.db --remove 000012.log.tail.aside
  mini-engine aside files.db --remove-all"
)]
pub(crate) struct AsideArgs {
    #[command(flatten)]
    database: DatabaseArgs,
    /// Remove this file
    #[arg(long, value_name = "NAME")]
    remove: Vec<OsString>,
    /// Remove all of them but quarantined tables
    #[arg(long, conflicts_with = "remove")]
    remove_all: bool,
}

pub(crate) fn run(args: &AsideArgs) -> Result<Exit, Failure> {
    let removes = args.remove_all || !args.remove.is_empty();
    let db = args.database.open(if removes { OpenFor::Writing } else { OpenFor::Reading })?;
    for name in &args.remove {
        db.remove_aside(Path::new(name))?;
    }
    if args.remove_all {
        for aside in db.set_aside()?.iter().filter(|aside| !aside.is_quarantined) {
            db.remove_aside(&aside.file)?;
        }
    }
    let mut output = Output::new();
    for aside in db.set_aside()? {
        let name = aside.file.file_name().unwrap_or_default().to_string_lossy();
        let note = if aside.is_quarantined { "\tquarantined" } else { "" };
        output.write(|out| writeln!(out, "{name}\t{}{note}", aside.bytes))?;
    }
    db.close()?;
    output.finish()?;
    Ok(Exit::Done)
}
